//go:build unix && !aix && !solaris

package kernlock

// systemModes are the child modes of this system.
func systemModes() map[string]func(*session) error {
	return map[string]func(*session) error{}
}
