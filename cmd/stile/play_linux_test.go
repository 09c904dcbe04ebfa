package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/stile-lock/stile/grant"
)

// play is a container atlas whose clock the test sets.
type play struct {
	*testing.T
	dir, clock string
}

func (p *play) prints(args ...string) string {
	p.Helper()
	return prints(p.T, p.dir, args...)
}

func (p *play) file(name, text string) string {
	p.Helper()
	writeFile(p.T, filepath.Join(p.dir, name), text)
	return name
}

// now sets the clock of all processes, those that are stopped too.
func (p *play) now(sinceBegin string) {
	p.Helper()
	p.file("clock.new", sinceBegin)
	if err := os.Rename(p.clock+".new", p.clock); err != nil {
		p.Fatal(err)
	}
}

func (p *play) acquires(agent string) {
	p.Helper()
	p.prints("grant", "acquire", "atlas", "--agent", agent)
}

func (p *play) lands(agent, file string, more ...string) landedAnswer {
	p.Helper()
	var l landedAnswer
	p.decode(p.prints(append([]string{"grant", "land", "atlas", file, "--agent", agent, "--json"}, more...)...), &l)
	return l
}

func (p *play) releases(agent string) {
	p.Helper()
	p.prints("grant", "release", "atlas", "--agent", agent)
}

// landedAnswer is what a landing prints, as far as it is looked at here.
type landedAnswer struct {
	Replayed bool
	Landing  struct{ N int64 }
}

func (p *play) decode(text string, into any) {
	p.Helper()
	if err := json.Unmarshal([]byte(text), into); err != nil {
		p.Fatalf("%v: %s", err, text)
	}
}

// refusedAnswer is what a refused command prints.
type refusedAnswer struct {
	Code, Message, Hint string
	Refusal             refusalObject
}

// refuses runs a command that is to be refused, and to change nothing.
func (p *play) refuses(code grant.Code, args ...string) refusedAnswer {
	p.Helper()
	before := p.prints("grant", "history", "atlas", "--json")
	r := start(p.T, p.dir, "stile", append(args, "--json")...)
	got := p.refusal(r, code)
	if after := p.prints("grant", "history", "atlas", "--json"); after != before {
		p.Errorf("%q: refused, it changed the history to %s", args, after)
	}
	return got
}

func (p *play) refusal(r *running, code grant.Code) (got refusedAnswer) {
	p.Helper()
	text, _ := r.out.ReadString('\n')
	r.exits(exitProblem)
	p.decode(text, &got)
	if got.Code != string(code) || got.Message == "" || got.Hint == "" {
		p.Fatalf("%s, not %s", text, code)
	}
	return got
}

// comesBack checks that a refused landing is kept, that nothing else is, and that each of its bytes comes back.
func (p *play) comesBack(r refusedAnswer, file string) {
	p.Helper()
	var list struct{ Refused []struct{ Name grant.Digest } }
	p.decode(p.prints("register", "refused", "atlas", "--json"), &list)
	if len(list.Refused) != 1 || list.Refused[0].Name != r.Refusal.Quarantine {
		p.Fatalf("kept: %+v, the answer named %q", list, r.Refusal.Quarantine)
	}
	p.prints("register", "refused", "atlas", string(r.Refusal.Quarantine), "--export", "back")
	want, err := os.ReadFile(filepath.Join(p.dir, file))
	if err != nil {
		p.Fatal(err)
	}
	fileHolds(p.T, filepath.Join(p.dir, "back", file), string(want))
}

// register checks what the files of the register are, name and text in turn.
func (p *play) register(files ...string) {
	p.Helper()
	p.prints("register", "export", "atlas", "out", "--replace")
	var names []string
	for i := 0; i < len(files); i += 2 {
		names = append(names, files[i])
		fileHolds(p.T, filepath.Join(p.dir, "out", files[i]), files[i+1])
	}
	onlyFiles(p.T, filepath.Join(p.dir, "out"), names...)
}

func (p *play) badge(want string) {
	p.Helper()
	if got := strings.TrimSpace(p.prints("grant", "status", "atlas", "--badge")); got != want {
		p.Errorf("the badge is %s, not %s", got, want)
	}
}

func (p *play) pages() string { return filepath.Join(p.dir, ".stile", "containers", "atlas", "pages") }

var pageName = regexp.MustCompile(`^\d{4}-\d{16}\.json$`)

// naming is the call that gives a page its name: what a swap is decided by.
func naming(c call) bool { return c.nr == unix.SYS_LINKAT && pageName.MatchString(c.to) }

// killedAfter runs stile until it has made a call, and kills it before the next.
func (p *play) killedAfter(made func(call) bool, args ...string) {
	p.Helper()
	there := false
	g := startGated(p.T, p.dir, func(_ *gated, c call) answer {
		if there {
			return kill
		}
		there = made(c)
		return pass
	}, args...)
	g.exits(-1)
}
