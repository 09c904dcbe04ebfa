package local

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"strings"

	"github.com/stile-lock/stile/grant"
	"github.com/stile-lock/stile/internal/display"
)

// Session is what an agent's work under one grant is proved with: it lies in a file of the user's alone,
// outside the estate, from before its acquire was first tried. So a lost answer or a crash loses nothing: with
// the nonce the attempt is found again, with the secret its grant is used.
type Session struct {
	Path      string // the file: what STILE_SESSION_FILE names
	Container string
	Agent     string
	Secret    grant.Secret
	// Nonce and Base are those of the acquire: for its Meta, and for Request.Since.
	Nonce string
	Base  grant.Ref
	// Grant is the number that the acquire got, once it is known here: else 0.
	Grant int64
}

// Proof is what a holder's commands carry.
func (x *Session) Proof() grant.Session { return grant.Session{Grant: x.Grant, Secret: x.Secret} }

// RunTarget is what to lock, with package kernlock, for a command that is to be the only one under the session. It
// is the session's own: what an earlier grant's command has left behind is not in the way of the next.
func (x *Session) RunTarget() string { return x.beside(runSuffix) }

// refFile is a grant.Ref on disk.
type refFile struct {
	Epoch int64        `json:"epoch"`
	Rev   int64        `json:"rev"`
	Hash  grant.Digest `json:"hash"`
}

// sessionFile is a session on disk. It is never written twice.
type sessionFile struct {
	V         int     `json:"v"`
	Estate    string  `json:"estate"`
	Container string  `json:"container"`
	Agent     string  `json:"agent"`
	Nonce     string  `json:"nonce"`
	Base      refFile `json:"base"`
	Secret    string  `json:"secret"` // 64 hex digits
}

// attemptFile is one command of a session, before it was first tried.
type attemptFile struct {
	V     int      `json:"v"`
	Op    grant.Op `json:"op"`
	Nonce string   `json:"nonce"`
	Base  refFile  `json:"base"`
}

// grantedFile is the number that a session's acquire got.
type grantedFile struct {
	V     int   `json:"v"`
	Grant int64 `json:"grant"`
}

const (
	sessionSuffix = ".session.json"
	grantedSuffix = ".granted.json"
	triedSuffix   = ".tried.json"
	runSuffix     = ".run" // with .lock the kernel lock's, which stays
	maxSession    = 64 << 10
)

// ErrBadSession says that a file is no session of this estate, or one that others may read.
var ErrBadSession = errors.New("not a usable session file")

// NewSession draws a secret and, unless one is given, a nonce, and stores them with the head that the acquire is
// about to be based on. fs.ErrExist: there is a session with that nonce; open it.
func (s *Store) NewSession(container, agent, nonce string, base grant.Ref) (*Session, error) {
	if err := errors.Join(grant.CheckName(container), grant.CheckName(agent)); err != nil {
		return nil, err
	}
	nonce, err := s.nonce(nonce)
	if err != nil {
		return nil, err
	}
	x := &Session{Container: container, Agent: agent, Nonce: nonce, Base: base}
	if _, err := io.ReadFull(s.seams.Rand, x.Secret[:]); err != nil {
		return nil, fmt.Errorf("draw a secret: %w", err)
	}
	dir, err := s.stateBox(sessionsName, container)
	if err != nil {
		return nil, fmt.Errorf("store a session: %w", err)
	}
	x.Path = filepath.Join(dir, nonce+sessionSuffix)
	err = s.store(x.Path, sessionFile{
		V: 1, Estate: s.estate, Container: container, Agent: agent, Nonce: nonce, Base: refFile(base), Secret: hex.EncodeToString(x.Secret[:]),
	})
	if err != nil {
		return nil, fmt.Errorf("store a session: %w", err)
	}
	return x, nil
}

// store writes one of a session's files, once. One that its writer died over, before anybody could use it, is in
// nobody's way.
func (s *Store) store(name string, v any) error {
	data, err := json.Marshal(v)
	if err != nil {
		return err
	}
	err = s.createOnly(name, append(data, '\n'))
	if errors.Is(err, fs.ErrExist) && errors.Is(s.readOwn(name, new(json.RawMessage)), errCutShort) {
		if err := s.seams.FS.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		err = s.createOnly(name, append(data, '\n'))
	}
	return err
}

// OpenSession reads a session: fs.ErrNotExist, ErrBadSession. The file must be the user's alone.
func (s *Store) OpenSession(path string) (*Session, error) {
	var f sessionFile
	if err := s.readOwn(path, &f); err != nil {
		return nil, err
	}
	x := &Session{Path: path, Container: f.Container, Agent: f.Agent, Nonce: f.Nonce, Base: grant.Ref(f.Base)}
	secret, err := hex.DecodeString(f.Secret)
	if err != nil || len(secret) != len(x.Secret) || f.V != 1 || f.Estate != s.estate ||
		grant.CheckName(f.Container) != nil || grant.CheckName(f.Agent) != nil || grant.CheckNonce(f.Nonce) != nil {
		return nil, fmt.Errorf("session %s: %w", display.Text(path), ErrBadSession)
	}
	copy(x.Secret[:], secret)
	var g grantedFile
	err = s.readOwn(x.beside(grantedSuffix), &g)
	switch {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, errCutShort): // the chain tells it as well
	case err != nil:
		return nil, err
	default:
		x.Grant = g.Grant
	}
	return x, nil
}

// readOwn reads one of a session's files, if nobody else may. What is wrong with it is never quoted: it may be
// the secret.
func (s *Store) readOwn(path string, into any) error {
	bad := func(why string) error {
		return fmt.Errorf("session %s: %w: %s", display.Text(path), ErrBadSession, why)
	}
	info, err := s.seams.FS.Lstat(path)
	if err != nil {
		return fmt.Errorf("open session: %w", err)
	}
	if !info.Mode.IsRegular() {
		return bad("it is no regular file")
	}
	if modesTell && info.Mode.Perm()&0o077 != 0 {
		return bad("others may read it; draw a new one, or chmod 600 if nobody has")
	}
	data, err := s.slurp(path, maxSession)
	if errors.Is(err, errOdd) {
		return bad(err.Error())
	}
	if err != nil {
		return fmt.Errorf("open session: %w", err)
	}
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.DisallowUnknownFields()
	if dec.Decode(into) != nil {
		return fmt.Errorf("%w: %w", bad("it is cut short, or of another program"), errCutShort)
	}
	return nil
}

// errCutShort says that a file of a session does not hold what it should, as when its writer died over it.
var errCutShort = errors.New("not whole")

func (x *Session) beside(suffix string) string {
	return strings.TrimSuffix(x.Path, sessionSuffix) + suffix
}

// Sessions lists the user's sessions of a container; those that cannot be read are left out.
func (s *Store) Sessions(container string) ([]*Session, error) {
	if s.state == "" {
		return nil, nil
	}
	if err := grant.CheckName(container); err != nil {
		return nil, err
	}
	dir := filepath.Join(s.state, sessionsName, s.estate, container)
	names, err := s.seams.FS.List(dir, "")
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("list sessions: %w", err)
	}
	var list []*Session
	for _, name := range names {
		if !strings.HasSuffix(name, sessionSuffix) {
			continue
		}
		x, err := s.OpenSession(filepath.Join(dir, name))
		switch {
		case err == nil && x.Container == container:
			list = append(list, x)
		case errors.Is(err, ErrBadSession) && !errors.Is(err, errCutShort):
			// Its agent would be told that it has none, and not why.
			s.log.Warn("left out", "error", err)
		}
	}
	return list, nil
}

// Granted stores the number that the session's acquire got.
func (s *Store) Granted(x *Session, number int64) error {
	x.Grant = number
	err := s.store(x.beside(grantedSuffix), grantedFile{V: 1, Grant: number})
	if errors.Is(err, fs.ErrExist) {
		return nil // a process that resumed it was first
	}
	if err != nil {
		return fmt.Errorf("store the grant of a session: %w", err)
	}
	return nil
}

// Attempt is a command of a session before its first try: what finds it again when its answer is lost.
type Attempt struct {
	Op    grant.Op
	Nonce string
	Base  grant.Ref
	path  string
}

// nonce is the one given, or else one drawn.
func (s *Store) nonce(given string) (nonce string, err error) {
	if nonce = given; nonce == "" {
		nonce, err = s.seams.Hex24()
	}
	if err == nil {
		err = grant.CheckNonce(nonce)
	}
	return nonce, err
}

// Attempt stores a nonce, drawn unless one is given, with the head that the command is about to be based on. One
// with that nonce that is there already is returned as it is: a retry.
func (s *Store) Attempt(x *Session, op grant.Op, nonce string, base grant.Ref) (*Attempt, error) {
	nonce, err := s.nonce(nonce)
	if err != nil {
		return nil, err
	}
	a := &Attempt{Op: op, Nonce: nonce, Base: base, path: x.beside("~" + nonce + triedSuffix)}
	err = s.store(a.path, attemptFile{V: 1, Op: op, Nonce: nonce, Base: refFile(base)})
	if errors.Is(err, fs.ErrExist) {
		return s.openAttempt(a.path)
	}
	if err != nil {
		return nil, fmt.Errorf("store an attempt: %w", err)
	}
	return a, nil
}

func (s *Store) openAttempt(path string) (*Attempt, error) {
	var f attemptFile
	if err := s.readOwn(path, &f); err != nil {
		return nil, err
	}
	if f.V != 1 || grant.CheckNonce(f.Nonce) != nil {
		return nil, fmt.Errorf("session %s: %w", display.Text(path), ErrBadSession)
	}
	return &Attempt{Op: f.Op, Nonce: f.Nonce, Base: grant.Ref(f.Base), path: path}, nil
}

// Attempts lists a session's attempts that nobody has settled. One whose writer died over it was never tried, and
// goes.
func (s *Store) Attempts(x *Session) ([]*Attempt, error) {
	dir, base := filepath.Split(x.beside("~"))
	names, err := s.seams.FS.List(filepath.Clean(dir), base)
	if err != nil {
		return nil, fmt.Errorf("list attempts: %w", err)
	}
	var list []*Attempt
	for _, name := range names {
		if strings.HasSuffix(name, triedSuffix) {
			a, err := s.openAttempt(filepath.Join(dir, name))
			switch {
			case errors.Is(err, fs.ErrNotExist): // settled meanwhile
			case errors.Is(err, errCutShort):
				err = s.Settle(&Attempt{path: filepath.Join(dir, name)})
				if err != nil {
					return nil, err
				}
			case err != nil:
				return nil, err
			default:
				list = append(list, a)
			}
		}
	}
	return list, nil
}

// Settle forgets an attempt whose end is known.
func (s *Store) Settle(a *Attempt) error {
	if err := s.seams.FS.Remove(a.path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("forget an attempt: %w", err)
	}
	return nil
}

// Forget removes a session whose grant has ended, or that never got one, and all that belongs to it; the secret
// last, so that a crash leaves a session and no loose ends.
func (s *Store) Forget(x *Session) error {
	list, err := s.Attempts(x)
	if err != nil {
		return err
	}
	for _, a := range list {
		if err := s.Settle(a); err != nil {
			return err
		}
	}
	for _, name := range []string{x.beside(grantedSuffix), x.Path} {
		if err := s.seams.FS.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("forget a session: %w", err)
		}
	}
	return nil
}

// Guard keeps the user's other processes from other commands of an agent's on a container that must not be done
// twice. So a session without a grant, and an attempt that nobody has settled, are of processes that died when they
// are found behind it, and not of some at work.
func (s *Store) Guard(ctx context.Context, container, agent string) (release func(), err error) {
	if err := grant.CheckName(agent); err != nil {
		return nil, err
	}
	dir, err := s.stateBox(sessionsName, container)
	if err != nil {
		return nil, fmt.Errorf("guard a command: %w", err)
	}
	sum := sha256.Sum256([]byte(agent)) // a name may be too long to have anything after it
	f, err := s.fenceOff(ctx, filepath.Join(dir, "agent-"+hex.EncodeToString(sum[:8])), "the commands of "+display.Text(agent))
	if err != nil {
		return nil, err
	}
	return func() { s.letGo(f) }, nil
}
