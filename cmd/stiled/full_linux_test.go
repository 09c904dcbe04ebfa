package main

import (
	"bytes"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stile-lock/stile/grant"
)

// A disk that fills during an upload, or a command: 507, nothing half, and all is well when there is room again.
func TestFullDisk(t *testing.T) {
	e := newPlace(t)
	if err := syscall.Mount("stile", e.dir, "tmpfs", 0, "size=1m"); err != nil {
		t.Skipf("a small filesystem cannot be mounted: %v", err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(e.dir, syscall.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	if err := os.WriteFile(filepath.Join(e.dir, "estate.json"), []byte(`{"v":1}`+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	e.tokens["ada"], e.tokens["olga"] = e.token("--agent", "ada"), e.token("--operator", "olga")
	s := e.serve("--listen", "127.0.0.1:0")
	if code, text := e.ask(s.url, "olga", "POST", "/v1/containers/atlas/create", "{}"); code != 201 {
		t.Fatal(code, text)
	}
	upload := func(size int) int {
		t.Helper()
		req, err := http.NewRequestWithContext(t.Context(), "POST", s.url+"/v1/containers/atlas/objects/artifacts", bytes.NewReader(make([]byte, size)))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Authorization", "Bearer "+e.tokens["ada"])
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		return resp.StatusCode
	}
	if code := upload(2 << 20); code != http.StatusInsufficientStorage {
		t.Errorf("status %d", code)
	}
	if list, err := e.local().Objects(t.Context(), "atlas", grant.KindArtifact); err != nil || len(list) != 0 {
		t.Error(list, err)
	}
	filler := filepath.Join(e.dir, "filler")
	for size := 1 << 20; size > 0; size /= 2 {
		f, err := os.OpenFile(filler, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
		if err != nil {
			t.Fatal(err)
		}
		_, _ = f.Write(make([]byte, size)) // as much as there is
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if code, text := e.ask(s.url, "ada", "POST", "/v1/containers/atlas/petition", "{}"); code != 507 || !strings.Contains(text, "NO_SPACE") {
		t.Error(code, text)
	}
	if err := os.Remove(filler); err != nil {
		t.Fatal(err)
	}
	if code, text := e.ask(s.url, "ada", "POST", "/v1/containers/atlas/petition", "{}"); code != 200 {
		t.Error(code, text)
	}
	if code := upload(1 << 10); code != 201 {
		t.Errorf("status %d", code)
	}
}
