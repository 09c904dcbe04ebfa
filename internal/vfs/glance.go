package vfs

// Glancer is an FS that can describe a file without asking for its times. A file whose times were asked for has
// to store finer ones at its next write (Linux 6.13 and later), which costs whoever looks before each write
// a tenth of it.
type Glancer interface {
	// Glance is Lstat without ModTime, UID and GID, which are zero.
	Glance(name string) (Info, error)
}

// Glance looks at a file's type, size and identity. What else Info says is not to be used.
func Glance(fsys FS, name string) (Info, error) {
	if g, ok := fsys.(Glancer); ok {
		return g.Glance(name)
	}
	return fsys.Lstat(name)
}
