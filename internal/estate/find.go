package estate

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/stile-lock/stile/internal/display"
)

// How says by what an estate was found.
type How string

// The ways, in the order of their precedence. An estate found by the last two must be the caller's own.
const (
	ByFlag        How = "flag"        // --estate
	ByEnvironment How = "environment" // STILE_ESTATE
	ByFolder      How = "folder"      // the nearest folder upwards that holds .stile
	ByGit         How = "git"         // the git common directory, which all worktrees share
)

// Options are where to look. The zero value looks upwards from the working folder.
type Options struct {
	Flag        string // the value of --estate; empty: not given
	Environment string // the value of STILE_ESTATE; empty: not given
	Dir         string // where the search begins; empty: the working folder
}

// Place is where an estate is, and how that is known.
type Place struct {
	Path string // absolute
	How  How
	// By is the folder that led there: the one that holds .stile, or the git common directory. Empty when
	// the estate was named.
	By string
}

// Reason says for people why the estate is the one in use.
func (p Place) Reason() string {
	switch p.How {
	case ByFlag:
		return "named by --estate"
	case ByEnvironment:
		return "named by STILE_ESTATE"
	case ByFolder:
		return "the nearest .stile upwards, in " + display.Text(p.By)
	case ByGit:
		return "of the git repository " + display.Text(p.By) + ", shared by its worktrees"
	}
	return string(p.How)
}

const (
	folderName = ".stile" // beside what it serves
	gitName    = "stile"  // in a git common directory
	markName   = "estate.json"
	agentsName = "agents"
	// containersName is where the grants' containers are.
	containersName = "containers"
)

// Find says where the estate in use is, without opening it. When none is in reach the error is ErrNone,
// when two are ErrTwo.
func Find(o Options) (Place, error) {
	if p, ok, err := named(o); ok || err != nil {
		return p, err
	}
	r, err := search(o.Dir)
	switch {
	case err != nil:
		return Place{}, err
	case r.folder != "" && r.git != "" && marked(filepath.Join(r.git, gitName)):
		return Place{}, fmt.Errorf("%w: %s, and %s of the git repository", ErrTwo,
			display.Text(filepath.Join(r.folder, folderName)), display.Text(filepath.Join(r.git, gitName)))
	case r.folder != "":
		return Place{Path: filepath.Join(r.folder, folderName), How: ByFolder, By: r.folder}, nil
	case r.git != "":
		p := Place{Path: filepath.Join(r.git, gitName), How: ByGit, By: r.git}
		if _, err := os.Lstat(p.Path); !errors.Is(err, fs.ErrNotExist) {
			return p, err
		}
	}
	return Place{}, fmt.Errorf("%w of %s", ErrNone, display.Text(r.from))
}

// named gives the estate that the options name. Links on the way to it are its user's own choice.
func named(o Options) (p Place, ok bool, err error) {
	switch {
	case o.Flag != "":
		p = Place{Path: o.Flag, How: ByFlag}
	case o.Environment != "":
		p = Place{Path: o.Environment, How: ByEnvironment}
	default:
		return Place{}, false, nil
	}
	if p.Path, err = filepath.Abs(p.Path); err != nil {
		return Place{}, false, fmt.Errorf("find the working folder: %w", err)
	}
	if whole, err := filepath.EvalSymlinks(p.Path); err == nil {
		p.Path = whole
	}
	return p, true, nil
}

// reach is what a search upwards has come upon.
type reach struct {
	from   string
	folder string // the nearest that holds .stile
	git    string // the common directory of the nearest git repository
}

func search(dir string) (reach, error) {
	if dir == "" {
		dir = "."
	}
	dir, err := filepath.Abs(dir)
	if err == nil {
		dir, err = filepath.EvalSymlinks(dir)
	}
	if err != nil {
		return reach{}, fmt.Errorf("search an estate: %w", err)
	}
	r := reach{from: dir}
	for {
		if r.folder == "" {
			// A link counts as found, and is then refused: skipping it would go on to another estate.
			if is, err := os.Lstat(filepath.Join(dir, folderName)); err == nil && (is.IsDir() || is.Mode()&fs.ModeSymlink != 0) {
				r.folder = dir
			}
		}
		if r.git == "" {
			if r.git, err = gitCommon(dir); err != nil {
				return reach{}, err
			}
		}
		parent := filepath.Dir(dir)
		if parent == dir || r.folder != "" && r.git != "" {
			return r, nil
		}
		dir = parent
	}
}

// marked says whether the folder is an estate.
func marked(path string) bool {
	_, err := os.Lstat(filepath.Join(path, markName))
	return err == nil
}

// Of gives the estate in whose agents a file lies, by its canonical path, or "". There the lock file
// family rules.
func Of(canonical string) string {
	for dir := filepath.Dir(canonical); ; {
		parent := filepath.Dir(dir)
		if parent == dir {
			return ""
		}
		if filepath.Base(dir) == agentsName && marked(parent) {
			return parent
		}
		dir = parent
	}
}
