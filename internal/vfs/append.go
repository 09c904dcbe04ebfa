package vfs

import (
	"io"
	"io/fs"
)

// Appender is an FS that can open files for adding to their end.
type Appender interface {
	// OpenAppend opens a file for reading, and for writing that always goes to the end. With create it
	// makes one that was not there, exclusively, with perm less the umask; without, it opens one that
	// is. Like Open it never waits, so the caller can ask Stat what it has opened.
	OpenAppend(name string, create bool, perm fs.FileMode) (AppendFile, error)
}

// AppendFile is a file opened for adding to. Unlike a File it may be used by several goroutines, where
// the caller sees to it that the writes have an order.
type AppendFile interface {
	File
	io.ReaderAt
	// SyncData is Sync without what is not needed to read the content: times.
	SyncData() error
	// Truncate cuts the file off behind size bytes. Windows has no right to it here
	// (errors.ErrUnsupported).
	Truncate(size int64) error
}
