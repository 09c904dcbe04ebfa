//go:build !windows

package local

func lacksLinksHere(error) bool { return false }
