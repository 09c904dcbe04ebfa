package estate

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// MaxName is the longest name of an agent or a container, in bytes.
const MaxName = 240

// CheckName says whether an agent or a container can have the name; the error is a *NameError that
// matches ErrName. A name is 1 to 240 bytes of UTF-8, all of it printable, and one folder's name on every
// system: without separators, without what Windows keeps for itself (< > : " | ? *, a blank or a dot at
// the end, its devices' names), and without a dot or a blank at the beginning.
func CheckName(name string) error {
	if reason := badName(name); reason != "" {
		return &NameError{Name: name, Reason: reason, kind: ErrName}
	}
	return nil
}

func badName(name string) string {
	switch {
	case name == "":
		return "it is empty"
	case name == "." || name == "..":
		return "it means a folder on the way, not one of its own"
	case len(name) > MaxName:
		return fmt.Sprintf("it has %d bytes, at most %d", len(name), MaxName)
	case !utf8.ValidString(name):
		return "it is not UTF-8"
	case name[0] == '.' || name[0] == ' ':
		return "it begins with a dot or a blank"
	case strings.HasSuffix(name, ".") || strings.HasSuffix(name, " "):
		return "it ends with a dot or a blank"
	}
	for _, r := range name {
		switch {
		case r == '/' || r == '\\':
			return "it holds a separator"
		case !unicode.IsPrint(r):
			return fmt.Sprintf("it holds %U, which is not printable", r)
		case strings.ContainsRune(`<>:"|?*`, r):
			return fmt.Sprintf("it holds %q, which not every system allows", r)
		}
	}
	if isDevice(name) {
		return "it is a device's name on Windows"
	}
	return ""
}

// isDevice tells of the names that Windows takes for devices in every folder, with any ending.
func isDevice(name string) bool {
	stem, _, _ := strings.Cut(name, ".")
	stem = strings.ToUpper(strings.TrimRight(stem, " "))
	switch stem {
	case "CON", "PRN", "AUX", "NUL", "CONIN$", "CONOUT$":
		return true
	}
	for _, port := range []string{"COM", "LPT"} {
		digit, ok := strings.CutPrefix(stem, port)
		if ok && utf8.RuneCountInString(digit) == 1 && strings.Contains("0123456789¹²³", digit) {
			return true
		}
	}
	return false
}

// checkCase refuses a name that one of the names there equals but for case: on some systems the two are
// one folder, and on others two. It says whether the name itself is there.
func checkCase(name string, there []string) (exists bool, err error) {
	other := ""
	for _, n := range there {
		if n == name {
			return true, nil
		}
		if strings.EqualFold(n, name) {
			other = n
		}
	}
	if other != "" {
		return false, &NameError{Name: name, Reason: fmt.Sprintf("%q is there, and differs in case only", other), kind: ErrTaken}
	}
	return false, nil
}
