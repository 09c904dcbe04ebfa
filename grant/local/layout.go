package local

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/stile-lock/stile/grant"
	"github.com/stile-lock/stile/internal/display"
	"github.com/stile-lock/stile/internal/vfs"
)

// The names in an estate. None of those with a leading dot can be a container's: grant.CheckName.
const (
	containersName = "containers"
	nestingName    = ".nesting" // guarded by a kernel lock: who acquires looks at all containers

	pagesName   = "pages"
	objectsName = "objects"
	pendingName = "pending"
	tornName    = "torn"
	hintName    = "head"
	fenceName   = "fence"   // guarded by a kernel lock: the beginning and the end of grants
	publishName = "publish" // guarded by a lock file, where there are no hard links

	pendingBase = "new" // of the names in pendingName
	pageSuffix  = ".json"
)

// maxPage bounds what is read of a page. A page within grant's own limits is far smaller.
const maxPage = 4 << 20

// place is a page's place in the order of its container: a name in the pages folder. A page follows its base:
// place {base's epoch, base's rev + 1}. So the first page of a later epoch lies in the epoch before, under the
// number that any other page would have needed, and from then on nothing can be published there.
type place struct{ epoch, rev int64 }

// first is the place of the page that has no base, whatever its epoch.
var first = place{1, 1}

// after is the place of whatever follows the revision.
func after(r grant.Ref) place {
	if r == (grant.Ref{}) {
		return first
	}
	return place{r.Epoch, r.Rev + 1}
}

func (p place) name() string { return fmt.Sprintf("%04d-%016d%s", p.epoch, p.rev, pageSuffix) }

// parsePlace reads what name writes, and nothing else.
func parsePlace(name string) (place, bool) {
	s, ok := strings.CutSuffix(name, pageSuffix)
	if !ok {
		return place{}, false
	}
	e, r, ok := strings.Cut(s, "-")
	if !ok {
		return place{}, false
	}
	epoch, err := strconv.ParseInt(e, 10, 64)
	if err != nil {
		return place{}, false
	}
	rev, err := strconv.ParseInt(r, 10, 64)
	if err != nil {
		return place{}, false
	}
	p := place{epoch, rev}
	return p, epoch > 0 && rev > 0 && epoch <= grant.MaxNumber && rev <= grant.MaxNumber && p.name() == name
}

// box is a container's folder.
type box struct {
	s    *Store
	name string
	dir  string
}

func (s *Store) box(container string) (*box, error) {
	if err := grant.CheckName(container); err != nil {
		return nil, err
	}
	return &box{s: s, name: container, dir: filepath.Join(s.root, container)}, nil
}

func (b *box) path(elem ...string) string {
	return filepath.Join(append([]string{b.dir}, elem...)...)
}

func (b *box) page(p place) string { return filepath.Join(b.dir, pagesName, p.name()) }

// ErrNotFolder says that a link or something else stands where a folder of the store should be. It is not
// followed.
var ErrNotFolder = errors.New("not a folder")

// there checks that the container's folders are there and no links, and remembers that they were: whoever can
// put a link there later can write the pages as well.
func (b *box) there() error {
	if b.s.known(b.name) {
		return nil
	}
	for _, dir := range []string{b.s.root, b.dir, b.path(pagesName)} {
		if err := b.s.isFolder(dir); err != nil {
			if errors.Is(err, fs.ErrNotExist) {
				return fmt.Errorf("container %s: %w: there is no %s", display.Text(b.name), grant.ErrLockMissing, display.Text(dir))
			}
			return err
		}
	}
	b.s.learn(b.name)
	return nil
}

func (s *Store) isFolder(dir string) error {
	info, err := s.seams.FS.Lstat(dir)
	switch {
	case err != nil:
		return fmt.Errorf("look at %s: %w", display.Text(dir), err)
	case !info.Mode.IsDir():
		return fmt.Errorf("%s: %w", display.Text(dir), ErrNotFolder)
	}
	return nil
}

// mkdir makes a folder unless it is there, and its name durable either way: a process that died between both
// may have left it.
func (s *Store) mkdir(dir string, perm fs.FileMode) error {
	maker, ok := s.seams.FS.(vfs.FolderMaker)
	if !ok {
		return fmt.Errorf("make %s: %w", display.Text(dir), errors.ErrUnsupported)
	}
	if err := maker.Mkdir(dir, perm); err != nil {
		if !errors.Is(err, fs.ErrExist) {
			return fmt.Errorf("make %s: %w", display.Text(dir), err)
		}
		if err := s.isFolder(dir); err != nil {
			return err
		}
	}
	if err := s.seams.FS.SyncDir(filepath.Dir(dir)); err != nil {
		return fmt.Errorf("make %s: %w", display.Text(dir), err)
	}
	return nil
}

// create makes the container's folders.
func (b *box) create() error {
	for _, dir := range []string{b.s.root, b.dir, b.path(pendingName), b.path(pagesName)} {
		if err := b.s.mkdir(dir, 0o777); err != nil {
			return err
		}
	}
	return nil
}
