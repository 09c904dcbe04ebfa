//go:build !unix

package vfs

const openQuietly = 0
