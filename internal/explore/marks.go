package explore

import (
	"encoding/binary"
	"fmt"
	"slices"
	"strings"
)

// marks is what the checks must remember of the past. It is part of the state: two states that differ
// in it are judged differently later.
type marks struct {
	taken []mark // locks that left their name before their holder's release
	late  []mark // records that were committed when the lock was gone
	gone  []mark // records that a later commit dropped
}

// mark says of a lock or a record why it is what it is.
type mark struct {
	what  string
	cause Cause
	// fenced: when the lock was taken its holder had already read it in its fence.
	fenced bool
}

// Cause is the residual of the specification that a breach of a guarantee comes under. Each begins
// with a forced unlock.
type Cause uint8

const (
	none Cause = iota
	// ForcedOut: the lock of a holder that still runs was forced away.
	ForcedOut
	// ByRelease: the release of a forced holder moved a newer holder's lock.
	ByRelease
	// ByBreak: a breaker moved a newer holder's lock, because the dead lock that it had confirmed was
	// forced away before its rename.
	ByBreak
	// ByUnlock: the forced unlock itself moved a newer holder's lock, because the lock that it had
	// confirmed was released, or forced away by another, before its rename.
	ByUnlock
)

func (c Cause) String() string {
	return [...]string{"none", "forced out", "by a release", "by a breaker", "by the unlock"}[c]
}

func (m *marks) clone() marks {
	// Marks are only ever appended or replaced whole.
	return marks{slices.Clone(m.taken), slices.Clone(m.late), slices.Clone(m.gone)}
}

func (m *marks) append(b []byte) []byte {
	for _, list := range [][]mark{m.taken, m.late, m.gone} {
		b = binary.AppendVarint(b, int64(len(list)))
		for _, k := range list {
			b = append(b, k.what...)
			b = append(b, 0, byte(k.cause))
			if k.fenced {
				b = append(b, 1)
			}
		}
	}
	return b
}

// put sets the mark of its subject, keeping the list sorted: the order of marks is no difference.
func put(list []mark, m mark) []mark {
	i, ok := slices.BinarySearchFunc(list, m.what, func(k mark, w string) int { return strings.Compare(k.what, w) })
	if ok {
		list[i] = m
		return list
	}
	return slices.Insert(list, i, m)
}

func get(list []mark, what string) (mark, bool) {
	for _, m := range list {
		if m.what == what {
			return m, true
		}
	}
	return mark{}, false
}

// lockMark is how marks name a lock: by its token or, while it is still empty, by its file.
func (x *Explorer) lockMark(data string, id int) string {
	if l := x.lock(data); l != nil {
		return l.Token
	}
	return fmt.Sprintf("#%d", id)
}

// takenFrom returns the mark of the lock that the actor holds or is publishing, if it was taken.
func (x *Explorer) takenFrom(s *state, actor int) (mark, bool) {
	n := s.at[actor]
	if t := n.at.local.token; t != "" {
		if m, ok := get(s.marks.taken, t); ok {
			return m, true
		}
	}
	for _, h := range n.files {
		if h.write && h.name == lockName {
			if m, ok := get(s.marks.taken, fmt.Sprintf("#%d", h.id)); ok {
				return m, true
			}
		}
	}
	return mark{}, false
}
