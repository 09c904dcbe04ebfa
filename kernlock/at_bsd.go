//go:build unix && !linux && !aix && !solaris

package kernlock

// at says whether path still names this file.
func (f *lockFile) at(path string) (bool, error) { return f.atByStat(path) }
