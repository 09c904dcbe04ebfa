package estate

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/stile-lock/stile/internal/commit"
	"github.com/stile-lock/stile/internal/display"
	"github.com/stile-lock/stile/internal/seam"
	"github.com/stile-lock/stile/internal/sweep"
	"github.com/stile-lock/stile/internal/vfs"
)

// Init makes an estate, or completes one, and says where it is and whether it was new. A named one is made
// where it is named (its folder's folder must be there); inside git one for all worktrees, in the common
// directory; elsewhere a .stile in the folder where the search begins. What is there already is left as it
// is. An estate that Find would then not take is not made: ErrTwo.
func Init(o Options) (p Place, made bool, err error) {
	p, err = initPlace(o)
	if err != nil {
		return Place{}, false, err
	}
	if err := os.Mkdir(p.Path, 0o777); err != nil && !errors.Is(err, fs.ErrExist) {
		return Place{}, false, fmt.Errorf("make the estate: %w", err)
	}
	root, err := p.root()
	if err != nil {
		return Place{}, false, err
	}
	e := &Estate{Place: p, root: root}
	made, err = e.complete()
	return p, made, errors.Join(err, e.Close())
}

// initPlace says where an estate is to be made.
func initPlace(o Options) (Place, error) {
	if p, ok, err := named(o); ok || err != nil {
		return p, err
	}
	r, err := search(o.Dir)
	if err != nil {
		return Place{}, err
	}
	if r.git == "" {
		return Place{Path: filepath.Join(r.from, folderName), How: ByFolder, By: r.from}, nil
	}
	p := Place{Path: filepath.Join(r.git, gitName), How: ByGit, By: r.git}
	if r.folder != "" {
		return Place{}, fmt.Errorf("%w: %s is there, and %s would be made for the git repository", ErrTwo,
			display.Text(filepath.Join(r.folder, folderName)), display.Text(p.Path))
	}
	return p, nil
}

// complete makes what is missing, estate.json last: before it the folder is no estate.
func (e *Estate) complete() (made bool, err error) {
	err = e.check()
	if err != nil && !errors.Is(err, ErrNotEstate) {
		return false, err
	}
	made = err != nil
	for _, kind := range []string{agentsName, containersName} {
		f, err := e.kind(kind, true)
		if err == nil {
			err = f.Close()
		}
		if err != nil {
			return false, err
		}
	}
	if !made {
		return false, nil
	}
	s := (&seam.Set{FS: vfs.Folder(e.root, e.Path)}).Or()
	t := commit.Target{Seams: s, Path: filepath.Join(e.Path, markName), Sync: true,
		Fence: func() error { return nil }} // whoever else makes it writes the same
	if err := sweep.Dir(s, t.Path); err != nil {
		return false, err
	}
	return true, t.Write(func(w io.Writer) error {
		_, err := fmt.Fprintf(w, "{\"v\":%d}\n", version)
		return err
	})
}
