package register

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// errAside says that the folder which was to be replaced lies in ours, and could not be put back.
var errAside = errors.New("what was there has been moved")

// asideName is where it lies, beside the tree.
const asideName = "old"

// displace moves a folder out of the way, and the tree in its place. For a moment there is none; a failure puts the
// old one back.
func displace(tree, dir string) error {
	aside := filepath.Join(filepath.Dir(tree), asideName)
	if err := os.Rename(dir, aside); err != nil {
		return err
	}
	err := os.Rename(tree, dir)
	if err == nil {
		return nil
	}
	if back := os.Rename(aside, dir); back != nil {
		return fmt.Errorf("%w; %w to %s: %w", err, errAside, aside, back)
	}
	return err
}
