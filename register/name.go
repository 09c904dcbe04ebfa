package register

import (
	"errors"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"

	"github.com/stile-lock/stile/internal/display"
)

// What a name holds at most. A path of 1000 bytes below a folder fits into what every system takes.
const (
	maxName    = 1000 // bytes of a whole name
	maxElement = 255  // bytes of what stands between two slashes
)

// ErrName says that an artifact cannot have the name, or that two cannot have theirs side by side.
var ErrName = errors.New("name cannot be landed")

// CheckName tells whether an artifact can have the name: a path from the tree's root, elements parted by
// slashes, that is one and the same file on Linux, macOS and Windows, on ext4, APFS, NTFS and exFAT. It is clean
// and stays below the root, it is UTF-8 of which every character can be seen, no element ends in a dot or space,
// holds one of \ < > : " | ? * or is a device's name on Windows. Whether two names mean one file is [Tree]'s to
// find.
func CheckName(name string) error {
	why := nameFault(name)
	if why == "" {
		return nil
	}
	return fmt.Errorf("%w: %s: %s", ErrName, shown(name), why)
}

func nameFault(name string) string {
	switch {
	case name == "":
		return "it is empty"
	case len(name) > maxName:
		return fmt.Sprintf("it has %d bytes, at most %d", len(name), maxName)
	case !utf8.ValidString(name):
		return "it is not UTF-8"
	case name[0] == '/':
		return "it is absolute; a name is a path from the tree's root"
	}
	for element := range strings.SplitSeq(name, "/") {
		if why := elementFault(element); why != "" {
			return why
		}
	}
	return ""
}

func elementFault(s string) string {
	switch {
	case s == "":
		return "it has a slash too many"
	case s == ".", s == "..":
		return "it is not clean: it has " + s + " in it"
	case len(s) > maxElement:
		return fmt.Sprintf("a part of it has %d bytes, at most %d", len(s), maxElement)
	}
	for _, r := range s {
		switch {
		case !unicode.IsPrint(r):
			return "it has a character in it that cannot be seen"
		case r == '\\':
			return "it has a backslash in it, which parts folders on Windows"
		case strings.ContainsRune(`<>:"|?*`, r):
			return fmt.Sprintf("it has %c in it, which Windows does not take", r)
		}
	}
	switch last := s[len(s)-1]; {
	case last == '.', last == ' ':
		return "a part of it ends with a dot or space, which Windows drops"
	case device(s):
		return "a part of it is the name of a device on Windows"
	}
	return ""
}

// device tells whether Windows opens a device under the name, in whatever folder, with whatever extension.
func device(s string) bool {
	s, _, _ = strings.Cut(s, ".")
	s = strings.ToUpper(strings.TrimRight(s, " "))
	switch s {
	case "CON", "PRN", "AUX", "NUL", "CONIN$", "CONOUT$", "CLOCK$":
		return true
	}
	port, ok := strings.CutPrefix(s, "COM")
	if !ok {
		port, ok = strings.CutPrefix(s, "LPT")
	}
	return ok && utf8.RuneCountInString(port) == 1 && strings.Contains("0123456789¹²³", port)
}

// shown is a name in a message.
func shown(name string) string {
	const most = 120
	s := display.Text(name)
	if r := []rune(s); len(r) > most {
		s = string(r[:most]) + "..."
	}
	return s
}

// key is the same for two names that are one file somewhere: folded as Unicode has it, which is at least what
// APFS, NTFS and ext4's casefold do, in one normal form, without what ext4 ignores. It is for comparing only.
func key(name string) string {
	ascii := true
	for i := range len(name) {
		if name[i] >= utf8.RuneSelf {
			ascii = false
			break
		}
	}
	if ascii {
		return strings.ToLower(name)
	}
	var b strings.Builder
	b.Grow(len(name))
	for _, r := range norm.NFD.String(name) {
		full := severalOf(r)
		switch {
		case full != "":
			b.WriteString(full)
		case ignored(r):
		default:
			b.WriteRune(fold(r))
		}
	}
	// What was folded may decompose further, and marks may have to change places.
	return norm.NFD.String(b.String())
}

// fold is the least of the characters that differ from r in case only.
func fold(r rune) rune {
	least := r
	for s := unicode.SimpleFold(r); s != r; s = unicode.SimpleFold(s) {
		least = min(least, s)
	}
	if 'A' <= least && least <= 'Z' {
		least += 'a' - 'A'
	}
	return least
}

// severalOf is what a character folds to that folds to several, as far as it does not decompose; else "".
func severalOf(r rune) string {
	switch r {
	case '\u00df', '\u1e9e':
		return "ss"
	case '\u0149':
		return "\u02bcn"
	case '\u0587':
		return "\u0565\u0582"
	case '\u1e9a':
		return "a\u02be"
	case '\ufb00':
		return "ff"
	case '\ufb01':
		return "fi"
	case '\ufb02':
		return "fl"
	case '\ufb03':
		return "ffi"
	case '\ufb04':
		return "ffl"
	case '\ufb05', '\ufb06':
		return "st"
	case '\ufb13':
		return "\u0574\u0576"
	case '\ufb14':
		return "\u0574\u0565"
	case '\ufb15':
		return "\u0574\u056b"
	case '\ufb16':
		return "\u057e\u0576"
	case '\ufb17':
		return "\u0574\u056d"
	}
	return ""
}

// ignored tells whether a character counts for nothing where names are compared without case. Others of its kind
// cannot be seen, and are in no name.
func ignored(r rune) bool {
	switch {
	case r == '\u034f', r == '\u115f', r == '\u1160', r == '\u17b4', r == '\u17b5', r == '\u3164', r == '\uffa0',
		'\u180b' <= r && r <= '\u180f', '\ufe00' <= r && r <= '\ufe0f', 0xe0100 <= r && r <= 0xe01ef:
		return true
	}
	return false
}

// names finds names that cannot stand side by side.
type names map[string]named

// named is what a key stands for: a name as it was first spelt, and whether it is a folder's.
type named struct {
	spelt  string
	folder bool
}

// add takes a name, or says which one it meets.
func (n names) add(name string, folder bool) error {
	for i := range len(name) {
		if name[i] == '/' {
			if err := n.put(name[:i], name, true); err != nil {
				return err
			}
		}
	}
	k := key(name)
	if was, ok := n[k]; ok && was == (named{name, folder}) && !folder {
		return fmt.Errorf("%w: %s is there twice", ErrName, shown(name))
	}
	return n.put(name, name, folder)
}

func (n names) put(part, name string, folder bool) error {
	k := key(part)
	was, ok := n[k]
	switch {
	case !ok:
		n[k] = named{part, folder}
	case was.spelt != part:
		return fmt.Errorf("%w: %s and %s are one name where case or normal form do not count", ErrName, shown(was.spelt), shown(part))
	case was.folder != folder:
		return fmt.Errorf("%w: %s is a file and, for %s, a folder", ErrName, shown(part), shown(name))
	}
	return nil
}
