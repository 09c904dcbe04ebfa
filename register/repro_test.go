package register

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/stile-lock/stile/grant"
)

const result = "mass = 5.972e24 kg\n"

func (w *world) commission(a *agent, deriver string) (Bundle, error) {
	return w.reg.Commission(context.Background(), Commissioning{
		Command: grant.Commission{Meta: w.meta(grant.Agent(a.name)), Session: a.s, Deriver: deriver},
		Record:  Record{Name: "data/mass"}, Kernel: []byte("kernel v3"), Assumptions: []byte("G, g and the radius"),
	})
}

func TestReproduction(t *testing.T) {
	for _, c := range []struct {
		name, derived string
		same          bool
		verdict       grant.Verdict
	}{
		{"match", result, true, grant.VerdictMatch},
		{"mismatch", "mass = 6.1e24 kg\n", false, grant.VerdictMismatch},
		{"void", "the assumptions do not suffice", false, grant.VerdictVoid},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t)
			ctx := context.Background()
			a := w.acquire("ada")
			_, err := a.land(tree(t, "data/mass", result))
			w.must(err)
			bundle, err := w.commission(a, "bob")
			w.must(err)
			if bundle.Record != "1:data/mass" || bundle.Deriver != "bob" {
				t.Errorf("%+v", bundle)
			}
			// The head goes on; the record stays the one that was commissioned.
			_, err = a.land(tree(t, "data/mass", "overwritten"))
			w.must(err)

			// Nothing that the deriver is given tells the result.
			said, err := json.Marshal(bundle)
			w.must(err)
			kernel, err := w.reg.Given(ctx, bundle.Kernel, "the kernel")
			w.must(err)
			assumptions, err := w.reg.Given(ctx, bundle.Assumptions, "the assumptions")
			w.must(err)
			pair, err := w.reg.Pair(ctx, bundle.Block)
			w.must(err)
			for _, given := range [][]byte{said, kernel, assumptions} {
				if bytes.Contains(given, []byte(strings.TrimSpace(result))) || bytes.Contains(given, []byte(pair.Record.SHA256)) {
					t.Errorf("the deriver is told: %s", given)
				}
			}

			stage := grant.Stage{Meta: w.meta(grant.Agent("bob")), Block: bundle.Block}
			judge := grant.Judge{Meta: w.meta(grant.Agent("eve")), Block: bundle.Block, Verdict: c.verdict}
			if _, err := w.reg.Submit(ctx, stage, strings.NewReader(c.derived)); !codeIs(err, grant.CodeNotDeriving) {
				t.Error(err)
			}
			if _, err := w.reg.Derive(ctx, grant.Derive{Meta: w.meta(grant.Agent("ada")), Block: bundle.Block}); !codeIs(err, grant.CodeSameAgent) {
				t.Errorf("the author derives: %v", err)
			}
			again, err := w.reg.Derive(ctx, grant.Derive{Meta: w.meta(grant.Agent("bob")), Block: bundle.Block})
			if err != nil || again != bundle {
				t.Errorf("%+v, %v", again, err)
			}
			if _, err := w.reg.Judge(ctx, judge); !codeIs(err, grant.CodeNotStaged) {
				t.Errorf("judged before the stamp: %v", err)
			}
			staged, err := w.reg.Submit(ctx, stage, strings.NewReader(c.derived))
			w.must(err)
			if staged.Repro.StagedAt.Source != grant.SourceStore || staged.Repro.StagedAt.T == 0 {
				t.Errorf("%+v", staged.Repro)
			}
			other := stage
			other.Meta = w.meta(grant.Agent("bob"))
			if _, err := w.reg.Submit(ctx, other, strings.NewReader("changed")); !codeIs(err, grant.CodeAlreadyStaged) {
				t.Error(err)
			}
			if pair, err = w.reg.Pair(ctx, bundle.Block); err != nil || !pair.Staged() || pair.Same() != c.same {
				t.Errorf("%+v, %v", pair, err)
			}
			f, err := pair.Result(ctx)
			w.must(err)
			if data, err := io.ReadAll(f); err != nil || string(data) != c.derived {
				t.Errorf("%q, %v", data, err)
			}
			w.must(f.Close())
			own := judge
			own.Meta = w.meta(grant.Agent("bob"))
			if _, err := w.reg.Judge(ctx, own); !codeIs(err, grant.CodeSameAgent) {
				t.Errorf("the deriver judges: %v", err)
			}
			judged, err := w.reg.Judge(ctx, judge)
			w.must(err)
			if judged.Repro.Verdict != c.verdict || judged.Repro.Judge != "eve" {
				t.Errorf("%+v", judged.Repro)
			}
			judge.Meta = w.meta(grant.Agent("eve"))
			if _, err := w.reg.Judge(ctx, judge); !codeIs(err, grant.CodeConflict) {
				t.Errorf("judged twice: %v", err)
			}
			w.collect(false) // takes nothing that a reproduction needs
			w.must(w.do(grant.CloseBlock{Meta: w.meta(grant.Agent("ada")), Session: a.s, Block: bundle.Block, Reason: "over"}))
			if got := w.collect(false); got.Objects != 0 {
				t.Errorf("of a closed reproduction %d objects were collected", got.Objects)
			}
			if list, err := w.reg.Reproductions(ctx, false); err != nil || len(list) != 0 {
				t.Errorf("%+v, %v", list, err)
			}
			list, err := w.reg.Reproductions(ctx, true)
			if err != nil || len(list) != 1 || !list[0].Closed || list[0].Repro.Verdict != c.verdict {
				t.Errorf("%+v, %v", list, err)
			}
			w.verify()
		})
	}
}

func TestCommissionRefuses(t *testing.T) {
	w := newWorld(t)
	ctx := context.Background()
	a := w.acquire("ada")
	_, err := a.land(tree(t, "data/mass", result, "short", "42", "sub/x", ""))
	w.must(err)
	ask := func(name, kernel, assumptions, deriver string) error {
		_, err := w.reg.Commission(ctx, Commissioning{
			Command: grant.Commission{Meta: w.meta(grant.Agent("ada")), Session: a.s, Deriver: deriver},
			Record:  Record{Name: name}, Kernel: []byte(kernel), Assumptions: []byte(assumptions),
		})
		return err
	}
	_, e, err := w.reg.record(ctx, "", "data/mass")
	w.must(err)
	for name, c := range map[string]struct {
		err  error
		want error
	}{
		"result in the kernel":      {ask("data/mass", "as found: "+result, "a", "bob"), ErrTellsResult},
		"result in the assumptions": {ask("data/mass", "k", "mass = 5.972e24 kg", "bob"), ErrTellsResult},
		"digest in the assumptions": {ask("data/mass", "k", string(e.SHA256), "bob"), ErrTellsResult},
		"no such record":            {ask("data/none", "k", "a", "bob"), ErrRecord},
		"a folder":                  {ask("sub", "k", "a", "bob"), ErrRecord},
		"the author":                {ask("data/mass", "k", "a", "ada"), grant.CodeSameAgent},
	} {
		if !errors.Is(c.err, c.want) {
			t.Errorf("%s: %v", name, c.err)
		}
	}
	if w.page().Blocks != nil && len(w.page().Blocks) > 0 {
		t.Errorf("%+v", w.page().Blocks)
	}
	w.must(ask("short", "42 is in the kernel", "a", "bob")) // two bytes are in everything
}

func TestParseRecord(t *testing.T) {
	if r, err := ParseRecord("12:a:b"); err == nil {
		t.Errorf("%+v", r)
	}
	if r, err := ParseRecord("12:data/mass"); err != nil || r != (Record{12, "data/mass"}) {
		t.Errorf("%+v, %v", r, err)
	}
	for _, s := range []string{"", "a", "0:a", "-1:a", "01:a", "1:", "1:../a", ":a", "x:a", "99999999999999999999:a"} {
		if _, err := ParseRecord(s); !errors.Is(err, ErrRecord) {
			t.Errorf("%q: %v", s, err)
		}
	}
}
