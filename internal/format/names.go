// Package format is the lock file's form on disk: the names beside a guarded file, and the lock's JSON.
package format

import (
	"strconv"
	"strings"
)

// LockSuffix makes a guarded file's path its lock's path.
const LockSuffix = ".lock"

// KeyLen is the length of a claim's key: hex digits of the sha256 of the bytes of the lock claimed.
const KeyLen = 16

// MaxNameLen is what the file systems allow for one name, in bytes, unless they allow less.
const MaxNameLen = 255

const (
	tagLen     = 8
	attemptLen = 24
	// pidLen is the longest pid: the length that a path may have must not depend on the process.
	pidLen = 10
)

// LongestSuffix is the length of the longest name made beside a guarded file, less that of the file's
// own: a claim.
const LongestSuffix = len(LockSuffix+".claim-") + KeyLen + 1 + tagLen + 1 + pidLen + 1 + attemptLen

// LongestTemp is the same for a commit's temp file, the only name made beside a file whose lock is the
// kernel's.
const LongestTemp = len(".tmp-") + tagLen + 1 + pidLen + 1 + attemptLen

// Kind is what a name beside a guarded file is for.
type Kind string

// The kinds.
const (
	Pending Kind = "pending" // a lock's content before it is published
	Claim   Kind = "claim"   // a breaker's claim on one lock
	Broken  Kind = "broken"  // a lock moved away, not yet removed
	Temp    Kind = "tmp"     // the content of a commit to come
)

// Name is a name beside a guarded file, taken apart.
type Name struct {
	Kind Kind
	Key  string // of a claim; empty in the earliest shape
	Tag  string // host part; empty in the earliest shapes
	PID  int64  // 0 when the owner stands in the content
	// InContent: the owner is named by the file's content (claims of earlier builds).
	InContent bool
}

// Make returns the path for a file of the given kind beside the guarded file at path. Key is for
// claims only.
func Make(path string, kind Kind, key, tag string, pid int64, attempt string) string {
	var b strings.Builder
	b.Grow(len(path) + LongestSuffix)
	b.WriteString(path)
	if kind != Temp {
		b.WriteString(LockSuffix)
	}
	b.WriteByte('.')
	b.WriteString(string(kind))
	b.WriteByte('-')
	if kind == Claim {
		b.WriteString(key)
		b.WriteByte('-')
	}
	b.WriteString(tag)
	b.WriteByte('-')
	var digits [20]byte
	b.Write(strconv.AppendInt(digits[:0], pid, 10))
	b.WriteByte('-')
	b.WriteString(attempt)
	return b.String()
}

// Parse takes apart the name of a file in the guarded file's folder. base is the guarded file's own
// name there. Names of no shape that any build has made give false.
//
//	<lock>.pending-<host>-<pid>-<hex>
//	<lock>.claim-<key>-<host>-<pid>-<hex>
//	<lock>.claim-h<key>                        earlier; owner in the content
//	<lock>.claim-<inode>                       earliest; owner in the content
//	<lock>.broken-<host>-<pid>-<hex>
//	<lock>.broken-<host>-<pid>-<time>-<hex>    earlier
//	<lock>.broken-<pid>-<hex>                  earliest
//	<file>.tmp-<host>-<pid>-<hex>
//	<file>.tmp-<pid>-<hex>                     earliest
func Parse(name, base string) (Name, bool) {
	rest, ok := strings.CutPrefix(name, base)
	if !ok {
		return Name{}, false
	}
	if s, ok := strings.CutPrefix(rest, ".tmp-"); ok {
		return owned(Temp, "", strings.Split(s, "-"))
	}
	rest, ok = strings.CutPrefix(rest, LockSuffix+".")
	if !ok {
		return Name{}, false
	}
	kind, s, _ := strings.Cut(rest, "-")
	f := strings.Split(s, "-")
	switch Kind(kind) {
	case Pending:
		if len(f) != 3 {
			return Name{}, false
		}
		return owned(Pending, "", f)
	case Broken:
		if len(f) == 4 { // the time says nothing that is needed
			if !digits(f[2]) {
				return Name{}, false
			}
			f = []string{f[0], f[1], f[3]}
		}
		return owned(Broken, "", f)
	case Claim:
		key, hashed := strings.CutPrefix(f[0], "h")
		switch {
		case len(f) == 4 && hexDigits(f[0], KeyLen):
			return owned(Claim, f[0], f[1:])
		case len(f) == 1 && hashed && hexDigits(key, KeyLen):
			return Name{Kind: Claim, Key: key, InContent: true}, true
		case len(f) == 1 && digits(f[0]):
			return Name{Kind: Claim, InContent: true}, true
		}
	}
	return Name{}, false
}

// owned reads <host>-<pid>-<hex> or <pid>-<hex>.
func owned(kind Kind, key string, f []string) (Name, bool) {
	n := Name{Kind: kind, Key: key}
	if len(f) == 3 {
		if !hexDigits(f[0], tagLen) {
			return Name{}, false
		}
		n.Tag, f = f[0], f[1:]
	}
	if len(f) != 2 || !digits(f[0]) || !hexDigits(f[1], 0) {
		return Name{}, false
	}
	pid, err := strconv.ParseInt(f[0], 10, 64)
	if err != nil {
		return Name{}, false
	}
	n.PID = pid
	return n, true
}

// digits reports whether s is a decimal number written as a program writes it.
func digits(s string) bool {
	if s == "" || s[0] == '0' && len(s) > 1 {
		return false
	}
	return strings.Trim(s, "0123456789") == ""
}

// hexDigits reports whether s is n hex digits in lower case; any number of them when n is 0.
func hexDigits(s string, n int) bool {
	if s == "" || n > 0 && len(s) != n {
		return false
	}
	return strings.Trim(s, "0123456789abcdef") == ""
}
