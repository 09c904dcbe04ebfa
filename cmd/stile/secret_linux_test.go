package main

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// A session's secret is in its file, which only the user may read, and nowhere else: not in what any command
// prints, right or wrong, nor in the estate, the state, the processes' arguments or the environment of what runs
// under the grant.
func TestSecretIsNowhereElse(t *testing.T) {
	dir := t.TempDir()
	state := filepath.Join(dir, "state")
	var said bytes.Buffer
	stile := func(want int, args ...string) string {
		t.Helper()
		cmd := exec.Command("stile", args...)
		cmd.Dir = dir
		cmd.Env = append(os.Environ(), "XDG_STATE_HOME="+state, "STILE_AGENT=", "STILE_ESTATE=", "STILE_SESSION_FILE=")
		out, _ := cmd.CombinedOutput()
		if got := cmd.ProcessState.ExitCode(); got != want {
			t.Fatalf("stile %q: exit code %d, want %d: %s", args, got, want, out)
		}
		said.Write(out)
		return string(out)
	}
	stile(0, "init")
	stile(0, "grant", "create", "atlas", "--operator", "olga")
	var acquired grantResult
	if err := json.Unmarshal([]byte(stile(0, "grant", "acquire", "atlas", "--agent", "ada", "--json")), &acquired); err != nil {
		t.Fatal(err)
	}
	session := acquired.SessionFile
	info, err := os.Stat(session)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Fatal(info, err)
	}
	for at := filepath.Dir(session); at != state; at = filepath.Dir(at) {
		if info, err := os.Stat(at); err != nil || info.Mode().Perm() != 0o700 {
			t.Errorf("%s: %v, %v", at, info.Mode(), err)
		}
	}
	secret := secretOf(t, session)

	// What a command sees that is told of the session, and one that is not; what the system shows of them.
	for _, as := range [][]string{{"grant", "heartbeat", "atlas", "--session", session}, {"grant", "status", "atlas"}, {"grant", "status", "--json"}, {"grant", "status", "atlas", "--json"},
		{"grant", "history", "atlas", "--json"}, {"status", "--json"}, {"status"}, {"incidents"}, {"grant", "ids", "atlas", "3", "--agent", "ada"},
		{"grant", "land", "atlas", "--empty", "none", "--agent", "ada", "--json"}} {
		stile(0, as...)
	}
	stile(2, "grant", "acquire", "atlas", "--agent", "bob", "--json")
	stile(2, "grant", "acquire", "atlas", "--agent", "ada")
	stile(0, "run", "f", "--", "sh", "-c", "env; cat /proc/self/environ /proc/$PPID/environ") // it has nothing to do with the grant
	stile(0, "grant", "release", "atlas", "--agent", "ada", "--json")
	for _, name := range []string{"other", "--json"} {
		stile(2, "grant", "heartbeat", "atlas", "--agent", "ada", "--session", filepath.Join(dir, name))
	}

	// Under a run, everything that the command can see of itself and of stile.
	look := `env; cat /proc/self/environ /proc/$PPID/environ /proc/self/cmdline /proc/$PPID/cmdline; tr '\0' '\n' </proc/self/environ; cat "$STILE_SESSION_FILE" >seen`
	stile(0, "grant", "run", "atlas", "--agent", "ada", "--json", "--", "sh", "-c", look)
	seen, err := os.ReadFile(filepath.Join(dir, "seen"))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(filepath.Join(dir, "seen")); err != nil {
		t.Fatal(err)
	}
	live := secretIn(t, seen)

	for _, s := range []string{secret, live} {
		raw, err := hex.DecodeString(s)
		if err != nil || len(raw) != 32 {
			t.Fatal("no secret: ", err)
		}
		forms := []string{s, strings.ToUpper(s), string(raw), base64.StdEncoding.EncodeToString(raw), base64.RawURLEncoding.EncodeToString(raw)}
		for _, form := range forms {
			if strings.Contains(said.String(), form) {
				t.Error("a command has printed the secret")
			}
		}
		err = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
			if err != nil || !d.Type().IsRegular() || strings.HasSuffix(path, ".session.json") {
				return err
			}
			b, err := os.ReadFile(path)
			for _, form := range forms {
				if strings.Contains(string(b), form) {
					t.Errorf("the secret is in %s", path)
				}
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}

func secretOf(t *testing.T, file string) string {
	t.Helper()
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return secretIn(t, b)
}

func secretIn(t *testing.T, b []byte) string {
	t.Helper()
	var f struct {
		Secret string `json:"secret"`
	}
	if err := json.Unmarshal(b, &f); err != nil || f.Secret == "" {
		t.Fatalf("no session: %v", err)
	}
	return f.Secret
}
