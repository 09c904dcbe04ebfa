//go:build !linux

package vfs

import "io/fs"

func patientlyIn(f func() error) error { return patiently(f) }

func infoOfFile(fi fs.FileInfo) Info { return infoOf(fi) }
