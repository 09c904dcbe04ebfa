package kernlock

import (
	"errors"
	"time"
)

// How often a record is read again that is no record: one that does not fit
// its sum is most likely being written, which takes microseconds; one that is
// damaged otherwise can be another program's, cut off and being written.
const (
	tornTries    = 20
	damagedTries = 3
)

// readSettled reads a record with read until it is none that is being
// written.
func readSettled(read func() ([]byte, error)) (Content, *Record, error) {
	for i := 1; ; i++ {
		b, err := read()
		if err != nil {
			return ContentAbsent, nil, err
		}
		c, r, derr := classify(b)
		torn := errors.Is(derr, errTorn)
		if !torn && c != ContentDamaged || torn && i >= tornTries || !torn && i >= damagedTries {
			return c, r, nil
		}
		time.Sleep(50 * time.Microsecond)
	}
}

// sighting is a holder as a waiter sees it.
type sighting struct {
	content Content
	record  *Record
	state   HolderState
	live    Liveness
	facts   kernelFacts
}

// look tells who holds a lock that was just found held.
func (h *Handle) look(f *lockFile) sighting {
	s := sighting{facts: lookKernel().facts(h.names.lock)}
	s.content, s.record, _ = readSettled(func() ([]byte, error) { return f.holder(&h.names) })
	s.judge(h.names.lock)
	return s
}

// judge fills in what follows from the record and the facts.
func (s *sighting) judge(near string) {
	switch {
	case s.record != nil:
		s.live = s.record.liveness(near)
	case s.content == ContentAbsent, s.content == ContentEmpty:
		s.live = Absent
	default:
		s.live = Unreadable
	}
	s.state = s.facts.attribute(s.record, near)
}

func (h *Handle) duplicate(f *lockFile) *Duplicate {
	s := h.look(f)
	return &Duplicate{
		Target:      h.names.target,
		LockID:      h.names.id,
		Holder:      s.record,
		HolderState: s.state,
		Liveness:    s.live,
	}
}

// timedOut makes the error of a wait that ran out, and appends its incident.
// first is the record as it was when the wait began.
func (h *Handle) timedOut(f *lockFile, began time.Time, first []byte) error {
	waited := time.Since(began)
	s := h.look(f)
	_, before, _ := classify(first)
	// A record that was closed already was not of the holder at the time: that
	// one may have been about to write its own, and may be stalled since.
	changed := before != nil && before.ReleasedAt.IsZero() && s.record != nil && !before.same(s.record)
	e := &TimeoutError{
		Target:   h.names.target,
		LockPath: h.names.lock,
		Incident: h.incident(&s, began, waited, changed),
		Channel:  baseName(h.names.incidents()),
		Queue:    s.facts.waiters,

		unreadable: s.live == Unreadable,
	}
	e.RecordErr = appendIncident(h.names.incidents(), f, &e.Incident)
	return e
}
