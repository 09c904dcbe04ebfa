package local

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"path/filepath"
	"sync"

	"github.com/stile-lock/stile/grant"
	"github.com/stile-lock/stile/internal/display"
	"github.com/stile-lock/stile/internal/seam"
)

// Options are the choices of a Store. The zero value works.
type Options struct {
	// State is the user's own folder for witnesses and sessions; StateDir when empty. Where there is none,
	// there are no witnesses, and sessions are refused.
	State string
	// Estate tells estates apart in State: as a rule what estate.json says. Empty: by the estate's path.
	Estate string
	// Log is told what failed and does not matter to the result: a witness that could not be written. May
	// be nil.
	Log *slog.Logger
	// Seams is for this module's own tests and for simulated clocks.
	Seams *seam.Set

	// fence replaces kernel locks where files are not the system's. Tests only.
	fence func(ctx context.Context, target string) (release func() error, err error)
}

// Store keeps an estate's containers. Its methods may be called from any goroutine.
type Store struct {
	root   string // the folder of the containers
	estate string // what tells the estate apart
	state  string // may be empty
	seams  *seam.Set
	log    *slog.Logger
	fence  func(ctx context.Context, target string) (func() error, error)
	share  func(ctx context.Context, target string) (func() error, error)

	mu    sync.Mutex
	boxes map[string]*memory
}

var (
	_ grant.Store   = (*Store)(nil)
	_ grant.Clock   = (*Store)(nil)
	_ grant.Watcher = (*Store)(nil)
)

// memory is what the process knows of a container. Only what it has seen stands in it.
type memory struct {
	folders bool         // were there, and were folders
	top     place        // the highest place that was seen; zero when none was
	hint    place        // what the hint file says, or the file's last writer in this process wrote
	dirty   []place      // published, and not known to be on the disk
	kinds   []grant.Kind // whose objects' folders are there, durably
	// placed has the kinds of objects whose names may not be on the disk yet, each with a number that rises with
	// each of them. Replaced, never changed: recall gives it to readers.
	placed   map[grant.Kind]int64
	placings int64
	noLinks  bool // link() does not work there

	page grant.Revision         // the page that was read last; its bytes are compared before it is used
	read map[string]witnessRead // of the witness files
}

// Open gives the store in an estate's folder. It makes nothing; the first container makes its folders.
func Open(estate string, o Options) (*Store, error) {
	if estate == "" {
		return nil, errors.New("open store: no estate named")
	}
	s := &Store{seams: o.Seams.Or(), log: o.Log, state: o.State, estate: o.Estate, fence: o.fence, boxes: map[string]*memory{}}
	if o.Seams == nil || o.Seams.FS == nil {
		whole, err := filepath.Abs(estate)
		if err == nil {
			whole, err = filepath.EvalSymlinks(whole)
		}
		if err != nil {
			return nil, fmt.Errorf("open store: %w", err)
		}
		estate = whole
	}
	if err := s.isFolder(estate); err != nil {
		return nil, fmt.Errorf("open store: %w", err)
	}
	s.root = filepath.Join(estate, containersName)
	if s.estate == "" {
		sum := sha256.Sum256([]byte(estate))
		s.estate = hex.EncodeToString(sum[:8])
	} else if grant.CheckName(s.estate) != nil {
		return nil, fmt.Errorf("open store: %q cannot name an estate", display.Text(s.estate))
	}
	if s.state == "" {
		s.state = StateDir()
	}
	s.share = o.fence
	if s.fence == nil {
		s.fence, s.share = kernelFence, kernelShare
	}
	if s.log == nil {
		s.log = slog.New(slog.DiscardHandler)
	}
	return s, nil
}

// Now is the host's wall clock: one for all who use the store.
func (s *Store) Now(ctx context.Context) (grant.Time, error) {
	if err := ctx.Err(); err != nil {
		return 0, err
	}
	return grant.TimeOf(s.seams.Clock.Now()), nil
}

// Containers lists the containers, in order. A folder in which no container was ever begun is none; one whose
// pages are gone is, and its Head says grant.ErrLockMissing.
func (s *Store) Containers(ctx context.Context) ([]string, error) {
	names, err := s.seams.FS.List(s.root, "")
	if errors.Is(err, fs.ErrNotExist) {
		return nil, ctx.Err()
	}
	if err != nil {
		return nil, fmt.Errorf("list containers: %w", err)
	}
	var found []string
	for _, name := range names {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		b, err := s.box(name)
		if err != nil {
			continue // a file of the store's own, or nothing of ours
		}
		begun, err := b.begun()
		if err != nil {
			return nil, err
		}
		if begun {
			found = append(found, name)
		}
	}
	return found, nil
}

// begun tells whether a container was ever begun there.
func (b *box) begun() (bool, error) {
	for _, name := range []string{b.page(first), b.path(hintName)} {
		_, err := b.s.seams.FS.Lstat(name)
		if err == nil {
			return true, nil
		}
		// ENOTDIR is no fs.ErrNotExist: a plain file among the containers.
		if info, lerr := b.s.seams.FS.Lstat(b.dir); lerr == nil && !info.Mode.IsDir() {
			return false, nil
		}
		if !errors.Is(err, fs.ErrNotExist) {
			return false, fmt.Errorf("look at %s: %w", display.Text(name), err)
		}
	}
	return false, nil
}

func (s *Store) remember(container string, f func(*memory)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	m := s.boxes[container]
	if m == nil {
		m = &memory{}
		s.boxes[container] = m
	}
	f(m)
}

func (s *Store) recall(container string) memory {
	s.mu.Lock()
	defer s.mu.Unlock()
	if m := s.boxes[container]; m != nil {
		return *m
	}
	return memory{}
}

func (s *Store) known(container string) bool { return s.recall(container).folders }

func (s *Store) learn(container string) { s.remember(container, func(m *memory) { m.folders = true }) }
