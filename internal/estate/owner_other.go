//go:build !unix

package estate

import "io/fs"

// ownedByCaller cannot tell: owners here are no numbers that a file description has.
func ownedByCaller(fs.FileInfo) error { return nil }
