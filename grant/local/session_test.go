package local

import (
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stile-lock/stile/grant"
)

// TestSession: what was stored before an acquire resumes it in another process, whenever the first one died.
func TestSession(t *testing.T) {
	for _, died := range []string{"before the attempt", "before the answer", "before it stored the number", "later"} {
		t.Run(died, func(t *testing.T) {
			e := newEstate(t)
			s := e.open()
			head, err := s.Head(t.Context(), "atlas")
			if err != nil {
				t.Fatal(err)
			}
			x, err := s.NewSession("atlas", "anna", "", head.Ref())
			if err != nil {
				t.Fatal(err)
			}
			if died != "before the attempt" {
				rev := e.do(s, acquireOf(x))
				if died == "later" {
					if err := s.Granted(x, rev.Page().Grant); err != nil {
						t.Fatal(err)
					}
				}
				e.do(s, e.petition("ben")) // the attempt is not the head any more
			}

			later := e.open()
			list, err := later.Sessions("atlas")
			if err != nil || len(list) != 1 || *list[0] != *x && died != "later" {
				t.Fatalf("sessions %v, %v", list, err)
			}
			y, err := later.OpenSession(x.Path)
			if err != nil {
				t.Fatal(err)
			}
			if died != "later" {
				rev, replayed, err := later.Do(t.Context(), grant.Request{Command: acquireOf(y), Since: y.Base})
				if err != nil || replayed != (died != "before the attempt") {
					t.Fatalf("resumed: replayed %v, %v", replayed, err)
				}
				if err := later.Granted(y, rev.Page().Grant); err != nil {
					t.Fatal(err)
				}
			}
			if y, err = later.OpenSession(x.Path); err != nil || y.Grant != 1 {
				t.Fatalf("grant %d, %v", y.Grant, err)
			}
			e.do(later, grant.Heartbeat{Meta: e.meta(grant.Agent("anna")), Session: y.Proof()})
			if err := later.Forget(y); err != nil {
				t.Fatal(err)
			}
			if left := names(t, filepath.Dir(x.Path)); left != "" {
				t.Errorf("left: %s", left)
			}
		})
	}
}

func acquireOf(x *Session) grant.Acquire {
	return grant.Acquire{Meta: grant.Meta{Container: x.Container, Nonce: x.Nonce, By: grant.Agent(x.Agent)}, Session: x.Secret.Hash()}
}

// TestAttempt: a landing's nonce and base are stored before it is tried, and find it again.
func TestAttempt(t *testing.T) {
	e := newEstate(t)
	s := e.open()
	x, err := s.NewSession("atlas", "anna", "a-session", grant.Ref{})
	if err != nil {
		t.Fatal(err)
	}
	other, err := s.NewSession("atlas", "ben", "a-session.b", grant.Ref{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.NewSession("atlas", "anna", "a-session", grant.Ref{}); !errors.Is(err, fs.ErrExist) {
		t.Errorf("a second session under one nonce: %v", err)
	}
	base := grant.Ref{Epoch: 1, Rev: 7, Hash: grant.Digest(strings.Repeat("a", 64))}
	a, err := s.Attempt(x, grant.OpLand, "my-landing", base)
	if err != nil {
		t.Fatal(err)
	}
	again, err := e.open().Attempt(x, grant.OpLand, "my-landing", grant.Ref{Epoch: 1, Rev: 9})
	if err != nil || again.Base != base {
		t.Errorf("a retry is based on %v, %v", again, err)
	}
	list, err := e.open().Attempts(x)
	if err != nil || len(list) != 1 || *list[0] != *a {
		t.Errorf("attempts %v, %v", list, err)
	}
	if list, err := s.Attempts(other); err != nil || len(list) != 0 {
		t.Errorf("attempts of another session: %v, %v", list, err)
	}
	if err := errors.Join(s.Settle(a), s.Settle(a)); err != nil {
		t.Error(err)
	}
	if list, err := s.Attempts(x); err != nil || len(list) != 0 {
		t.Errorf("attempts %v, %v", list, err)
	}
}

// TestSecretStaysInItsFile: it is in one file that only the user may read, and in no other under the estate or the
// user's state; no error or format verb shows it.
func TestSecretStaysInItsFile(t *testing.T) {
	e := newEstate(t)
	s := e.open()
	x, err := s.NewSession("atlas", "anna", "", grant.Ref{})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Granted(x, e.do(s, acquireOf(x)).Page().Grant); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Attempt(x, grant.OpLand, "", grant.Ref{}); err != nil {
		t.Fatal(err)
	}
	secret := hex.EncodeToString(x.Secret[:])
	found := 0
	for _, root := range []string{e.dir, e.state} {
		err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() {
				return err
			}
			info, err := d.Info()
			if err != nil {
				return err
			}
			data, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			if strings.Contains(string(data), secret) || strings.Contains(string(data), string(x.Secret[:])) {
				found++
				if path != x.Path {
					t.Errorf("the secret is in %s", path)
				}
			}
			if strings.HasPrefix(path, e.state) && modesTell && info.Mode().Perm() != 0o600 {
				t.Errorf("%s has mode %v", path, info.Mode())
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if found != 1 {
		t.Errorf("the secret is in %d files", found)
	}
	if err := os.WriteFile(x.Path, []byte(`{"secret":"`+secret), 0o600); err != nil {
		t.Fatal(err)
	}
	_, err = s.OpenSession(x.Path)
	for _, text := range []string{fmt.Sprint(err), fmt.Sprintf("%v %+v %#v", x, x, x)} {
		if strings.Contains(text, secret) || strings.Contains(text, secret[:16]) {
			t.Errorf("the secret is shown: %s", text)
		}
	}
}

func TestBadSessions(t *testing.T) {
	e := newEstate(t)
	s := e.open()
	x, err := s.NewSession("atlas", "anna", "", grant.Ref{})
	if err != nil {
		t.Fatal(err)
	}
	good, err := os.ReadFile(x.Path)
	if err != nil {
		t.Fatal(err)
	}
	for what, data := range map[string]string{
		"empty": "", "half": string(good[:len(good)/2]), "binary": "\x00\xff", "other estate": strings.Replace(string(good), s.estate, "other", 1),
		"newer": strings.Replace(string(good), `"v":1`, `"v":2`, 1), "unknown field": strings.Replace(string(good), `"v":1`, `"v":1,"w":2`, 1),
		"bad name": strings.Replace(string(good), `"anna"`, `"../anna"`, 1), "large": strings.Repeat(" ", maxSession+1),
	} {
		if err := os.WriteFile(x.Path, []byte(data), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := s.OpenSession(x.Path); !errors.Is(err, ErrBadSession) {
			t.Errorf("%s: %v", what, err)
		}
	}
	if list, err := s.Sessions("atlas"); err != nil || len(list) != 0 {
		t.Errorf("listed %v, %v", list, err)
	}
	if err := os.WriteFile(x.Path, good, 0o600); err != nil {
		t.Fatal(err)
	}
	if modesTell {
		if err := os.Chmod(x.Path, 0o640); err != nil {
			t.Fatal(err)
		}
		if _, err := s.OpenSession(x.Path); !errors.Is(err, ErrBadSession) {
			t.Errorf("others may read it: %v", err)
		}
	}
	if _, err := s.OpenSession(x.Path + "x"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("no such session: %v", err)
	}
	none := e.open()
	none.state = ""
	if _, err := none.NewSession("atlas", "anna", "", grant.Ref{}); !errors.Is(err, ErrNoState) {
		t.Errorf("without a place for it: %v", err)
	}
}
