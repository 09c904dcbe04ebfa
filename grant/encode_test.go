package grant

import (
	"bytes"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

var writeGolden = flag.Bool("write-golden", false, "write testdata/*.json anew: a change of the format")

// goldenPages are pages of one chain that between them have every kind of value.
func goldenPages(t *testing.T) map[string]Revision {
	chain := longChain(t)
	pages := map[string]Revision{"created": chain[0]}
	for _, r := range chain {
		switch p := r.page; {
		case p.Op == OpJudge:
			pages["held"] = r
		case p.Op == OpRelease && p.Grant == 1:
			pages["released"] = r
		case p.Op == OpClear:
			pages["cleared"] = r
		case p.Op == OpBegin && p.Grant == 2:
			pages["running"] = r
		}
	}
	return pages
}

// TestGoldenPages: the bytes of docs/format.md.
func TestGoldenPages(t *testing.T) {
	pages := goldenPages(t)
	if len(pages) != 5 {
		t.Fatalf("%d pages", len(pages))
	}
	for what, r := range pages {
		file := filepath.Join("testdata", "page-"+what+".json")
		if *writeGolden {
			if err := os.WriteFile(file, r.bytes, 0o666); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(r.bytes, want) {
			t.Errorf("%s is now\n%s", file, r.bytes)
		}
		opened, err := Open(want)
		if err != nil || opened.hash != r.hash {
			t.Errorf("%s does not open: %v", file, err)
		}
	}
	format, err := os.ReadFile("../docs/format.md")
	if err != nil {
		t.Fatal(err)
	}
	if line := bytes.TrimSpace(pages["created"].bytes); !bytes.Contains(format, line) {
		t.Errorf("docs/format.md does not show\n%s", line)
	}
}

// TestOpenRefuses everything but the one spelling of a page that can be.
func TestOpenRefuses(t *testing.T) {
	good := string(goldenPages(t)["held"].bytes)
	replace := func(old, with string) string {
		if !strings.Contains(good, old) {
			t.Fatalf("the page has no %s", old)
		}
		return strings.Replace(good, old, with, 1)
	}
	for what, text := range map[string]string{
		"empty":              "",
		"cut short":          good[:len(good)/2],
		"without newline":    strings.TrimSuffix(good, "\n"),
		"more after it":      good + "{}",
		"blanks":             replace(`"v":1`, `"v": 1`),
		"unknown key":        replace(`"v":1`, `"v":1,"w":2`),
		"key twice":          replace(`"v":1`, `"v":1,"v":1`),
		"key in capitals":    replace(`"rev":`, `"Rev":`),
		"key missing":        replace(`"note":"",`, ``),
		"other order":        replace(`"audit":null,"blocks"`, `"blocks"`),
		"fraction":           replace(`"grant":1,`, `"grant":1.0,`),
		"exponent":           replace(`"grant":1,`, `"grant":1e0,`),
		"2^63":               replace(`"grant":1,`, `"grant":9223372036854775808,`),
		"2^63-1":             replace(`"grant":1,`, `"grant":9223372036854775807,`),
		"negative":           replace(`"grant":1,`, `"grant":-1,`),
		"escaped letter":     replace(`"atlas"`, `"\u0061tlas"`),
		"escape sequence":    replace(`"atlas"`, `"\u001b[31m"`),
		"direction":          replace(`"atlas"`, "\"a\u202etlas\""),
		"bad UTF-8":          replace(`"atlas"`, "\"a\xfftlas\""),
		"null list":          replace(`"doubts":[]`, `"doubts":null`),
		"v 0":                replace(`"v":1`, `"v":0`),
		"no v":               replace(`,"v":1`, ``),
		"v as text":          replace(`"v":1`, `"v":"1"`),
		"an array":           "[" + good + "]",
		"not JSON":           "page",
		"local time":         replace(`:00.000000Z"`, `:00.000000+01:00"`),
		"no micros":          replace(`:00.000000Z"`, `:00Z"`),
		"unknown state":      replace(`"state":"HELD"`, `"state":"LOST"`),
		"unknown op":         replace(`"op":"judge"`, `"op":"guess"`),
		"holder of a free":   replace(`"state":"HELD"`, `"state":"FREE"`),
		"session in capital": replace(`"session":"`, `"session":"A`),
		"deep":               strings.Repeat("[", 100000),
		"too big":            good + strings.Repeat(" ", MaxPage),
	} {
		if _, err := Open([]byte(text)); !errors.Is(err, ErrBadPage) || errors.Is(err, ErrNewer) {
			t.Errorf("%s: %v", what, err)
		} else if !printable(err.Error()) || len(err.Error()) > 300 {
			t.Errorf("%s: the error cannot be shown: %q", what, err)
		}
	}
	newer := replace(`"v":1`, `"v":2`)
	for _, text := range []string{newer, `{"v":3}`, strings.Replace(newer, `"note"`, `"remark"`, 1)} {
		if _, err := Open([]byte(text)); !errors.Is(err, ErrNewer) || errors.Is(err, ErrBadPage) || !strings.Contains(err.Error(), "newer stile") {
			t.Errorf("a newer page: %v", err)
		}
	}
}

// TestLargestPage: with every list full of the longest entries a page stays within MaxPage.
func TestLargestPage(t *testing.T) {
	long := func(i int) string {
		s := strings.Repeat("\"", MaxName-8) // which JSON writes as two
		return s + string(rune('A'+i/676)) + string(rune('a'+i/26%26)) + string(rune('a'+i%26))
	}
	text := strings.Repeat("\"", MaxText)
	p := goldenPages(t)["running"].page.clone()
	session, at := p.Holder.Session, p.Stamp.T
	p.Rev, p.IDs = 1_000_000, Identifiers{Next: MaxNumber + 1}
	p.Container, p.By.Name, p.Holder.Agent, p.Note, p.Running.Command = long(0), long(1), long(2), text, text
	p.Queue, p.Blocks, p.Doubts, p.Passed = nil, nil, nil, nil
	for i := range MaxQueue {
		p.Queue = append(p.Queue, Waiter{long(i), 1, int64(999_000 + i), at, at})
		p.Passed = append(p.Passed, Passed{long(i), int64(998_000 + i), WhyMissed})
	}
	for i := range MaxBlocks {
		p.Blocks = append(p.Blocks, Block{1, int64(999_000 + i), text, &Reproduction{session, long(3), long(4), session, text, session, p.Stamp, ReproJudged, VerdictMismatch}, long(5)})
	}
	for range maxDoubts {
		p.Doubts = append(p.Doubts, Doubt{text, 1, "nonce-xx", at})
	}
	at0 := int64(1_000_000_000_000_000)
	for i := range int64(MaxRanges) {
		p.IDs.Free = append(p.IDs.Free, Range{Lo: at0 + 2*i, Hi: at0 + 2*i})
	}
	at0 *= 2
	for i := range int64(MaxLeases) {
		l := Lease{Block: MaxNumber, ID: 999_000 + i, Kept: true, Lo: at0 + 100*i, Hi: at0 + 100*i + 99, Worker: long(6)}
		for j := range int64(MaxRanges / MaxLeases) {
			l.Used = append(l.Used, Range{Lo: l.Lo + 2*j, Hi: l.Lo + 2*j})
		}
		p.IDs.Leases = append(p.IDs.Leases, l)
	}
	p.Landing = &Landing{Base: session, Empty: text, ID: "nonce-xx", IDs: p.IDs.Free, N: 1, New: session, SHA256: session}
	p.Register = Register{session, 1}
	p.Ended = &End{at, p.By, 1, *p.Holder, HowCleared, text, 1}
	r, err := Seal(p)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%d bytes of %d", len(r.bytes), MaxPage)
	if _, err := Open(r.bytes); err != nil {
		t.Error(err)
	}
}

func TestTime(t *testing.T) {
	for _, c := range []struct {
		at   Time
		d    time.Duration
		want Time
	}{
		{start, time.Hour, start + 3_600_000_000}, {maxTime, time.Hour, maxTime}, {1, -time.Hour, 1},
		{start, 1<<63 - 1, start.Add(1<<63 - 1)}, {maxTime - 1, time.Microsecond, maxTime},
	} {
		if got := c.at.Add(c.d); got != c.want || !got.valid() {
			t.Errorf("%s + %s = %s", c.at, c.d, got)
		}
	}
	if d := maxTime.Sub(1); d <= 0 {
		t.Errorf("the longest time is %s", d)
	}
	if d := Time(1).Sub(maxTime); d >= 0 {
		t.Errorf("and back %s", d)
	}
	if got := start.Add(time.Hour).Sub(start); got != time.Hour {
		t.Error(got)
	}
	if got := Time(0).String() + start.String(); got != "never2026-11-30T08:00:00.000000Z" {
		t.Error(got)
	}
}

// FuzzOpen: whatever is opened is the bytes it was opened from, and nothing panics.
func FuzzOpen(f *testing.F) {
	files, err := filepath.Glob("testdata/page-*.json")
	if err != nil || len(files) == 0 {
		f.Fatal("no pages", err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(text)
	}
	f.Add([]byte(`{"v":2}`))
	f.Add([]byte("{}\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		r, err := Open(text)
		if err != nil {
			if c := CodeOf(err); c != CodeBadPage && c != CodeNewer {
				t.Fatalf("code %q of %v", c, err)
			}
			if !printable(err.Error()) {
				t.Fatalf("cannot be shown: %q", err)
			}
			return
		}
		again, err := Seal(r.page)
		if err != nil || !bytes.Equal(again.bytes, text) || again.hash != r.hash {
			t.Fatalf("opened and sealed it is %q, %v", again.bytes, err)
		}
		// Nor does any command, or a look at it.
		env := Env{Now: Stamp{SourceStore, start}, FenceHeld: true}
		m := Meta{r.page.Container, "nonce-fuzz", Agent("anna")}
		s := Session{Grant: r.page.Grant}
		for _, cmd := range []Command{Petition{m}, Withdraw{m}, Acquire{m, Secret{}.Hash()}, Heartbeat{m, s}, Land{Meta: m, Session: s, Manifest: r.hash}, Release{m, s, ""},
			Clear{Meta: Meta{r.page.Container, "nonce-fuzz", Operator("o")}, Reason: "x", Seen: r.page.Rev}} {
			next, err := Apply(r, cmd, env)
			var refusal *Refusal
			if err != nil && !errors.As(err, &refusal) {
				t.Fatalf("%s: %v", cmd.Op(), err)
			}
			if err == nil {
				if _, err := Open(next.bytes); err != nil {
					t.Fatalf("%s made what does not open: %v", cmd.Op(), err)
				}
			}
		}
		TurnOf(r.page, "anna", env)
		BadgeOf(r.page, start)
		_ = Verify([]Revision{r})
	})
}
