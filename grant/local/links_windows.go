package local

import (
	"errors"

	"golang.org/x/sys/windows"
)

// lacksLinksHere knows how Windows says that a volume has no hard links.
func lacksLinksHere(err error) bool {
	return errors.Is(err, windows.ERROR_INVALID_FUNCTION) || errors.Is(err, windows.ERROR_NOT_SUPPORTED) ||
		errors.Is(err, windows.ERROR_NOT_SAME_DEVICE)
}
