package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// Whichever call of the tool fails, once or from then on: what it reports is what it did, an error has its own
// name and is never "held", a failure in JSON is one object, and the next writer goes on and leaves nothing.
func TestDispatchFailsAtEveryCall(t *testing.T) {
	for _, e := range []struct {
		errno unix.Errno
		code  string
	}{{unix.ENOSPC, "no_space"}, {unix.EIO, "io_error"}} {
		for _, forGood := range []bool{false, true} {
			if (e.errno != unix.ENOSPC || forGood) && os.Getenv("STILE_NIGHTLY") == "" {
				continue // mostly the same steps once more
			}
			t.Run(fmt.Sprintf("%s, for good %t", e.code, forGood), func(t *testing.T) {
				for _, class := range cellClasses {
					t.Run(class, func(t *testing.T) {
						for _, name := range killableNames() {
							t.Run(name, func(t *testing.T) {
								c := newWorld(t, class)
								n := 0
								for c.failsAt(n, name, e.errno, e.code, forGood) {
									n++
								}
								if n < 3 {
									t.Errorf("it made %d calls", n)
								}
							})
						}
					})
				}
			})
		}
	}
}

func (c *world) failsAt(n int, name string, errno unix.Errno, want string, forGood bool) (failed bool) {
	c.Helper()
	args := append(killable[name](c), "--json")
	before := c.logged()
	made, step := 0, ""
	g := c.gated(func(g *gated, k call) answer {
		if made++; made <= n || made > n+1 && !forGood {
			return pass
		}
		if step == "" {
			step = k.String()
		}
		g.errno = errno
		return refuse
	}, args...)
	out, err := io.ReadAll(g.out)
	if err != nil {
		c.Fatal(err)
	}
	code := g.wait()
	<-g.done
	at := fmt.Sprintf("%v at call %d, %s: exit code %d, it says %s%s", errno, n, step, code, out, g.stderr())
	var e struct{ Code, Message, Hint, Dispatch, ID string }
	if err := json.Unmarshal(out, &e); err != nil || (e.Code == "") != (code == 0) {
		c.Errorf("%s: %v", at, err)
	}
	if code != 0 && e.Code != want && e.Code != "not_durable" {
		c.Errorf("%s: not called %s", at, want)
	}
	if code == 2 && !strings.Contains(at, "lock") {
		c.Errorf("%s: it is no refusal", at)
	}
	after := c.logged()
	id := e.ID + e.Dispatch
	if args[1] == "open" {
		switch landed := len(after) == len(before)+1 && after[len(before)] == id; {
		case code == 0 && !landed, id != "" && !landed, id == "" && len(after) != len(before):
			c.Errorf("%s: before there was %v, then %v", at, before, after)
		}
	} else if !slices.Equal(before, after) {
		c.Errorf("%s: before there was %v, then %v", at, before, after)
	}
	r := c.start("board", "check")
	agree := r.wait() == 0
	if e.Dispatch != "" && agree == strings.Contains(e.Hint, "stile board repair --agent ada") {
		c.Errorf("%s: check finds them to agree: %t", at, agree)
	}
	if exists(c.lock()) && (strings.HasPrefix(name, "unlock by force") || !c.links && c.read(c.lock()) == "") {
		c.run(0, "dispatch", "unlock", "--force", "--agent", "ada")
	}
	c.run(0, "dispatch", "open", "--agent", "ada", "--task", "next", "-w", "0")
	c.run(0, "board", "repair", "--agent", "ada")
	c.run(0, "board", "check")
	c.clean()
	return step != ""
}
