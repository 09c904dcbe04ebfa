package record

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stile-lock/stile/internal/seam"
	"github.com/stile-lock/stile/internal/vfs"
	"github.com/stile-lock/stile/internal/vfs/vfstest"
	"github.com/stile-lock/stile/lockfile"
)

// TestRandomInterleavingsAgainstAModel runs writers into each other at random steps: at each named step
// of one, before its fence, another may force its lock away and do a whole change of its own, which may
// be overtaken in its turn. The model is a list: each change that reported success is in it once, in
// the order in which they landed. After the fence only changes of the lock's holder are tried, since a
// forced unlock there is a residual that nobody promises anything about.
func TestRandomInterleavingsAgainstAModel(t *testing.T) {
	rounds := 400
	if testing.Short() {
		rounds = 40
	}
	overtaken := 0
	for seed := range rounds {
		w := &modelWorld{t: t, mem: vfstest.NewMem("/d"), rng: rand.New(rand.NewPCG(uint64(seed), 7))}
		w.mem.Put("/d/f", []byte("[\n]\n"), 0o644)
		for range 8 {
			w.change(0)
		}
		text, _ := w.mem.Get("/d/f")
		got, ok := decode(text)
		if !ok || fmt.Sprint(got) != fmt.Sprint(w.model) {
			t.Fatalf("seed %d: the file holds %s, the model %v", seed, text, w.model)
		}
		if names := w.mem.Names("/d"); !slices.Equal(names, []string{"f"}) {
			t.Fatalf("seed %d: left: %q", seed, names)
		}
		overtaken += w.overtaken
	}
	if overtaken < rounds {
		t.Errorf("only %d changes were overtaken in %d rounds", overtaken, rounds)
	}
}

type modelWorld struct {
	t         *testing.T
	mem       *vfstest.Mem
	rng       *rand.Rand
	model     []string
	pid       int64
	overtaken int
}

// change does one random change as a process of its own.
func (w *modelWorld) change(depth int) {
	w.pid++
	pid := w.pid
	rec := fmt.Sprintf("r%d", pid)
	tries := 0
	o := actor(pid, w.mem, func(step seam.Step) {
		switch step {
		case seam.AcquirePublished, seam.HoldRead, seam.CommitTempWritten:
			if depth < 3 && tries < 4 && w.rng.IntN(4) == 0 {
				tries++
				w.overtaken++
				// It may be gone already, by an earlier turn here.
				_, err := lockfile.Unlock(context.Background(), "/d/f", lockfile.UnlockOptions{Force: true, Seams: actor(-1, w.mem, nil).Seams})
				must(w.t, err)
				w.change(depth + 1)
			}
		case seam.CommitRenamed:
			w.model = append(w.model, rec)
		}
	})
	var err error
	switch w.rng.IntN(3) {
	case 0:
		err = Append(context.Background(), "/d/f", fmt.Appendf(nil, "%q", rec), o)
	case 1:
		err = Update(context.Background(), "/d/f", func(old []byte) ([]byte, error) {
			return appended(old, rec), nil
		}, o)
	default:
		err = Rewrite(context.Background(), "/d/f", func(old io.Reader, w io.Writer) error {
			text, err := io.ReadAll(old)
			if err != nil {
				return err
			}
			return vfs.WriteAll(w, appended(text, rec))
		}, o)
	}
	must(w.t, err)
}

func appended(old []byte, rec string) []byte {
	p, err := checkedPlace("", old)
	if err != nil {
		panic(err)
	}
	return concat(old[:p.cut], p.before, fmt.Appendf(nil, "%q", rec), p.after, old[p.rest:])
}
