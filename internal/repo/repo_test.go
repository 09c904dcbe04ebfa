package repo

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

const modulePath = "github.com/stile-lock/stile"

// systems are those that the imports are checked for: a file built for one system only imports, too.
var systems = []string{"linux", "darwin", "windows", "freebsd"}

// root is the folder that holds the main module's go.mod.
func root(t *testing.T) string {
	t.Helper()
	dir, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(dir, "go.mod")); err != nil {
		t.Fatal(err)
	}
	return dir
}

// eachFile calls fn with the slash path below root of every file that belongs to the project.
func eachFile(t *testing.T, root string, fn func(path string, text []byte)) {
	t.Helper()
	err := filepath.WalkDir(root, func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(root, name)
		if err != nil {
			return err
		}
		rel = filepath.ToSlash(rel)
		if d.IsDir() {
			switch rel {
			case ".git", ".cache", "bin", "dist": // not the project's, or made from it
				return fs.SkipDir
			}
			if d.Name() == "node_modules" {
				return fs.SkipDir
			}
			return nil
		}
		if !d.Type().IsRegular() || rel == ".git" || strings.HasSuffix(rel, ".test") || strings.HasSuffix(rel, ".out") {
			return nil
		}
		text, err := os.ReadFile(name)
		if err == nil {
			fn(rel, text)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// listed is what go list tells of a package.
type listed struct {
	ImportPath string
	Standard   bool
	Imports    []string
	Deps       []string
}

// goList asks go list for patterns as built for one system.
func goList(t *testing.T, root, system string, args ...string) []listed {
	t.Helper()
	cmd := exec.Command("go", append([]string{"list", "-json=ImportPath,Standard,Imports,Deps"}, args...)...)
	cmd.Dir = root
	// Cgo would add its own imports where it is on, and it is on for the system at hand alone.
	cmd.Env = append(os.Environ(), "GOOS="+system, "GOARCH=amd64", "CGO_ENABLED=0", "GOFLAGS=")
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list %s: %v\n%s", strings.Join(args, " "), err, stderr.String())
	}
	var all []listed
	for dec := json.NewDecoder(bytes.NewReader(out)); ; {
		var p listed
		if err := dec.Decode(&p); errors.Is(err, io.EOF) {
			return all
		} else if err != nil {
			t.Fatal(err)
		}
		all = append(all, p)
	}
}

// wantProblems compares what a check found in planted data with what it must find: each want is a part
// of one problem, and there are no others.
func wantProblems(t *testing.T, got []string, want ...string) {
	t.Helper()
	if len(got) != len(want) {
		t.Errorf("%d problems, want %d: %s", len(got), len(want), strings.Join(got, "\n"))
		return
	}
	for i := range got {
		if !strings.Contains(got[i], want[i]) {
			t.Errorf("problem %d is %q, want one with %q", i, got[i], want[i])
		}
	}
}

func report(t *testing.T, problems []string) {
	t.Helper()
	for _, p := range problems {
		t.Error(p)
	}
}

func problemf(problems *[]string, format string, args ...any) {
	*problems = append(*problems, fmt.Sprintf(format, args...))
}
