// Package token keeps the tokens of an estate's service.
//
// It guarantees that a token's text is shown once, when it is made, and lies nowhere: the file has its SHA-256 alone, and
// is its owner's (0600). A token that was revoked is refused from the next request on. A token names an agent or
// an operator, and stands for nobody else.
//
// It does not guarantee anything against who can write the estate's folder: that is the estate's operator. Tokens
// do not expire; it reads no clock but for the time that stands in a token's file.
package token

import (
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/stile-lock/stile/grant"
)

// Token is a token as it is kept.
type Token struct {
	V       int         `json:"v"`
	ID      string      `json:"id"` // 12 hex digits
	Role    grant.Role  `json:"role"`
	Name    string      `json:"name"` // whose it is
	SHA256  string      `json:"sha256"`
	Created grant.Time  `json:"created"`
	Actor   grant.Actor `json:"-"`
}

// What may be wrong with a token.
var (
	// ErrUnknown: no such token, or a revoked one.
	ErrUnknown = errors.New("the token is not known here, or was revoked")
	// ErrDamaged: a token's file is not what it should be, or others may read it.
	ErrDamaged = errors.New("not a usable token file")
)

const (
	prefix  = "stile_"
	idSize  = 6  // bytes
	keySize = 32 // bytes
	maxFile = 16 << 10
	suffix  = ".json"
)

// Dir is a folder of tokens. It need not be there.
type Dir string

// In is the folder of an estate's tokens.
func In(estate string) Dir { return Dir(filepath.Join(estate, "service", "tokens")) }

// Add makes a token, and returns it with its text, which is nowhere else.
func (d Dir) Add(role grant.Role, name string) (t Token, text string, err error) {
	if err := grant.CheckName(name); err != nil {
		return t, "", err
	}
	if role != grant.RoleAgent && role != grant.RoleOperator {
		return t, "", errors.New("a token is an agent's or an operator's")
	}
	var b [idSize + keySize]byte
	if _, err := rand.Read(b[:]); err != nil {
		return t, "", err
	}
	t = Token{V: 1, ID: hex.EncodeToString(b[:idSize]), Role: role, Name: name, Created: grant.TimeOf(time.Now())}
	text = prefix + t.ID + "_" + hex.EncodeToString(b[idSize:])
	t.SHA256 = hash(text)
	if err := os.MkdirAll(string(d), 0o700); err != nil {
		return t, "", fmt.Errorf("keep token: %w", err)
	}
	data, err := json.Marshal(t)
	if err != nil {
		return t, "", err
	}
	if err := d.write(t.ID, append(data, '\n')); err != nil {
		return t, "", fmt.Errorf("keep token: %w", err)
	}
	return t, text, nil
}

// write makes a token's file: all of it, or none.
func (d Dir) write(id string, data []byte) error {
	name := d.file(id)
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return errors.Join(err, os.Remove(name))
	}
	return nil
}

func hash(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}

func (d Dir) file(id string) string { return filepath.Join(string(d), id+suffix) }

// validID keeps what comes from a peer from being a path.
func validID(id string) bool {
	raw, err := hex.DecodeString(id)
	return err == nil && len(raw) == idSize && strings.ToLower(id) == id
}

// Who tells whose a token is: ErrUnknown, ErrDamaged, or what the system says.
func (d Dir) Who(text string) (Token, error) {
	rest, ok := strings.CutPrefix(text, prefix)
	id, _, two := strings.Cut(rest, "_")
	if !ok || !two || !validID(id) || len(text) != len(prefix)+2*idSize+1+2*keySize {
		return Token{}, ErrUnknown
	}
	t, err := d.read(id)
	if errors.Is(err, fs.ErrNotExist) {
		return Token{}, ErrUnknown
	}
	if err != nil {
		return Token{}, err
	}
	if subtle.ConstantTimeCompare([]byte(t.SHA256), []byte(hash(text))) != 1 {
		return Token{}, ErrUnknown
	}
	return t, nil
}

func (d Dir) read(id string) (t Token, err error) {
	info, err := os.Lstat(d.file(id))
	if err != nil {
		return t, err
	}
	if !info.Mode().IsRegular() || runtime.GOOS != "windows" && info.Mode().Perm()&0o077 != 0 {
		return t, fmt.Errorf("token %s: %w: it is no file of mode 0600", id, ErrDamaged)
	}
	f, err := os.Open(d.file(id))
	if err != nil {
		return t, err
	}
	data, err := io.ReadAll(io.LimitReader(f, maxFile))
	if err = errors.Join(err, f.Close()); err != nil {
		return t, err
	}
	if json.Unmarshal(data, &t) != nil || t.V != 1 || t.ID != id || len(t.SHA256) != 64 || grant.CheckName(t.Name) != nil ||
		t.Role != grant.RoleAgent && t.Role != grant.RoleOperator {
		return Token{}, fmt.Errorf("token %s: %w", id, ErrDamaged)
	}
	t.Actor = grant.Actor{Name: t.Name, Role: t.Role}
	return t, nil
}

// List lists the tokens, the earliest first, and what is wrong with those that cannot be read.
func (d Dir) List() ([]Token, error) {
	entries, err := os.ReadDir(string(d))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("list tokens: %w", err)
	}
	var list []Token
	var faults []error
	for _, e := range entries {
		id, ok := strings.CutSuffix(e.Name(), suffix)
		if !ok || !validID(id) {
			continue
		}
		t, err := d.read(id)
		if err != nil {
			faults = append(faults, err)
			continue
		}
		list = append(list, t)
	}
	slices.SortFunc(list, func(a, b Token) int {
		if a.Created != b.Created {
			return int(max(min(a.Created-b.Created, 1), -1))
		}
		return strings.Compare(a.ID, b.ID)
	})
	return list, errors.Join(faults...)
}

// Revoke ends a token. ErrUnknown when there is none of that id.
func (d Dir) Revoke(id string) error {
	if !validID(id) {
		return ErrUnknown
	}
	err := os.Remove(d.file(id))
	if errors.Is(err, fs.ErrNotExist) {
		return ErrUnknown
	}
	return err
}
