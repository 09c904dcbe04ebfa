package dispatch

import (
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"github.com/stile-lock/stile/internal/display"
	"github.com/stile-lock/stile/internal/estate"
	"github.com/stile-lock/stile/internal/seam"
	"github.com/stile-lock/stile/lockfile"
)

// Options say which estate is meant; the zero value means the one in reach of the working folder.
type Options = estate.Options

// Estate is an estate that was opened. It may be used by several goroutines, and must be closed.
type Estate struct {
	// Timeout is how long a change waits for a held lock, as lockfile.Options has it.
	Timeout time.Duration

	in    *estate.Estate
	seams *seam.Set // as it was given; each folder has its own files in it
}

// OpenEstate finds the estate that is meant, and opens it. It changes nothing.
func OpenEstate(o Options) (*Estate, error) {
	in, err := estate.Open(o)
	if err != nil {
		return nil, err
	}
	return &Estate{in: in}, nil
}

// Close ends the use of the estate.
func (e *Estate) Close() error { return e.in.Close() }

// Path is the estate's folder.
func (e *Estate) Path() string { return e.in.Path }

// Agents lists the names of the estate's agents, sorted.
func (e *Estate) Agents() ([]string, error) { return e.in.Agents() }

// LogPath is where an agent's log is, for people: a log is only changed through this package.
func (e *Estate) LogPath(agent string) string { return filepath.Join(e.in.AgentPath(agent), logName) }

const (
	logName     = "spawn-log.json"
	boardFolder = "board"
	boardName   = "board.json"
)

// agent is an agent's folder in the hands of one call.
type agent struct {
	name    string
	folder  *estate.Folder
	log     string
	seams   *seam.Set // complete; its files are the folder's
	given   *seam.Set
	in      *Estate
	timeout time.Duration
}

func (e *Estate) agent(name string, create bool) (*agent, error) {
	f, err := e.in.Agent(name, create)
	if err != nil {
		return nil, err
	}
	return &agent{
		name: name, folder: f, log: filepath.Join(f.Path, logName), seams: filesIn(e.seams, f), given: e.seams,
		in: e, timeout: e.Timeout,
	}, nil
}

// Command is a command line that an operator can copy: stile, the verb, and the flags that name the agent
// and, when it was named by a flag, the estate.
func (e *Estate) Command(verb, agent string) string {
	cmd := "stile " + verb + " --agent " + display.ShellWord(agent)
	if e.in.How == estate.ByFlag {
		cmd += " --estate " + display.ShellWord(e.in.Path)
	}
	return cmd
}

// filesIn is a choice of seams whose files are those of a folder of the estate.
func filesIn(given *seam.Set, f *estate.Folder) *seam.Set {
	s := seam.Set{}
	if given != nil {
		s = *given
	}
	s.FS = f.FS
	return s.Or()
}

func (a *agent) close() error { return a.folder.Close() }

// unlock and repair are the commands that messages name.
func (a *agent) unlock() string { return a.in.Command("dispatch unlock", a.name) }
func (a *agent) repair() string { return a.in.Command("board repair", a.name) }

func (a *agent) shown() string { return display.Text(a.name) }

// lockOptions are those of the log's lock.
func (a *agent) lockOptions() lockfile.Options {
	return lockfile.Options{Timeout: a.timeout, UnlockHint: a.unlock(), Seams: a.seams}
}

// Records visits the dispatches in an agent's log, in its order, as they are at one moment. It holds one of
// them at a time in memory. No log is one without records; a log that is not what it should be is a
// *FileError, after what comes before the damage was visited. An error of visit ends it and is returned.
func (e *Estate) Records(agent string, visit func(Record) error) error {
	return e.Raw(agent, func(raw []byte) error {
		r, ok := parseRecord(raw)
		if !ok {
			return errNoObject
		}
		return visit(r)
	})
}

// Raw is Records with each record as the log has it: valid JSON, which is visit's until it returns.
func (e *Estate) Raw(agent string, visit func(raw []byte) error) (err error) {
	a, err := e.agent(agent, false)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, a.close()) }()
	return a.records(visit)
}

var errNoObject = errors.New("it is no JSON object")

// Find gives the one record of a dispatch: in an agent's log, or in any when none is named. It is
// ErrNoDispatch when there is none, and ErrDuplicate when there are several.
func (e *Estate) Find(agent, id string) (name string, raw []byte, err error) {
	names := []string{agent}
	if agent == "" {
		if names, err = e.Agents(); err != nil {
			return "", nil, err
		}
	}
	var damaged error
	for _, n := range names {
		err := e.Raw(n, func(r []byte) error {
			switch {
			case idOf(r) != id:
				return nil
			case raw != nil:
				return fmt.Errorf("dispatch %s, of %s and of %s: %w", display.Text(id), display.Text(name), display.Text(n), ErrDuplicate)
			}
			name, raw = n, append([]byte{}, r...)
			return nil
		})
		switch {
		case errors.Is(err, ErrDuplicate) || agent != "" && err != nil:
			return "", nil, err
		case err != nil && damaged == nil:
			damaged = err // another agent's trouble, unless the dispatch is nowhere else
		}
	}
	switch {
	case raw != nil:
		return name, raw, nil
	case damaged != nil:
		return "", nil, fmt.Errorf("dispatch %s: not in the logs that can be read: %w", display.Text(id), damaged)
	}
	return "", nil, fmt.Errorf("dispatch %s: %w", display.Text(short(id)), ErrNoDispatch)
}
