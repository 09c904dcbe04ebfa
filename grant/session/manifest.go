package session

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/stile-lock/stile/grant"
	"github.com/stile-lock/stile/internal/display"
)

// What a manifest holds at most.
const (
	MaxFiles    = 10_000
	maxManifest = 16 << 20 // bytes
)

// Manifest says what a landing is made of. Its SHA-256, over its JSON and a newline, names it in the page.
type Manifest struct {
	Empty string `json:"empty"` // why there was nothing; then no files
	Files []File `json:"files"` // in the order of their names
	Note  string `json:"note"`
	V     int    `json:"v"` // 1
}

// File is one artifact.
type File struct {
	Name   string       `json:"name"` // with slashes
	SHA256 grant.Digest `json:"sha256"`
	Size   int64        `json:"size"` // bytes
}

var errManifest = errors.New("not a manifest")

// encode gives a manifest's bytes.
func (m *Manifest) encode() ([]byte, error) {
	if m.Files == nil {
		m.Files = []File{}
	}
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(m); err != nil {
		return nil, fmt.Errorf("encode a manifest: %w", err)
	}
	return b.Bytes(), nil
}

func parseManifest(data []byte) (*Manifest, error) {
	m := &Manifest{}
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.DisallowUnknownFields()
	if err := dec.Decode(m); err != nil || m.V != 1 {
		return nil, errManifest
	}
	if again, err := m.encode(); err != nil || !bytes.Equal(again, data) {
		return nil, errManifest
	}
	return m, nil
}

// artifact is a file to be landed: what it is called, and where it is.
type artifact struct{ name, path string }

// artifacts names files as a manifest has them: by their path below the working folder, or, where they lie
// elsewhere, by their last element. It refuses what is no plain file, before anything is stored.
func artifacts(files []string) ([]artifact, string) {
	var all []artifact
	for _, path := range files {
		name := filepath.Clean(path)
		if !filepath.IsLocal(name) {
			name = filepath.Base(name)
		}
		name = filepath.ToSlash(name)
		switch info, err := os.Stat(path); {
		case err != nil:
			return nil, display.Text(err.Error())
		case !info.Mode().IsRegular():
			return nil, display.Text(path) + " is no plain file"
		case len(name) > grant.MaxText || strings.ToValidUTF8(name, "") != name:
			return nil, display.Text(path) + " has a name that is no UTF-8, or too long"
		}
		if slices.ContainsFunc(all, func(a artifact) bool { return a.name == name }) {
			return nil, "two files are called " + display.Text(name)
		}
		all = append(all, artifact{name, path})
	}
	if len(all) > MaxFiles {
		return nil, fmt.Sprintf("%d files; at most %d in one landing", len(all), MaxFiles)
	}
	slices.SortFunc(all, func(a, b artifact) int { return strings.Compare(a.name, b.name) })
	return all, ""
}

// store puts files and manifest where the landing expects them.
func (c *Client) store(ctx context.Context, container string, m *Manifest, all []artifact) (grant.Digest, error) {
	for _, a := range all {
		sum, size, err := c.storeFile(ctx, container, a.path)
		if err != nil {
			return "", err
		}
		m.Files = append(m.Files, File{Name: a.name, SHA256: sum, Size: size})
	}
	text, err := m.encode()
	if err != nil {
		return "", err
	}
	sum, _, err := c.Store.Put(ctx, container, grant.KindArtifact, bytes.NewReader(text))
	return sum, err
}

func (c *Client) storeFile(ctx context.Context, container, path string) (grant.Digest, int64, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", 0, err
	}
	defer f.Close() // a failed close of what was only read loses nothing
	return c.Store.Put(ctx, container, grant.KindArtifact, f)
}

// object reads a small object whole, and checks it.
func (c *Client) object(ctx context.Context, container string, kind grant.Kind, d grant.Digest) ([]byte, error) {
	f, err := c.Store.Get(ctx, container, kind, d)
	if err != nil {
		return nil, err
	}
	defer f.Close() // a failed close of what was only read loses nothing
	data, err := io.ReadAll(io.LimitReader(f, maxManifest+1))
	if err == nil && len(data) > maxManifest {
		err = fmt.Errorf("%w: it is too large", errManifest)
	}
	return data, err
}

// ReadBack reads all that the grant's last landing is made of, as whoever uses it later will, and gives the
// register's head that follows from it. What is missing or damaged is NOT_PUSHED.
func (c *Client) ReadBack(ctx context.Context, head grant.Revision) (grant.Digest, error) {
	p := head.Page()
	l := p.Landing
	pushed := func(err error, what string) error {
		return errors.Join(Refuse(head, grant.OpRelease, grant.CodeNotPushed, what+" cannot be read back: "+display.Text(err.Error()),
			"grant land "+p.Container+" FILE…", "lands it again, and makes it whole"), err)
	}
	data, err := c.object(ctx, p.Container, grant.KindArtifact, l.SHA256)
	if err != nil {
		return "", notPushed(err, pushed, "the manifest of the landing")
	}
	m, err := parseManifest(data)
	if err != nil {
		return "", notPushed(err, pushed, "the manifest of the landing")
	}
	for _, f := range m.Files {
		if err := c.whole(ctx, p.Container, f); err != nil {
			return "", notPushed(err, pushed, display.Text(f.Name))
		}
	}
	return grant.HeadAfter(p.Container, l.Base, p.Register.Seq, p.Grant, l.ID, l.SHA256), nil
}

// notPushed leaves errors of the system themselves: only what is there and wrong, or not there, is refused.
func notPushed(err error, refuse func(error, string) error, what string) error {
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, errManifest) || isDamaged(err) {
		return refuse(err, what)
	}
	return fmt.Errorf("read back %s: %w", what, err)
}

// whole reads an artifact to its end, which checks its hash.
func (c *Client) whole(ctx context.Context, container string, f File) error {
	r, err := c.Store.Get(ctx, container, grant.KindArtifact, f.SHA256)
	if err != nil {
		return err
	}
	defer r.Close() // a failed close of what was only read loses nothing
	n, err := io.Copy(io.Discard, r)
	if err == nil && n != f.Size {
		err = fmt.Errorf("%w: it has %d bytes, not %d", errManifest, n, f.Size)
	}
	return err
}
