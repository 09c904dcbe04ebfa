package main

import (
	"errors"
	"os"
	"path/filepath"
	"strconv"

	"github.com/stile-lock/stile/dispatch"
	"github.com/stile-lock/stile/internal/follow"
)

// followed lists, and then shows what is opened and closed.
func (l *lister) followed() error {
	f := &listFollower{lister: l, logs: map[string]*followedLog{}}
	return followed(f.round)
}

// listFollower knows what it has shown.
type listFollower struct {
	*lister
	logs map[string]*followedLog
	next bool // the first listing is over
}

type followedLog struct {
	sight
	status map[string]dispatch.Status // by id
}

func (f *listFollower) round(w *follow.Watch) error {
	// Watched before it is read: what comes in between is seen in the next round.
	w.Add(f.e.Path())
	w.Add(filepath.Join(f.e.Path(), "agents"))
	agents, err := f.agents()
	if err != nil {
		return err
	}
	for _, name := range agents {
		path := f.e.LogPath(name)
		w.Add(filepath.Dir(path))
		log, known := f.logs[name]
		if !known {
			log = &followedLog{status: map[string]dispatch.Status{}}
			f.logs[name] = log
		}
		if !log.changed(path) && known {
			continue
		}
		if err := f.read(name, log); err != nil {
			return err
		}
	}
	for _, row := range f.held {
		if err := f.print(row); err != nil {
			return err
		}
	}
	f.held, f.last, f.next = nil, -1, true
	return f.w.Flush()
}

// read shows what is new in a log. One that is not what it should be is told, and read again when it has
// changed.
func (f *listFollower) read(name string, log *followedLog) error {
	n := 0
	var failed error
	err := f.e.Records(name, func(r dispatch.Record) error {
		n++
		id := r.ID
		if id == "" {
			id = strconv.Itoa(n) // as good as any in a log that others write
		}
		status := dispatchStatus(&r)
		if was, seen := log.status[id]; seen && was == status {
			return nil
		}
		log.status[id] = status
		failed = f.take(name, &r)
		return failed
	})
	switch {
	case err == nil:
		return nil
	case failed != nil, f.agent != "" && !f.next && errors.Is(err, dispatch.ErrNoAgent), errors.Is(err, dispatch.ErrName), errors.Is(err, dispatch.ErrNameTaken):
		return err
	case errors.Is(err, dispatch.ErrNoAgent):
		return nil // its folder was taken away
	}
	if err := f.w.Flush(); err != nil {
		return err
	}
	fl := classify(err)
	printFailure(os.Stderr, fl.Error(), fl.hint)
	return nil
}
