package granttest

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"slices"
	"sync"

	"github.com/stile-lock/stile/grant"
)

// Memory is the simplest store there is: what the others are compared with. It has no clock; see Clocked.
type Memory struct {
	mu      sync.Mutex
	pages   map[string][][]byte // a container's chain
	objects map[string][]byte   // by container, kind and digest
}

// NewMemory is an empty store.
func NewMemory() *Memory { return &Memory{pages: map[string][][]byte{}, objects: map[string][]byte{}} }

// Clocked is a Memory with a clock for all.
type Clocked struct {
	*Memory
	Clock *Clock
}

// Now is the clock's time.
func (c Clocked) Now(context.Context) (grant.Time, error) { return grant.TimeOf(c.Clock.Now()), nil }

// Containers implements grant.Store.
func (m *Memory) Containers(context.Context) ([]string, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Sorted(maps.Keys(m.pages)), nil
}

// Head implements grant.Store.
func (m *Memory) Head(_ context.Context, container string) (grant.Revision, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.head(container)
}

func (m *Memory) head(container string) (grant.Revision, error) {
	chain := m.pages[container]
	if len(chain) == 0 {
		return grant.Revision{}, grant.ErrLockMissing
	}
	return grant.Open(chain[len(chain)-1])
}

// Read implements grant.Store.
func (m *Memory) Read(_ context.Context, container string, at grant.Ref) (grant.Revision, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, data := range m.pages[container] {
		rev, err := grant.Open(data)
		if err != nil {
			continue
		}
		if ref := rev.Ref(); ref.Epoch == at.Epoch && ref.Rev == at.Rev {
			return rev, nil
		}
	}
	return grant.Revision{}, grant.ErrLockMissing
}

// Swap implements grant.Store.
func (m *Memory) Swap(_ context.Context, base grant.Ref, next grant.Revision) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	container := next.Page().Container
	var is grant.Ref
	if len(m.pages[container]) > 0 {
		head, err := m.head(container)
		if err != nil {
			return err
		}
		if is = head.Ref(); head.Hash() == next.Hash() {
			return nil
		}
	}
	if is != base {
		return grant.ErrConflict
	}
	m.pages[container] = append(m.pages[container], bytes.Clone(next.Bytes()))
	return nil
}

func key(container string, kind grant.Kind, d grant.Digest) string {
	return fmt.Sprintf("%q %q %s", container, kind, d)
}

// Put implements grant.Store.
func (m *Memory) Put(_ context.Context, container string, kind grant.Kind, r io.Reader) (grant.Digest, int64, error) {
	data, err := io.ReadAll(r)
	if err != nil {
		return "", 0, err
	}
	sum := sha256.Sum256(data)
	d := grant.Digest(hex.EncodeToString(sum[:]))
	m.mu.Lock()
	defer m.mu.Unlock()
	m.objects[key(container, kind, d)] = data
	return d, int64(len(data)), nil
}

// Get implements grant.Store.
func (m *Memory) Get(_ context.Context, container string, kind grant.Kind, d grant.Digest) (io.ReadCloser, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	data, ok := m.objects[key(container, kind, d)]
	if !ok {
		return nil, fs.ErrNotExist
	}
	return io.NopCloser(bytes.NewReader(data)), nil
}

// Objects implements grant.Store.
func (m *Memory) Objects(_ context.Context, container string, kind grant.Kind) ([]grant.Digest, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	var list []grant.Digest
	for k, data := range m.objects {
		sum := sha256.Sum256(data)
		if d := grant.Digest(hex.EncodeToString(sum[:])); k == key(container, kind, d) {
			list = append(list, d)
		}
	}
	slices.Sort(list)
	return list, nil
}

// MemoryPlace is the Place of a Memory, with a clock for all or without.
func MemoryPlace(clock *Clock, shared bool) Place {
	m := NewMemory()
	find := func(container string, at grant.Ref) int {
		for i, data := range m.pages[container] {
			if rev, err := grant.Open(data); err == nil && rev.Ref().Epoch == at.Epoch && rev.Ref().Rev == at.Rev {
				return i
			}
		}
		return -1
	}
	return Place{
		Open: func() grant.Store {
			if shared {
				return Clocked{m, clock}
			}
			return m
		},
		Backup: func() func() {
			m.mu.Lock()
			defer m.mu.Unlock()
			kept := maps.Clone(m.pages)
			return func() {
				m.mu.Lock()
				defer m.mu.Unlock()
				m.pages = maps.Clone(kept)
			}
		},
		Lose: func(container string) {
			m.mu.Lock()
			defer m.mu.Unlock()
			delete(m.pages, container)
		},
		Overwrite: func(container string, at grant.Ref, data []byte) {
			m.mu.Lock()
			defer m.mu.Unlock()
			chain := slices.Clone(m.pages[container])
			if i := find(container, at); i >= 0 {
				chain[i] = data
			} else {
				chain = append(chain, data)
			}
			m.pages[container] = chain
		},
		Restore: func(ctx context.Context, s grant.Store, cmd grant.Restore) (grant.Revision, error) {
			m.mu.Lock()
			chain := m.pages[container]
			for len(chain) > 0 {
				if _, err := grant.Open(chain[len(chain)-1]); err == nil {
					break
				}
				chain = chain[:len(chain)-1]
			}
			m.pages[container] = chain
			m.mu.Unlock()
			head, err := s.Head(ctx, container)
			if err == nil && grant.CheckWitness(head, cmd.Witness) == nil {
				return head, nil
			}
			rev, _, err := grant.Do(ctx, s, grant.Request{Command: cmd, Env: func(context.Context, grant.Revision) (grant.Env, error) {
				return grant.Env{Now: grant.Stamp{Source: grant.SourceClient, T: grant.TimeOf(clock.Now())}, FenceHeld: true}, nil
			}})
			return rev, err
		},
	}
}
