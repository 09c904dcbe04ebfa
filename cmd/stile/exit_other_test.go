//go:build !unix

package main

func systemErrors(func(error) error) (tests []struct {
	err  error
	exit int
	code string
}) {
	return nil
}

func systemHelper([]string) bool { return false }
