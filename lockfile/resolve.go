package lockfile

// Resolve returns the guarded file that path leads to, as Hold.Path and State.Path give it: absolute,
// with the links of the last element followed. It need not exist. What is no regular file is
// ErrNotRegular. Of the options it uses none but Seams.
func Resolve(path string, o Options) (string, error) {
	l, err := find(path, o)
	if err != nil {
		return "", err
	}
	return l.path, nil
}
