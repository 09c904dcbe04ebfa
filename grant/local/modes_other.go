//go:build !windows

package local

// modesTell: a file's mode says who may read it.
const modesTell = true
