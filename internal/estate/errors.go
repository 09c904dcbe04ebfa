package estate

import (
	"errors"
	"fmt"

	"github.com/stile-lock/stile/internal/display"
	"github.com/stile-lock/stile/internal/vfs"
)

// What an error of this package can match with errors.Is. Errors of the system are themselves.
var (
	// ErrNone: no estate is in reach.
	ErrNone = errors.New("no estate in reach")
	// ErrMissing: the estate that was named is not there.
	ErrMissing = errors.New("there is no such folder")
	// ErrNotEstate: the folder is there, and holds no estate.json.
	ErrNotEstate = errors.New("not an estate: it holds no estate.json")
	// ErrDamaged: estate.json, or a folder of the estate, is not what it should be.
	ErrDamaged = errors.New("the estate is damaged")
	// ErrNewer: a newer stile has written it. Nothing is touched.
	ErrNewer = errors.New("written by a newer stile")
	// ErrTwo: two estates are in reach, and programs started elsewhere would take the other.
	ErrTwo = errors.New("two estates are in reach")
	// ErrForeign: it was found, not named, and belongs to another user.
	ErrForeign = errors.New("the estate belongs to another user")
	// ErrLink: a symbolic link lies where none is followed.
	ErrLink = vfs.ErrLink
	// ErrNoAgent: the estate has no such agent, or no such container.
	ErrNoAgent = errors.New("not in the estate")
	// ErrName: no agent or container can have the name. The error is a *NameError.
	ErrName = errors.New("not a possible name")
	// ErrTaken: another agent's or container's name differs from this one in case only. The error is a
	// *NameError.
	ErrTaken = errors.New("the name differs from another in case only")
)

// NameError says why a name cannot be an agent's or a container's.
type NameError struct {
	Name   string // as it was given
	Reason string
	kind   error
}

func (e *NameError) Error() string {
	return fmt.Sprintf("name %q: %s", display.Text(short(e.Name)), e.Reason)
}

// Unwrap gives ErrName or ErrTaken.
func (e *NameError) Unwrap() error { return e.kind }

// short keeps a message readable when somebody gives a name of a megabyte.
func short(s string) string {
	if len(s) > 300 {
		return s[:300] + "…"
	}
	return s
}
