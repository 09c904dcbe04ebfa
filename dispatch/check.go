package dispatch

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/stile-lock/stile/internal/display"
	"github.com/stile-lock/stile/internal/format"
	"github.com/stile-lock/stile/internal/seam"
	"github.com/stile-lock/stile/internal/sweep"
	"github.com/stile-lock/stile/lockfile"
)

// Kind is a kind of problem that Check finds.
type Kind string

// The kinds.
const (
	LockHeld        Kind = "lock-held"             // the log's lock is held for more than lockfile.StaleAfter
	NotOnBoard      Kind = "dispatch-not-on-board" // a dispatch in the log has no item
	NoDispatch      Kind = "item-without-dispatch" // an item's dispatch is not in the log
	ItemBehind      Kind = "item-behind"           // a dispatch is closed, and its item is not under "done"
	UnreadableLog   Kind = "unreadable-log"        // it, or the agent's folder, cannot be read, is no log, or has an id twice
	UnreadableBoard Kind = "unreadable-board"      // it, or its folder, cannot be read or is no board
	UnreadableLock  Kind = "unreadable-lock"       // what is in the lock's place is no lock file: nobody can write
)

// Problem is one thing that Check found.
type Problem struct {
	Kind  Kind
	Agent string
	// Dispatch is the id that it is about; empty when it is about none.
	Dispatch string
	// Lock is the lock, of LockHeld only.
	Lock *lockfile.State
	Err  error // what could not be read; nil for the kinds that are about an id or a lock
	// Hint is the command that mends it; empty when there is none.
	Hint string
}

// unlockWords is the command that the line about a held lock leads with.
const unlockWords = "stile dispatch unlock"

// String is the problem in one line. That of a held lock has at most 362 characters, and leads with a
// command that means the one log that is locked; Hint has the agent's whole name.
func (p Problem) String() string {
	id, name := lockfile.CapForDisplay(p.Dispatch), lockfile.CapForDisplay(p.Agent)
	switch p.Kind {
	case LockHeld:
		return p.Lock.Line(unlockWords)
	case NotOnBoard:
		return fmt.Sprintf("dispatch %s of %s is not on the board: %s", id, name, p.Hint)
	case NoDispatch:
		return fmt.Sprintf("item %s on the board of %s has no dispatch in the log", id, name)
	case ItemBehind:
		return fmt.Sprintf("dispatch %s of %s is closed, and its item is not under done: %s", id, name, p.Hint)
	}
	return fmt.Sprintf("%s of %s: %v", strings.ReplaceAll(string(p.Kind), "-", " "), name, p.Err)
}

// Leftover is a file that a dead writer left. It is in nobody's way: the next writer there removes it.
type Leftover struct {
	Agent string
	Path  string
}

// Findings is what Check found.
type Findings struct {
	Problems  []Problem // those of locks first
	Leftovers []Leftover
}

// Check compares the logs and boards of agents, all of them when none is named, and looks at their locks.
// It changes nothing, takes no lock, and works on folders that may only be read. A writer that is between
// log and board is waited for, up to a second.
func (e *Estate) Check(agents ...string) (Findings, error) {
	var all Findings
	if len(agents) == 0 {
		var err error
		if agents, err = e.Agents(); err != nil {
			return all, err
		}
	}
	for _, name := range agents {
		if err := e.checkAgent(name, &all); err != nil {
			return all, err
		}
	}
	slices.SortStableFunc(all.Problems, func(a, b Problem) int { return lockFirst(a) - lockFirst(b) })
	return all, nil
}

func lockFirst(p Problem) int {
	if p.Kind == LockHeld {
		return 0
	}
	return 1
}

func (e *Estate) checkAgent(name string, all *Findings) error {
	add := func(kind Kind, err error) {
		all.Problems = append(all.Problems, Problem{Kind: kind, Agent: name, Err: err})
	}
	a, err := e.agent(name, false)
	switch {
	case errors.Is(err, ErrNoAgent), errors.Is(err, ErrName), errors.Is(err, ErrNameTaken):
		return err
	case err != nil:
		add(UnreadableLog, err)
		return nil
	}
	defer func() { _ = a.close() }() // a failed close of what was only read loses nothing
	b, err := a.openBoard()
	if err != nil {
		add(UnreadableBoard, err)
		return nil
	}
	defer func() { _ = b.close() }() // the same
	switch st, err := a.status(); {
	case errors.Is(err, ErrLink), errors.Is(err, lockfile.ErrNotRegular): // that is about the log
	case err != nil:
		add(UnreadableLock, err)
	case st.Stale():
		all.Problems = append(all.Problems, Problem{Kind: LockHeld, Agent: name, Lock: &st, Hint: a.unlock()})
	}
	all.Problems = append(all.Problems, a.settled(b)...)
	all.Leftovers = append(all.Leftovers, a.leftovers(b)...)
	return nil
}

// patience is how long a writer that is between log and board is waited for.
const (
	patience = time.Second
	napTime  = 5 * time.Millisecond
)

// settled compares log and board. What differs while somebody writes is looked at again: the log comes
// first, and its board a moment later.
func (a *agent) settled(b *board) []Problem {
	clock := a.seams.Clock
	for deadline := clock.Now().Add(patience); ; {
		before := a.seen(b)
		problems := a.compare(b)
		if len(problems) == 0 {
			return nil
		}
		st, err := a.status()
		quiet := (err != nil || !st.Locked || st.Holder.State != lockfile.Alive) && a.seen(b) == before
		if quiet || clock.Now().After(deadline) {
			return problems
		}
		nap(clock)
	}
}

// seen is what log and board look like from outside.
func (a *agent) seen(b *board) (s [2]string) {
	look := func(set *seam.Set, path string) string {
		is, err := set.FS.Lstat(path)
		if err != nil {
			return err.Error()
		}
		return fmt.Sprint(is.Size, is.ModTime, is.Ino)
	}
	s[0] = look(a.seams, a.log)
	if b.folder != nil {
		s[1] = look(b.seams, b.path)
	}
	return s
}

// entry is what of a record is compared with the board.
type entry struct {
	open   bool
	onThis bool
}

func (a *agent) compare(b *board) (problems []Problem) {
	ids, log, order, err := a.index()
	if err != nil {
		problems = append(problems, Problem{Kind: UnreadableLog, Agent: a.name, Err: err})
	}
	_ = b.enter(false) // it may be there by now
	items, berr := b.items()
	if berr != nil {
		return append(problems, Problem{Kind: UnreadableBoard, Agent: a.name, Err: berr})
	}
	for _, it := range items {
		if it.Dispatch == "" {
			continue
		}
		at, there := ids[it.Dispatch]
		switch {
		case !there && err == nil:
			problems = append(problems, Problem{Kind: NoDispatch, Agent: a.name, Dispatch: it.Dispatch})
		case there && !log[at].onThis:
			log[at].onThis = true
			if !log[at].open && it.Column != Closed {
				problems = append(problems, Problem{Kind: ItemBehind, Agent: a.name, Dispatch: it.Dispatch, Hint: a.repair()})
			}
		}
	}
	if err != nil {
		return problems // what is not on the board cannot be told
	}
	for i, id := range order {
		if !log[i].onThis {
			problems = append(problems, Problem{Kind: NotOnBoard, Agent: a.name, Dispatch: id, Hint: a.repair()})
		}
	}
	return problems
}

// index reads what is to be compared of every record.
func (a *agent) index() (ids map[string]int, log []entry, order []string, err error) {
	ids = map[string]int{}
	n := 0
	err = a.records(func(raw []byte) error {
		n++
		r, ok := parseRecord(raw)
		bad := func(reason string) error {
			return &FileError{Path: a.log, Record: n, Reason: reason, kind: ErrLog}
		}
		switch _, twice := ids[r.ID]; {
		case !ok:
			return bad(errNoObject.Error())
		case r.ID == "":
			return bad("it has no id")
		case twice:
			return fmt.Errorf("dispatch %s of %s: %w", display.Text(short(r.ID)), a.shown(), ErrDuplicate)
		}
		ids[r.ID] = len(log)
		log = append(log, entry{open: r.open()})
		order = append(order, r.ID)
		return nil
	})
	return ids, log, order, err
}

// leftovers lists what dead writers left beside the log and the board.
func (a *agent) leftovers(b *board) (left []Leftover) {
	look := func(set *seam.Set, dir, base string) {
		names, err := set.FS.List(dir, base+".")
		if err != nil {
			return
		}
		judge := sweep.NewJudge(set, dir)
		for _, name := range names {
			if n, ok := format.Parse(name, base); ok && judge.Dead(n) {
				left = append(left, Leftover{Agent: a.name, Path: filepath.Join(dir, name)})
			}
		}
	}
	look(a.seams, a.folder.Path, logName)
	if b.folder != nil {
		look(b.seams, b.folder.Path, boardName)
	}
	return left
}
