package token

import (
	"errors"
	"os"
	"runtime"
	"strings"
	"testing"

	"github.com/stile-lock/stile/grant"
)

// A token is whose it is, until it is revoked; its file is the owner's, and has no text of it.
func TestTokenFiles(t *testing.T) {
	d := In(t.TempDir())
	if list, err := d.List(); err != nil || len(list) != 0 {
		t.Fatal(list, err)
	}
	made, text, err := d.Add(grant.RoleAgent, "ada")
	if err != nil {
		t.Fatal(err)
	}
	got, err := d.Who(text)
	if err != nil || got.Actor != grant.Agent("ada") {
		t.Fatal(got, err)
	}
	data, err := os.ReadFile(d.file(made.ID))
	if err != nil || strings.Contains(string(data), text[len(text)-64:]) {
		t.Error("the text is in the file", err)
	}
	for _, bad := range []string{
		"", "stile_", text + "0", text[:len(text)-1], "x" + text[1:], strings.ToUpper(text),
		"stile_" + strings.Repeat("0", 12) + text[18:], "stile_../../../../ab" + text[18:],
	} {
		if _, err := d.Who(bad); !errors.Is(err, ErrUnknown) {
			t.Errorf("%q: %v", bad, err)
		}
	}
	if runtime.GOOS != "windows" {
		if err := os.Chmod(d.file(made.ID), 0o640); err != nil {
			t.Fatal(err)
		}
		if _, err := d.Who(text); !errors.Is(err, ErrDamaged) {
			t.Errorf("one that others may read: %v", err)
		}
	}
	for _, junk := range []string{"", "{", `{"v":2}`, strings.Replace(string(data), "agent", "king", 1), strings.Replace(string(data), made.ID, strings.Repeat("0", 12), 1)} {
		if err := os.WriteFile(d.file(made.ID), []byte(junk), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(d.file(made.ID), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := d.Who(text); !errors.Is(err, ErrDamaged) {
			t.Errorf("%q: %v", junk, err)
		}
	}
	if err := errors.Join(d.Revoke(made.ID)); err != nil {
		t.Fatal(err)
	}
	if _, err := d.Who(text); !errors.Is(err, ErrUnknown) {
		t.Error(err)
	}
	if err := d.Revoke(made.ID); !errors.Is(err, ErrUnknown) {
		t.Error(err)
	}
	if _, _, err := d.Add(grant.RoleAgent, "a/b"); err == nil {
		t.Error("a name that nobody can have")
	}
}
