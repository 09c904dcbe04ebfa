package service

import (
	"context"
	"fmt"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stile-lock/stile/grant"
	"github.com/stile-lock/stile/grant/granttest"
	granthttp "github.com/stile-lock/stile/grant/http"
	"github.com/stile-lock/stile/grant/http/direct"
	"github.com/stile-lock/stile/grant/http/pipe"
	"github.com/stile-lock/stile/grant/local"
	"github.com/stile-lock/stile/internal/seam"
	"github.com/stile-lock/stile/internal/service/token"
)

// clientVariable makes the test's program a client, as "stiled client" is one.
const clientVariable = "STILE_TEST_CLIENT"

func TestMain(m *testing.M) {
	if server := os.Getenv(clientVariable); server != "" {
		t, err := direct.New(server, os.Getenv("STILE_TEST_TOKEN"))
		if err == nil {
			err = pipe.Serve(context.Background(), os.Stdin, os.Stdout, t)
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

// transport makes one to a server.
type transport func(t *testing.T, server, token string) granthttp.Transport

func directly(t *testing.T, server, token string) granthttp.Transport {
	tr, err := direct.New(server, token)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(tr.Close)
	return tr
}

func throughChildren(t *testing.T, server, token string) granthttp.Transport {
	tr := pipe.New(func() *exec.Cmd {
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), clientVariable+"="+server, "STILE_TEST_TOKEN="+token)
		// Under the race detector each of some hundred children would sleep a second at its end.
		cmd.Env = append(cmd.Env, "GORACE="+strings.TrimSpace(os.Getenv("GORACE")+" atexit_sleep_ms=0"))
		cmd.Stderr = os.Stderr
		return cmd
	})
	t.Cleanup(tr.Close)
	return tr
}

// servedPlace is a store behind a service, each opened one with a service of its own: they share what is stored.
func servedPlace(t *testing.T, c *granttest.Clock, via transport) granttest.Place {
	estate, state := t.TempDir(), t.TempDir()
	root := filepath.Join(estate, "containers")
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(os.WriteFile(filepath.Join(estate, "estate.json"), []byte(`{"v":1}`+"\n"), 0o600))
	_, text, err := token.In(estate).Add(grant.RoleOperator, "suite")
	must(err)
	seams := &seam.Set{Clock: clock{c}}
	open := func() grant.Store {
		own, err := local.Open(estate, local.Options{State: filepath.Join(state, "server"), Seams: seams})
		must(err)
		s := New(Options{Estate: estate, Store: own})
		h := httptest.NewServer(s.Handler())
		t.Cleanup(func() { s.Close(); h.Close() })
		store, err := granthttp.Open(via(t, h.URL, text), granthttp.Options{Server: "one", State: filepath.Join(state, "client"), Local: local.Options{Seams: seams}})
		must(err)
		return store
	}
	page := func(container string, at grant.Ref) string {
		return filepath.Join(root, container, "pages", fmt.Sprintf("%04d-%016d.json", at.Epoch, at.Rev))
	}
	return granttest.Place{
		Open: open,
		Backup: func() func() {
			kept := filepath.Join(t.TempDir(), "kept")
			must(os.CopyFS(kept, os.DirFS(root)))
			return func() {
				must(os.RemoveAll(root))
				must(os.CopyFS(root, os.DirFS(kept)))
			}
		},
		Lose: func(container string) { must(os.RemoveAll(filepath.Join(root, container, "pages"))) },
		Overwrite: func(container string, at grant.Ref, data []byte) {
			must(os.WriteFile(page(container, at), data, 0o600))
		},
		Miss: func(container string, at grant.Ref) { must(os.Remove(page(container, at))) },
		Restore: func(ctx context.Context, s grant.Store, cmd grant.Restore) (grant.Revision, error) {
			cmd.By = grant.Operator("suite") // whose token it is
			rev, _, err := s.(*granthttp.Store).Restore(ctx, cmd)
			return rev, err
		},
	}
}

// The store over HTTP passes what every store must, in this process and through a child.
func TestStore(t *testing.T) {
	for name, via := range map[string]transport{"direct": directly, "children": throughChildren} {
		t.Run(name, func(t *testing.T) {
			granttest.Run(t, func(t *testing.T, c *granttest.Clock) granttest.Place { return servedPlace(t, c, via) })
		})
	}
}
