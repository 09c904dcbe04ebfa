package local

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"

	"github.com/stile-lock/stile/grant"
	"github.com/stile-lock/stile/internal/display"
	"github.com/stile-lock/stile/internal/vfs"
)

// A container's witness is a folder of the user's with a few files of lines, one line for each page that was seen,
// a file named as the page of its first line is. Lines are only added, each in one write, and each has the highest
// of all before it. So two processes need no lock, and none makes it fall: a file goes when two later ones are
// there, which whoever began them has read it for.
//
// A file for each page would be simpler. But each that goes frees an inode, and the kernel's ext4 passes over every
// inode that was freed within the last minute, when it has no journal: a millisecond for each page.

// fullWitness is how long a witness file may grow, maxWitness bounds what is read of one, keptWitnesses how many
// are left.
const (
	fullWitness   = 8 << 10
	maxWitness    = 64 << 10
	keptWitnesses = 2
)

func (s *Store) witnessDir(container string) string {
	return filepath.Join(s.state, witnessName, s.estate, container)
}

// Witness is the highest that this user has seen of a container; the zero Witness when there is none. A line
// that cannot be read as one is passed over: a power cut leaves such, and the one before it still tells.
func (s *Store) Witness(container string) (grant.Witness, error) {
	if err := grant.CheckName(container); err != nil {
		return grant.Witness{}, err
	}
	if s.state == "" {
		return grant.Witness{}, nil
	}
	w, err := s.witnesses(container)
	return w.highest, err
}

// witnesses is what lies in a container's witness folder.
type witnesses struct {
	highest grant.Witness
	files   []string // in order
	size    int      // of the last file
	whole   bool     // it ends with a line's end
}

func (s *Store) witnesses(container string) (w witnesses, err error) {
	dir := s.witnessDir(container)
	names, err := s.seams.FS.List(dir, "")
	if errors.Is(err, fs.ErrNotExist) {
		return w, nil
	}
	if err != nil {
		return w, fmt.Errorf("read the witness of %s: %w", display.Text(container), err)
	}
	for _, name := range names {
		if _, ok := parsePlace(name); ok {
			w.files = append(w.files, name)
		}
	}
	for i, name := range w.files {
		w.size, w.whole = maxWitness, false
		if known, ok := s.recall(container).read[name]; ok && i < len(w.files)-1 && s.asLong(filepath.Join(dir, name), len(known.data)) {
			w.highest = higher(w.highest, known.highest)
			continue
		}
		data, err := s.slurp(filepath.Join(dir, name), maxWitness)
		switch {
		case errors.Is(err, fs.ErrNotExist): // later ones have come
			continue
		case errors.Is(err, errOdd):
			s.log.Warn("a witness cannot be read", "file", filepath.Join(dir, name), "error", err)
			continue
		case err != nil:
			return w, fmt.Errorf("read the witness of %s: %w", display.Text(container), err)
		}
		w.size, w.whole = len(data), len(data) == 0 || data[len(data)-1] == '\n'
		highest, err := s.highestIn(container, name, data)
		if err != nil {
			s.log.Warn("a witness cannot be read", "file", filepath.Join(dir, name), "error", err)
		}
		w.highest = higher(w.highest, highest)
	}
	return w, nil
}

// asLong tells whether a file is as long as it was. Lines are only added, so there is nothing new in it then.
func (s *Store) asLong(name string, size int) bool {
	info, err := s.seams.FS.Lstat(name)
	return err == nil && info.Mode.IsRegular() && info.Size == int64(size)
}

// highestIn is the highest of a file's lines. What this process has read of the file before is only compared.
func (s *Store) highestIn(container, name string, data []byte) (w grant.Witness, err error) {
	read := s.recall(container).read
	known, ok := read[name]
	if ok && bytes.HasPrefix(data, known.data) {
		w = known.highest
	} else {
		known = witnessRead{}
	}
	// What has no end yet is perhaps being written, and is read again.
	end := bytes.LastIndexByte(data, '\n') + 1
	for line := range bytes.Lines(data[len(known.data):]) {
		one, perr := parseWitness(bytes.TrimSuffix(line, []byte("\n")), container)
		if errors.Is(perr, errCutShort) {
			continue // its writer died over it, or is at it
		}
		if perr != nil {
			err = perr
			continue
		}
		w = higher(w, one)
	}
	if end > len(known.data) && err == nil {
		s.remember(container, func(m *memory) {
			kept := map[string]witnessRead{name: {data[:end], w}}
			for other, r := range m.read {
				if other != name && len(kept) < keptWitnesses {
					kept[other] = r
				}
			}
			m.read = kept
		})
	}
	return w, err
}

// witnessRead is what a process has read of a witness file.
type witnessRead struct {
	data    []byte // whole lines
	highest grant.Witness
}

// Remember keeps what was seen of a container as the user's witness. A failure is told to the log and is no
// error: what was done is done. It is not synced: a power cut may leave the witness behind, never ahead.
func (s *Store) Remember(container string, seen grant.Revision) {
	s.rememberAfter(container, seen, witnesses{})
}

// rememberAfter is Remember for whoever has just read the witness: as long as nobody has added to it since, it need
// not be read again.
func (s *Store) rememberAfter(container string, seen grant.Revision, is witnesses) {
	if s.state == "" || seen.Page() == nil {
		return
	}
	if err := s.remark(container, seen, is); err != nil {
		s.log.Warn("witness not written", "container", container, "error", err)
	}
}

func (s *Store) remark(container string, seen grant.Revision, is witnesses) error {
	w := grant.WitnessOf(seen, is.highest)
	if len(is.files) > 0 && w != is.highest {
		if done, err := s.addToWitness(is, container, w, true); done || err != nil {
			return err
		}
	}
	is, err := s.witnesses(container)
	if err != nil {
		return err
	}
	if w = grant.WitnessOf(seen, is.highest); w == is.highest {
		return nil
	}
	if done, err := s.addToWitness(is, container, w, false); done || err != nil {
		return err
	}
	dir, err := s.stateBox(witnessName, container)
	if err != nil {
		return err
	}
	line, err := lineOf(container, w)
	if err != nil {
		return err
	}
	f, err := s.seams.FS.Create(filepath.Join(dir, place{w.Epoch, w.Rev}.name()), 0o600)
	if errors.Is(err, fs.ErrExist) {
		return nil // another process saw the same page
	}
	if err != nil {
		return err
	}
	if err := errors.Join(vfs.WriteAll(f, line), f.Close()); err != nil {
		return err
	}
	for _, name := range is.files[:max(0, len(is.files)+1-keptWitnesses)] {
		if err := s.seams.FS.Remove(filepath.Join(dir, name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

// addToWitness adds a line to the last file; as it was read, if only then, so that nothing higher stands before it.
// Not done: it has grown since, or a new file is due.
func (s *Store) addToWitness(is witnesses, container string, w grant.Witness, only bool) (done bool, err error) {
	line, err := lineOf(container, w)
	if err != nil {
		return false, err
	}
	fsys, ok := s.seams.FS.(vfs.Appender)
	if !ok || len(is.files) == 0 || is.size+len(line) > fullWitness {
		return false, nil
	}
	f, err := fsys.OpenAppend(filepath.Join(s.witnessDir(container), is.files[len(is.files)-1]), false, 0)
	if err != nil {
		return false, nil //nolint:nilerr // it went, or is not to be written: a new one will do
	}
	if only {
		if info, err := f.Stat(); err != nil || info.Size != int64(is.size) {
			return false, errors.Join(err, f.Close())
		}
	}
	if !is.whole {
		line = append([]byte{'\n'}, line...) // a writer died, or is at work: no line of its own is lost to us
	}
	return true, errors.Join(vfs.WriteAll(f, line), f.Close())
}
