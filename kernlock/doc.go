// Package kernlock lets one writer at a time through to a file, with the kernel as the authority.
package kernlock
