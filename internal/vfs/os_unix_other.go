//go:build unix && !linux && !darwin && !freebsd && !netbsd && !openbsd && !dragonfly

package vfs

func fillSys(*Info, any) {}
