package local

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"

	"github.com/stile-lock/stile/grant"
	"github.com/stile-lock/stile/internal/display"
	"github.com/stile-lock/stile/internal/vfs"
)

// A container's witness is a folder of the user's with one file for each page that was seen, the last few of
// them, named as the page is. So two processes need no lock, and none makes it fall.

// maxWitness bounds what is read of a witness, keptWitnesses how many are left.
const (
	maxWitness    = 64 << 10
	keptWitnesses = 2
)

// witnessFile is a witness on disk.
type witnessFile struct {
	V         int           `json:"v"`
	Container string        `json:"container"`
	Witness   grant.Witness `json:"witness"`
}

func (s *Store) witnessDir(container string) string {
	return filepath.Join(s.state, witnessName, s.estate, container)
}

// Witness is the highest that this user has seen of a container; the zero Witness when there is none. A file
// that cannot be read as one is passed over: a power cut leaves such, or a kill, and the one before it still tells.
func (s *Store) Witness(container string) (grant.Witness, error) {
	if err := grant.CheckName(container); err != nil {
		return grant.Witness{}, err
	}
	if s.state == "" {
		return grant.Witness{}, nil
	}
	w, _, err := s.witnesses(container)
	return w, err
}

// witnesses also gives the files, in order.
func (s *Store) witnesses(container string) (w grant.Witness, files []string, err error) {
	dir := s.witnessDir(container)
	names, err := s.seams.FS.List(dir, "")
	if errors.Is(err, fs.ErrNotExist) {
		return w, nil, nil
	}
	if err != nil {
		return w, nil, fmt.Errorf("read the witness of %s: %w", display.Text(container), err)
	}
	for _, name := range names {
		if _, ok := parsePlace(name); !ok {
			continue
		}
		files = append(files, name)
		data, err := s.slurp(filepath.Join(dir, name), maxWitness)
		switch {
		case errors.Is(err, fs.ErrNotExist), errors.Is(err, errOdd): // a later one has come
		case err != nil:
			return w, nil, fmt.Errorf("read the witness of %s: %w", display.Text(container), err)
		default:
			one, err := parseWitness(data, container)
			if errors.Is(err, errCutShort) {
				continue // its writer died over it, or is at it
			}
			if err != nil {
				s.log.Warn("a witness cannot be read", "file", filepath.Join(dir, name), "error", err)
				continue
			}
			w = higher(w, one)
		}
	}
	return w, files, nil
}

func parseWitness(data []byte, container string) (grant.Witness, error) {
	var w witnessFile
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.DisallowUnknownFields()
	err := dec.Decode(&w)
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return grant.Witness{}, errCutShort
	}
	if err != nil {
		return grant.Witness{}, errors.New("it is no witness")
	}
	switch x := w.Witness; {
	case w.V != 1:
		return grant.Witness{}, grant.ErrNewer
	case w.Container != container || x.Epoch < 1 || x.Rev < 1 || x.Grant < 0 || x.Next < 0 || x.Register.Seq < 0:
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

func (s *Store) remark(container string, seen grant.Revision) error {
	before, files, err := s.witnesses(container)
	if err != nil {
		return err
	}
	w := grant.WitnessOf(seen, before)
	if w == before {
		return nil
	}
	dir, err := s.stateBox(witnessName, container)
	if err != nil {
		return err
	}
	data, err := json.Marshal(witnessFile{V: 1, Container: container, Witness: w})
	if err != nil {
		return err
	}
	name := filepath.Join(dir, place{w.Epoch, w.Rev}.name())
	f, err := s.seams.FS.Create(name, 0o600)
	if errors.Is(err, fs.ErrExist) && s.cutShort(name, container) {
		if err := s.seams.FS.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		f, err = s.seams.FS.Create(name, 0o600)
	}
	if errors.Is(err, fs.ErrExist) {
		return nil // another process saw the same page
	}
	if err != nil {
		return err
	}
	if err := errors.Join(vfs.WriteAll(f, append(data, '\n')), f.Close()); err != nil {
		return err
	}
	for _, name := range files[:max(0, len(files)+1-keptWitnesses)] {
		if err := s.seams.FS.Remove(filepath.Join(dir, name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

// cutShort tells of a witness whose writer died over it, or is at it: then ours may as well be there.
func (s *Store) cutShort(name, container string) bool {
	data, err := s.slurp(name, maxWitness)
	if err == nil {
		_, err = parseWitness(data, container)
	}
	return errors.Is(err, errCutShort)
}
