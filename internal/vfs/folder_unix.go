//go:build unix && !linux

package vfs

const openQuietly = neverWait
