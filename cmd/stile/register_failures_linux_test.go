package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stile-lock/stile/grant"
)

// playFailures are the failures of the design's list that concern what lands, each played by processes of the tool
// with files of their own. grant/granttest has all of the list, for every store.
var playFailures = []struct {
	name string
	play func(p *play)
}{
	{"01 paused past its expiry", playPausedPastExpiry},
	{"02 paused between check and swap", playPausedBeforeItsName},
	{"07 answer lost after land", playLandKilledAfterItsName},
	{"08 answer lost after acquire, then a crash", playAcquireKilledAfterItsName},
	{"09 the same landing twice", playSameLandingTwice},
	{"10 the same id, other bytes", playSameIDOtherBytes},
	{"12 an expired holder is cleared", playHolderCleared},
	{"18 head dies after acquiring", playHeadDiesAfterAcquiring},
	{"23 a torn page, a stray file", playTornPage},
	{"28 release without a landing, or without what landed", playReleaseWithoutALanding},
	{"29 a dead grant's ids", playDeadGrantsIDs},
	{"30 judged before its stamp, changed after it", playReproduction},
}

func TestFailuresWithArtifacts(t *testing.T) {
	for _, f := range playFailures {
		t.Run(f.name, func(t *testing.T) {
			p := &play{T: t, dir: atlas(t)}
			p.clock = filepath.Join(p.dir, "clock")
			t.Setenv(testClock, p.clock)
			f.play(p)
			p.prints("grant", "history", "atlas", "--verify")
		})
	}
}

// A holder lies stopped until its grant has ended and another has landed. What it lands then is refused, and kept.
func playPausedPastExpiry(p *play) {
	p.acquires("ada")
	late := p.file("late", "ada's work")
	first := true
	g := startGated(p.T, p.dir, func(*gated, call) answer {
		if first {
			first = false
			return hold // before its first change of any file
		}
		return pass
	}, "grant", "land", "atlas", late, "--agent", "ada", "--json")
	at := g.stopped()
	p.now("4h1m")
	p.acquires("bob")
	p.lands("bob", p.file("map", "bob's work"))
	g.let(at)
	r := p.refusal(g.running, grant.CodeFenced)
	if r.Refusal.Ended == nil || r.Refusal.Ended.How != grant.HowTakenOver || r.Refusal.Yours != 1 || r.Refusal.Holder == nil || r.Refusal.Holder.Agent != "bob" {
		p.Errorf("%+v", r)
	}
	p.comesBack(r, late)
	p.register("map", "bob's work")
	p.releases("bob")
}

// It was found good, its files are stored, its page is written: all but the name. Meanwhile its grant ends.
func playPausedBeforeItsName(p *play) {
	for i, next := range []struct {
		how  grant.How
		code grant.Code
		ends func()
	}{
		{grant.HowTakenOver, grant.CodeFenced, func() { p.acquires("bob"); p.lands("bob", p.file("map", "bob's work")); p.releases("bob") }},
		{grant.HowTakenOver, grant.CodeFenced, func() { p.acquires("bob"); p.lands("bob", p.file("map", "more")); p.releases("bob") }},
		{grant.HowCleared, grant.CodeFenced, func() {
			var s containerStatus
			p.decode(p.prints("grant", "status", "atlas", "--json"), &s)
			p.prints("grant", "clear", "atlas", "--operator", "olga", "--rev", fmt.Sprint(s.Rev), "--reason", "silent")
		}},
	} {
		p.now(fmt.Sprintf("%dh", 10*i))
		p.acquires("ada")
		late := p.file("late", fmt.Sprint("ada's work ", i))
		stopped := false
		g := startGated(p.T, p.dir, func(_ *gated, c call) answer {
			if naming(c) && !stopped {
				stopped = true
				return hold
			}
			return pass
		}, "grant", "land", "atlas", late, "--agent", "ada", "--json")
		at := g.stopped()
		p.now(fmt.Sprintf("%dh", 10*i+5))
		next.ends()
		g.let(at)
		r := p.refusal(g.running, next.code)
		if r.Refusal.Ended == nil || r.Refusal.Ended.How != next.how {
			p.Errorf("%d: %+v", i, r)
		}
		p.comesBack(r, late)
		p.prints("register", "refused", "atlas", string(r.Refusal.Quarantine), "--discard", "--reason", "seen", "--operator", "olga")
		if err := os.RemoveAll(filepath.Join(p.dir, "back")); err != nil {
			p.Fatal(err)
		}
		p.register("map", []string{"bob's work", "more", "more"}[i])
	}
}

func playLandKilledAfterItsName(p *play) {
	p.acquires("ada")
	p.file("map", "one")
	p.killedAfter(naming, "grant", "land", "atlas", "map", "--agent", "ada")
	if l := p.lands("ada", "map"); !l.Replayed || l.Landing.N != 1 {
		p.Errorf("%+v", l)
	}
	p.register("map", "one")
	p.file("map", "two")
	p.killedAfter(naming, "grant", "land", "atlas", "map", "--agent", "ada", "--id", "my-landing")
	if l := p.lands("ada", "map", "--id", "my-landing"); !l.Replayed || l.Landing.N != 2 {
		p.Errorf("with its id: %+v", l)
	}
	p.register("map", "two")
	p.releases("ada")
}

func playAcquireKilledAfterItsName(p *play) {
	p.killedAfter(naming, "grant", "acquire", "atlas", "--agent", "ada")
	p.refuses(grant.CodeHeld, "grant", "acquire", "atlas", "--agent", "bob")
	var a struct {
		Replayed bool
		Grant    int64
	}
	p.decode(p.prints("grant", "acquire", "atlas", "--agent", "ada", "--json"), &a)
	if !a.Replayed || a.Grant != 1 {
		p.Errorf("%+v", a)
	}
	p.lands("ada", p.file("map", "ada's"))
	p.releases("ada")
	// Without its secret nobody resumes: the grant is its session's until it expires.
	p.killedAfter(naming, "grant", "acquire", "atlas", "--agent", "ada")
	if err := os.RemoveAll(filepath.Join(p.dir, "state")); err != nil {
		p.Fatal(err)
	}
	p.refuses(grant.CodeHeld, "grant", "acquire", "atlas", "--agent", "ada")
	r := p.refuses(grant.CodeNotHolder, "grant", "land", "atlas", "map", "--agent", "ada")
	p.comesBack(r, "map")
	p.now("4h1m")
	p.acquires("bob")
	p.lands("bob", p.file("map", "bob's"))
	p.register("map", "bob's")
	p.releases("bob")
}

func playSameLandingTwice(p *play) {
	p.acquires("ada")
	p.file("map", "one")
	first := p.lands("ada", "map", "--id", "my-landing")
	p.lands("ada", p.file("other", "two"))
	before := p.prints("grant", "history", "atlas", "--json")
	if again := p.lands("ada", "map", "--id", "my-landing"); first.Replayed || !again.Replayed || again.Landing.N != first.Landing.N {
		p.Errorf("%+v, then %+v", first, again)
	}
	if after := p.prints("grant", "history", "atlas", "--json"); after != before {
		p.Errorf("the second one had an effect: %s", after)
	}
	p.register("other", "two")
	p.releases("ada")
}

func playSameIDOtherBytes(p *play) {
	p.acquires("ada")
	p.lands("ada", p.file("map", "one"), "--id", "my-landing")
	p.file("map", "two")
	p.refuses(grant.CodeOpIDReused, "grant", "land", "atlas", "map", "--agent", "ada", "--id", "my-landing")
	p.register("map", "one")
	p.releases("ada")
}

func playHolderCleared(p *play) {
	p.acquires("ada")
	p.lands("ada", p.file("map", "one"))
	p.now("4h1m")
	p.prints("grant", "clear", "atlas", "--operator", "olga", "--rev", "3", "--reason", "no answer since noon")
	p.badge("holder-silent")
	p.file("map", "two")
	r := p.refuses(grant.CodeFenced, "grant", "land", "atlas", "map", "--agent", "ada")
	if e := r.Refusal.Ended; e == nil || e.How != grant.HowCleared || !e.Operator || e.By != "olga" || e.Reason != "no answer since noon" {
		p.Errorf("%+v", e)
	}
	p.comesBack(r, "map")
	p.register("map", "one")
}

// The queue's head acquires and falls silent: the badge says so until the next lead has landed and released. What
// the silent one lands at last comes back to it.
func playHeadDiesAfterAcquiring(p *play) {
	p.acquires("ada")
	p.prints("grant", "petition", "atlas", "--agent", "bob")
	p.prints("grant", "petition", "atlas", "--agent", "carl")
	p.lands("ada", p.file("map", "ada's"))
	p.releases("ada")
	p.acquires("bob")
	p.file("late", "bob's")
	// It dies when its file is stored and before it lands.
	g := startGated(p.T, p.dir, func(_ *gated, c call) answer {
		if naming(c) {
			return kill
		}
		return pass
	}, "grant", "land", "atlas", "late", "--agent", "bob")
	g.exits(-1)
	p.badge("held")
	p.refuses(grant.CodeHeld, "grant", "acquire", "atlas", "--agent", "carl")
	p.now("4h1m")
	p.badge("holder-silent")
	p.register("map", "ada's")
	p.acquires("carl")
	p.badge("caution")
	p.comesBack(p.refuses(grant.CodeFenced, "grant", "land", "atlas", "late", "--agent", "bob"), "late")
	p.lands("carl", p.file("map", "carl's"))
	p.badge("caution")
	p.releases("carl")
	p.badge("free")
	p.register("map", "carl's")
}

// A torn page blocks the writers of its container and names the one command that helps; a stray file blocks nobody.
func playTornPage(p *play) {
	p.acquires("ada")
	p.lands("ada", p.file("map", "one"))
	writeFile(p.T, filepath.Join(p.pages(), "stray"), "x")
	writeFile(p.T, filepath.Join(p.dir, ".stile", "containers", "atlas", "objects", "artifacts", "stray"), "x")
	p.lands("ada", p.file("map", "two"))
	p.register("map", "two")
	const page = "0001-0000000000000005.json"
	writeFile(p.T, filepath.Join(p.pages(), page), `{"blocks":[],`)
	for _, args := range [][]string{
		{"grant", "land", "atlas", "map", "--agent", "ada"}, {"register", "log", "atlas"}, {"grant", "acquire", "atlas", "--agent", "bob"},
	} {
		code, said := stileExit(p.T, p.dir, args...)
		if code != exitProblem || !strings.Contains(said, "pages/"+page) || !strings.Contains(said, "hint: stile grant restore atlas --reason ") {
			p.Errorf("%q: exit code %d: %s", args, code, said)
		}
	}
	p.prints("grant", "restore", "atlas", "--operator", "olga", "--reason", "the machine went down")
	p.register("map", "two")
	p.lands("ada", p.file("map", "three"))
	p.releases("ada")
	p.register("map", "three")
}

// Nothing is released before it has landed, nor while what landed cannot be read back.
func playReleaseWithoutALanding(p *play) {
	p.acquires("ada")
	p.refuses(grant.CodeNotPushed, "grant", "release", "atlas", "--agent", "ada")
	l := p.lands("ada", p.file("map", "one"))
	if l.Landing.N != 1 {
		p.Errorf("%+v", l)
	}
	list, err := filepath.Glob(filepath.Join(p.dir, ".stile", "containers", "atlas", "objects", "artifacts", "*"))
	if err != nil || len(list) != 2 {
		p.Fatalf("%q, %v", list, err)
	}
	for _, object := range list { // the artifact and the manifest
		if err := os.Rename(object, object+".away"); err != nil {
			p.Fatal(err)
		}
		p.refuses(grant.CodeNotPushed, "grant", "release", "atlas", "--agent", "ada")
		if err := os.Rename(object+".away", object); err != nil {
			p.Fatal(err)
		}
	}
	// Cut off when the page has its name: the next one finds it done.
	p.killedAfter(naming, "grant", "release", "atlas", "--agent", "ada")
	p.badge("free")
	p.prints("grant", "release", "atlas", "--agent", "ada")
	p.register("map", "one")
}

func playDeadGrantsIDs(p *play) {
	p.acquires("ada")
	p.prints("grant", "ids", "atlas", "5", "--agent", "ada")
	p.now("4h1m")
	p.file("map", "one")
	p.comesBack(p.refuses(grant.CodeExpired, "grant", "land", "atlas", "map", "--agent", "ada", "--ids", "1-2"), "map")
	p.acquires("bob")
	p.refuses(grant.CodeBadIDs, "grant", "land", "atlas", "map", "--agent", "bob", "--ids", "1-2")
	if got := p.prints("grant", "ids", "atlas", "2", "--agent", "bob"); !strings.Contains(got, "6 to 7") {
		p.Errorf("the next ones are %s", got)
	}
	p.lands("bob", "map", "--ids", "6-7")
	p.register("map", "one")
	p.releases("bob")
}

func playReproduction(p *play) {
	p.acquires("ada")
	p.lands("ada", p.file("mass", "5.972e24 kg"))
	p.prints("repro", "commission", "atlas", "mass", "--kernel", p.file("kernel", "Newton"), "--assumptions", p.file("given", "G, g"), "--deriver", "bob", "--agent", "ada")
	p.prints("repro", "derive", "atlas", "4", "--agent", "bob")
	p.refuses(grant.CodeNotStaged, "repro", "judge", "atlas", "4", "--agent", "eve")
	p.prints("repro", "submit", "atlas", "4", p.file("result", "5.972e24 kg"), "--agent", "bob")
	p.refuses(grant.CodeAlreadyStaged, "repro", "submit", "atlas", "4", p.file("result", "5.98e24 kg"), "--agent", "bob")
	if got := p.prints("repro", "judge", "atlas", "4", "--agent", "eve", "--json"); !strings.Contains(got, `"verdict":"match"`) {
		p.Errorf("%s", got)
	}
}
