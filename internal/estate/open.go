package estate

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/stile-lock/stile/internal/display"
	"github.com/stile-lock/stile/internal/vfs"
)

// version is the form of an estate that this program writes and understands.
const version = 1

// maxMark bounds what is read of estate.json.
const maxMark = 64 << 10

// Estate is an estate that was opened. It may be used by several goroutines, and must be closed.
type Estate struct {
	Place

	root *os.Root
}

// Open finds the estate in use and opens it.
func Open(o Options) (*Estate, error) {
	p, err := Find(o)
	if err != nil {
		return nil, err
	}
	return p.Open()
}

// Open opens the estate at the place. It changes nothing.
func (p Place) Open() (*Estate, error) {
	root, err := p.root()
	if err != nil {
		return nil, err
	}
	e := &Estate{Place: p, root: root}
	if err := e.check(); err != nil {
		return nil, errors.Join(err, root.Close())
	}
	return e, nil
}

// root opens the folder, which is no link, and which belongs to the caller unless it was named.
func (p Place) root() (*os.Root, error) {
	is, err := os.Lstat(p.Path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf("open the estate %s: %w", display.Text(p.Path), ErrMissing)
	case err != nil:
		return nil, fmt.Errorf("open the estate: %w", err)
	case is.Mode()&fs.ModeSymlink != 0:
		return nil, fmt.Errorf("open the estate %s: it is %w", display.Text(p.Path), ErrLink)
	case !is.IsDir():
		return nil, fmt.Errorf("open the estate %s: %w: it is no folder", display.Text(p.Path), ErrDamaged)
	}
	root, err := os.OpenRoot(p.Path)
	if err != nil {
		return nil, fmt.Errorf("open the estate: %w", err)
	}
	now, err := root.Stat(".")
	switch {
	case err != nil:
	case !os.SameFile(is, now):
		err = errReplaced
	case p.How != ByFlag && p.How != ByEnvironment:
		err = ownedByCaller(now)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("open the estate %s: %w", display.Text(p.Path), err), root.Close())
	}
	return root, nil
}

var errReplaced = errors.New("it was replaced while it was opened")

// check reads estate.json.
func (e *Estate) check() error {
	files := vfs.Folder(e.root, e.Path)
	f, err := files.Open(filepath.Join(e.Path, markName))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("%s: %w", display.Text(e.Path), ErrNotEstate)
	case err != nil:
		return fmt.Errorf("open the estate: %w", err)
	}
	defer f.Close() // a failed close of what was only read loses nothing
	data, whole, err := vfs.ReadAll(f, maxMark)
	if err != nil {
		return fmt.Errorf("open the estate: %w", err)
	}
	var mark struct {
		V *int `json:"v"`
	}
	switch err := json.Unmarshal(data, &mark); {
	case !whole || err != nil:
		return fmt.Errorf("%s: %w: estate.json is not one JSON object", display.Text(e.Path), ErrDamaged)
	case mark.V != nil && *mark.V > version:
		return fmt.Errorf("%s: %w: its form is %d, and %d is the newest known here", display.Text(e.Path), ErrNewer, *mark.V, version)
	case mark.V == nil || *mark.V < 1:
		return fmt.Errorf("%s: %w: estate.json does not say its form", display.Text(e.Path), ErrDamaged)
	}
	return nil
}

// Close ends the use of the estate, not that of folders opened in it.
func (e *Estate) Close() error { return e.root.Close() }

// Folder is one folder of an estate.
type Folder struct {
	Path string // for people, and to name files by
	// FS is the files of this folder, and of no other.
	FS vfs.FS

	root *os.Root
}

// Close ends the use of the folder.
func (f *Folder) Close() error { return f.root.Close() }

// Sub opens a folder in this one, and follows no link. With create it makes one that is missing; else
// that is fs.ErrNotExist.
func (f *Folder) Sub(name string, create bool) (*Folder, error) {
	path := filepath.Join(f.Path, name)
	root, err := openIn(f.root, name, path, create)
	if err != nil {
		return nil, err
	}
	return &Folder{Path: path, FS: vfs.Folder(root, path), root: root}, nil
}

func openIn(in *os.Root, name, path string, create bool) (*os.Root, error) {
	is, err := in.Lstat(name)
	if create && errors.Is(err, fs.ErrNotExist) {
		if err = in.Mkdir(name, 0o777); err == nil || errors.Is(err, fs.ErrExist) {
			// What is synced in a folder is lost with it, if its own name is not on disk.
			dir := filepath.Dir(path)
			if err = vfs.Folder(in, dir).SyncDir(dir); err == nil {
				is, err = in.Lstat(name)
			}
		}
	}
	switch {
	case err != nil:
		return nil, &fs.PathError{Op: "open", Path: path, Err: withoutPath(err)}
	case is.Mode()&fs.ModeSymlink != 0:
		return nil, fmt.Errorf("open %s: it is %w", display.Text(path), ErrLink)
	case !is.IsDir():
		return nil, fmt.Errorf("open %s: %w: it is no folder", display.Text(path), ErrDamaged)
	}
	root, err := in.OpenRoot(name)
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: path, Err: withoutPath(err)}
	}
	now, err := root.Stat(".")
	if err == nil && !os.SameFile(is, now) {
		err = errReplaced
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("open %s: %w", display.Text(path), err), root.Close())
	}
	return root, nil
}

func withoutPath(err error) error {
	var pe *fs.PathError
	if errors.As(err, &pe) {
		return pe.Err
	}
	return err
}

// Agent opens the folder of an agent. With create it makes one that is missing; else that is ErrNoAgent.
func (e *Estate) Agent(name string, create bool) (*Folder, error) {
	return e.member(agentsName, name, create)
}

// Agents lists the names of the estate's agents, sorted. A folder whose name no agent can have is none.
func (e *Estate) Agents() ([]string, error) { return e.members(agentsName) }

// AgentPath is where an agent's folder is, whether it is there or not.
func (e *Estate) AgentPath(name string) string { return filepath.Join(e.Path, agentsName, name) }

func (e *Estate) member(kind, name string, create bool) (*Folder, error) {
	if err := CheckName(name); err != nil {
		return nil, err
	}
	all, err := e.kind(kind, create)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, e.missing(kind, name)
	}
	if err != nil {
		return nil, err
	}
	defer all.Close() // only its folder is used further
	there, err := all.FS.List(all.Path, "")
	if err != nil {
		return nil, err
	}
	exists, err := checkCase(name, there)
	switch {
	case err != nil:
		return nil, err
	case !exists && !create:
		return nil, e.missing(kind, name)
	}
	return all.Sub(name, create)
}

// missing is the error for an agent or container that is not there.
func (e *Estate) missing(kind, name string) error {
	return fmt.Errorf("%s \"%s\": %w %s", strings.TrimSuffix(kind, "s"), display.Text(name), ErrNoAgent, display.Text(e.Path))
}

// kind opens the folder that holds all agents, or all containers.
func (e *Estate) kind(kind string, create bool) (*Folder, error) {
	top := Folder{Path: e.Path, root: e.root}
	return top.Sub(kind, create)
}

func (e *Estate) members(kind string) ([]string, error) {
	all, err := e.kind(kind, false)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer all.Close() // a failed close of what was only read loses nothing
	names, err := all.FS.List(all.Path, "")
	if err != nil {
		return nil, err
	}
	names = slices.DeleteFunc(names, func(name string) bool {
		if CheckName(name) != nil {
			return true
		}
		// A link stays: whoever opens it is told.
		is, err := all.root.Lstat(name)
		return err != nil || !is.IsDir() && is.Mode()&fs.ModeSymlink == 0
	})
	return names, nil
}
