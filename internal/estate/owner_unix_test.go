//go:build unix

package estate

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
)

// An estate that another user left where it is found is refused; named, it is the caller's choice.
func TestForeignEstate(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("giving a folder away takes root")
	}
	top := tree(t, map[string]string{".stile/estate.json": mark})
	path := filepath.Join(top, ".stile")
	must(t, os.Chown(path, 12345, -1))
	if _, err := Open(Options{Dir: top}); !errors.Is(err, ErrForeign) {
		t.Errorf("found: %v", err)
	}
	if _, _, err := Init(Options{Dir: top}); !errors.Is(err, ErrForeign) {
		t.Errorf("init: %v", err)
	}
	e, err := Open(Options{Environment: path})
	must(t, err)
	must(t, e.Close())
}
