package register

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strconv"
	"strings"

	"github.com/stile-lock/stile/grant"
	"github.com/stile-lock/stile/internal/display"
)

// What a manifest holds at most.
const (
	maxEntries  = 200_000
	maxManifest = 128 << 20 // bytes
	maxArgs     = 64 << 10  // bytes of a fenced command
)

// ErrManifest says that bytes are no manifest in canonical form.
var ErrManifest = errors.New("not a manifest")

// Manifest is what one landing brought: a whole tree, never a change to one. Its canonical bytes are an object of
// the store, whose SHA-256 the landing's page names.
//
// The fields stand in the order of their JSON keys. Every key is always there.
type Manifest struct {
	// Content is, of a landing that brings no tree (an empty one, a fenced command's), the manifest whose tree
	// still is the register's; empty when there is none.
	Content grant.Digest `json:"content"`
	Empty   string       `json:"empty"`   // why there was nothing to land
	Entries []Entry      `json:"entries"` // in the order of their names' bytes
	Ran     *Ran         `json:"ran"`     // of a fenced command
	V       int64        `json:"v"`       // 1
}

// Kind is what an entry is.
type Kind string

// The kinds of entries. A folder is named only when it is empty; others come with what lies in them.
const (
	KindFile   Kind = "file"
	KindLink   Kind = "link"
	KindFolder Kind = "folder"
)

// Entry is one name in a tree.
type Entry struct {
	Kind   Kind         `json:"kind"`
	Mode   Mode         `json:"mode"` // of a file: the nine permission bits
	Name   string       `json:"name"` // CheckName
	SHA256 grant.Digest `json:"sha256"`
	Size   int64        `json:"size"`   // bytes
	Target string       `json:"target"` // of a link: relative, within the tree
}

// Ran is a fenced command that was done.
type Ran struct {
	Args    []string   `json:"args"`
	Ended   grant.Time `json:"ended"`
	ID      string     `json:"id"` // of its begin: the landing's
	Started grant.Time `json:"started"`
}

// Mode is a file's permission bits, in JSON four octal digits; 0 in other entries. Set-id and sticky bits are
// not kept: a tree that comes back must not bring rights with it.
type Mode fs.FileMode

// MarshalJSON writes four octal digits.
func (m Mode) MarshalJSON() ([]byte, error) { return fmt.Appendf(nil, `"%04o"`, uint32(m)), nil }

// UnmarshalJSON reads them.
func (m *Mode) UnmarshalJSON(text []byte) error {
	s := strings.Trim(string(text), `"`)
	n, err := strconv.ParseUint(s, 8, 32)
	if err != nil || n > 0o777 {
		return errors.New("not a mode")
	}
	*m = Mode(n)
	return nil
}

// Encode gives the canonical bytes of a manifest, or says what is wrong with it.
func (m *Manifest) Encode() ([]byte, error) {
	if err := m.check(); err != nil {
		return nil, err
	}
	return canonical(m)
}

// ParseManifest reads what Encode writes, and nothing else: ErrManifest; grant.ErrNewer for a later format.
func ParseManifest(data []byte) (*Manifest, error) {
	m := &Manifest{}
	if err := decode(data, m, &m.V); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrManifest, err)
	}
	if err := m.check(); err != nil {
		return nil, err
	}
	again, err := canonical(m)
	if err == nil && !bytes.Equal(again, data) {
		err = errors.New("not in canonical form")
	}
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrManifest, err)
	}
	return m, nil
}

// check tells what is wrong with a manifest, whoever made it.
func (m *Manifest) check() error {
	switch {
	case m.V != 1:
		return fmt.Errorf("%w: v is not 1", ErrManifest)
	case m.Content != "" && !valid(m.Content):
		return fmt.Errorf("%w: content is no SHA-256", ErrManifest)
	case len(m.Entries) > maxEntries:
		return fmt.Errorf("%w: %d entries, at most %d", ErrManifest, len(m.Entries), maxEntries)
	case m.Entries == nil:
		m.Entries = []Entry{}
	}
	kinds := 0
	for _, is := range []bool{len(m.Entries) > 0, m.Empty != "", m.Ran != nil} {
		if is {
			kinds++
		}
	}
	if kinds != 1 || len(m.Entries) > 0 && m.Content != "" {
		return fmt.Errorf("%w: it is one of a tree, an empty landing's and a command's", ErrManifest)
	}
	if !line(m.Empty, grant.MaxText) {
		return fmt.Errorf("%w: empty is not a line of words", ErrManifest)
	}
	if m.Ran != nil {
		return m.Ran.check()
	}
	all := names{}
	for i := range m.Entries {
		e := &m.Entries[i]
		if i > 0 && e.Name <= m.Entries[i-1].Name {
			return fmt.Errorf("%w: %s does not follow %s", ErrManifest, shown(e.Name), shown(m.Entries[i-1].Name))
		}
		if err := e.check(); err != nil {
			return err
		}
		if err := all.add(e.Name, e.Kind == KindFolder); err != nil {
			return err
		}
	}
	return nil
}

func (r *Ran) check() error {
	size := 0
	for _, a := range r.Args {
		size += len(a)
	}
	if len(r.Args) == 0 || size > maxArgs || grant.CheckNonce(r.ID) != nil || r.Started <= 0 || r.Ended <= 0 {
		return fmt.Errorf("%w: ran is not what it should be", ErrManifest)
	}
	return nil
}

func (e *Entry) check() error {
	if err := CheckName(e.Name); err != nil {
		return err
	}
	bad := func(what string) error { return fmt.Errorf("%w: %s: %s", ErrManifest, shown(e.Name), what) }
	switch e.Kind {
	case KindFile:
		switch {
		case e.Mode > 0o777:
			return bad("mode is not of the nine bits")
		case e.Target != "":
			return bad("a file has no target")
		case !valid(e.SHA256):
			return bad("sha256 is none")
		case e.Size < 0 || e.Size > grant.MaxNumber:
			return bad("size is none")
		}
		return nil
	case KindLink:
		if e.Mode != 0 || e.SHA256 != "" || e.Size != 0 {
			return bad("a link has a target only")
		}
		return checkTarget(e.Name, e.Target)
	case KindFolder:
		if e.Mode != 0 || e.SHA256 != "" || e.Size != 0 || e.Target != "" {
			return bad("a folder has a name only")
		}
		return nil
	}
	return bad("kind is none")
}

// ErrTarget says that a link does not stay within its tree, or means something else elsewhere.
var ErrTarget = errors.New("link cannot be landed")

// checkTarget holds a link within its tree: it may go up first and then only down, since behind a link that is
// met on the way, up is not where the text says.
func checkTarget(name, target string) error {
	bad := func(why string) error {
		return fmt.Errorf("%w: %s leads to %s: %s", ErrTarget, shown(name), shown(target), why)
	}
	down := target
	up := 0
	for down == ".." || strings.HasPrefix(down, "../") {
		down = strings.TrimPrefix(down[2:], "/")
		up++
	}
	if up > strings.Count(name, "/") {
		return bad("that is outside of the tree")
	}
	if down == "" && up > 0 || down == "." {
		return nil
	}
	if why := nameFault(down); why != "" {
		return bad(why)
	}
	if len(target) > maxName {
		return bad("it is too long")
	}
	return nil
}

// sorted puts entries in their canonical order.
func sorted(entries []Entry) []Entry {
	slices.SortFunc(entries, func(a, b Entry) int { return strings.Compare(a.Name, b.Name) })
	return entries
}

// Size is the number of bytes of all files.
func (m *Manifest) Size() int64 {
	var n int64
	for _, e := range m.Entries {
		n += e.Size
	}
	return n
}

// Find looks an entry up by its name.
func (m *Manifest) Find(name string) (Entry, bool) {
	i, ok := slices.BinarySearchFunc(m.Entries, name, func(e Entry, name string) int { return strings.Compare(e.Name, name) })
	if !ok {
		return Entry{}, false
	}
	return m.Entries[i], true
}

// valid tells whether a digest is 64 lower-case hex digits.
func valid(d grant.Digest) bool {
	return len(d) == 64 && strings.Trim(string(d), "0123456789abcdef") == ""
}

// line tells whether s is one line of at most n bytes that can be shown.
func line(s string, n int) bool { return len(s) <= n && display.Text(s) == s }

// canonical encodes with keys in the order of the struct's fields, which is the sorted one, and a newline.
func canonical(v any) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}

// decode reads one JSON document of a format that has a version, and names what is wrong without quoting more
// than can be shown.
func decode(data []byte, into any, version *int64) error {
	var format struct {
		V *int64 `json:"v"`
	}
	if err := json.Unmarshal(data, &format); err != nil {
		return errors.New(shown(err.Error()))
	}
	switch {
	case format.V == nil:
		return errors.New("no v")
	case *format.V > 1:
		return fmt.Errorf("%w: format %d, written by a newer stile", grant.ErrNewer, *format.V)
	}
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.DisallowUnknownFields()
	if err := dec.Decode(into); err != nil {
		return errors.New(shown(err.Error()))
	}
	*version = *format.V
	return nil
}
