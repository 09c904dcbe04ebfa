package main

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"

	granthttp "github.com/stile-lock/stile/grant/http"
	grantpipe "github.com/stile-lock/stile/grant/http/pipe"
	"github.com/stile-lock/stile/grant/local"
	"github.com/stile-lock/stile/grant/session"
)

// serverVariable names a service, http://HOST:PORT, that grant commands are to work through. --estate is stronger.
const serverVariable = "STILE_SERVER"

var _ session.Store = (*granthttp.Store)(nil)

// openServer opens the containers of a service. Its requests go through "stiled client": this program has no HTTP.
func openServer(server string, quiet bool) (*session.Client, error) {
	program, err := besideThis("stiled")
	if err != nil {
		return nil, &failure{
			exit: exitFailed, code: "no_stiled", hint: "install it beside stile, or unset " + serverVariable,
			err: fmt.Errorf("%s is set, and there is no stiled to reach it with: %w", serverVariable, err),
		}
	}
	t := grantpipe.New(func() *exec.Cmd {
		cmd := exec.Command(program, "client")
		cmd.Stderr = os.Stderr
		apart(cmd)
		return cmd
	})
	store, err := granthttp.Open(t, granthttp.Options{
		Server: server, Local: local.Options{Log: slog.New(&warnings{quiet: quiet}), Seams: grantSeams},
	})
	if err != nil {
		return nil, err
	}
	return &session.Client{Store: store}, nil
}

// onTheEstate is the store of what works only where the estate is, with the reason and the way for who comes through a
// service.
func (f *grantFlags) onTheEstate(c *session.Client, why, way string) (*local.Store, error) {
	store, ok := c.Store.(*local.Store)
	if ok {
		return store, nil
	}
	return nil, &failure{
		exit: exitFailed, code: "not_through_server", hint: way, err: fmt.Errorf("not through a service (%s is set): %s", serverVariable, why),
	}
}

// classifyServer names what a service says that is no grant's own; nil for others.
func classifyServer(err error) *failure {
	var answer *granthttp.Error
	switch {
	case errors.Is(err, granthttp.ErrNotSent):
		return &failure{exit: exitIO, code: "server_unreachable", hint: "is it running (stiled serve), and is " + serverVariable + " its address?", err: err}
	case !errors.As(err, &answer):
		return nil
	case answer.Code == granthttp.CodeUnauthorized:
		return &failure{exit: exitPermission, code: "unauthorized", hint: "STILE_TOKEN_FILE names the file of the agent's token ('stiled token add' makes one)", err: err}
	case answer.Code == granthttp.CodeForbidden:
		return &failure{exit: exitPermission, code: "forbidden", hint: "name the agent or operator whose the token is", err: err}
	case answer.Code == granthttp.CodeUnavailable:
		return &failure{exit: exitIO, code: "server_unavailable", hint: answer.Hint, err: err}
	}
	return nil
}

// besideThis finds a program beside this one, or else on the path.
func besideThis(name string) (string, error) {
	if self, err := os.Executable(); err == nil {
		path := filepath.Join(filepath.Dir(self), name)
		if runtime.GOOS == "windows" {
			path += ".exe"
		}
		if _, err := os.Stat(path); err == nil {
			return path, nil
		}
	}
	path, err := exec.LookPath(name)
	if errors.Is(err, exec.ErrDot) {
		return "", errors.New("the only one lies in the working folder")
	}
	return path, err
}
