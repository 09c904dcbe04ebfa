package local

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"

	"github.com/stile-lock/stile/grant"
	"github.com/stile-lock/stile/internal/display"
	"github.com/stile-lock/stile/lockfile"
)

// maxWitness bounds what is read of a witness.
const maxWitness = 64 << 10

// witnessFile is a witness on disk.
type witnessFile struct {
	V         int           `json:"v"`
	Container string        `json:"container"`
	Witness   grant.Witness `json:"witness"`
}

// Witness is the highest that this user has seen of a container; the zero Witness when there is none. One that
// cannot be read is an error: it may be the only one that knows of a rollback.
func (s *Store) Witness(container string) (grant.Witness, error) {
	if s.state == "" {
		return grant.Witness{}, nil
	}
	if err := grant.CheckName(container); err != nil {
		return grant.Witness{}, err
	}
	name := filepath.Join(s.state, witnessName, s.estate, container, "seen.json")
	data, err := s.slurp(name, maxWitness)
	if errors.Is(err, fs.ErrNotExist) {
		return grant.Witness{}, nil
	}
	if err == nil {
		var w grant.Witness
		if w, err = parseWitness(data, container); err == nil {
			return w, nil
		}
	}
	return grant.Witness{}, fmt.Errorf("read the witness of %s: %s: %w; it can be moved away if the container is as it should be",
		display.Text(container), display.Text(name), err)
}

func parseWitness(data []byte, container string) (grant.Witness, error) {
	var w witnessFile
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&w); err != nil {
		return grant.Witness{}, errors.New("it is no witness")
	}
	switch {
	case w.V != 1:
		return grant.Witness{}, grant.ErrNewer
	case w.Container != container || w.Witness.Epoch < 1 || w.Witness.Rev < 1 || w.Witness.Grant < 0 || w.Witness.Next < 0 || w.Witness.Register.Seq < 0:
		return grant.Witness{}, errors.New("it is no witness of this container")
	}
	return w.Witness, nil
}

// Remember keeps what was seen of a container as the user's witness. A failure is told to the log and is no
// error: what was done is done. It is not synced: a power cut may leave the witness behind, never ahead.
func (s *Store) Remember(container string, seen grant.Revision) {
	if s.state == "" || seen.Page() == nil {
		return
	}
	if err := s.remark(container, seen); err != nil {
		s.log.Warn("witness not written", "container", container, "error", err)
	}
}

func (s *Store) remark(container string, seen grant.Revision) (err error) {
	before, err := s.Witness(container)
	if err != nil || grant.WitnessOf(seen, before) == before {
		return err
	}
	dir, err := s.stateBox(witnessName, container)
	if err != nil {
		return err
	}
	hold, err := lockfile.Acquire(context.Background(), filepath.Join(dir, "seen.json"), lockfile.Options{NoSync: true, Seams: s.seams})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, hold.Release()) }()
	data, err := hold.Read()
	switch {
	case errors.Is(err, fs.ErrNotExist):
		before = grant.Witness{}
	case err != nil:
		return err
	default:
		if before, err = parseWitness(data, container); err != nil {
			return err
		}
	}
	w := grant.WitnessOf(seen, before)
	if w == before {
		return nil
	}
	data, err = json.Marshal(witnessFile{V: 1, Container: container, Witness: w})
	if err != nil {
		return err
	}
	return hold.Commit(append(data, '\n'))
}
