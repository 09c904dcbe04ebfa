//go:build !linux && !darwin

package register

func exchange(tree, dir string) error { return displace(tree, dir) }
