package grant

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"
	"time"
)

// shelf is a store of one container in memory. Before each swap it asks what is to become of it.
type shelf struct {
	mu    sync.Mutex
	chain []Revision
	now   Time
	fate  func(next Revision) fate
	late  []func() // swaps on their way
	reads int
	fail  error // of Head and Read
}

type fate int

const (
	happens fate = iota
	answerLost
	comesLate // the answer is lost, and the swap happens when the test says so
	never
)

func (s *shelf) Containers(context.Context) ([]string, error) { return []string{name}, nil }

func (s *shelf) Head(context.Context, string) (Revision, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.fail != nil:
		return Revision{}, s.fail
	case len(s.chain) == 0:
		return Revision{}, fmt.Errorf("head: %w", ErrLockMissing)
	}
	return s.chain[len(s.chain)-1], nil
}

func (s *shelf) Read(_ context.Context, _ string, at Ref) (Revision, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.reads++
	for _, r := range s.chain {
		if r.page.Rev == at.Rev && r.page.Epoch == at.Epoch {
			return r, s.fail
		}
	}
	return Revision{}, ErrLockMissing
}

func (s *shelf) Swap(_ context.Context, base Ref, next Revision) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	what := happens
	if s.fate != nil {
		what = s.fate(next)
	}
	do := func() error {
		var head Ref
		if n := len(s.chain); n > 0 {
			head = s.chain[n-1].Ref()
		}
		if head != base {
			return fmt.Errorf("swap: %w", ErrConflict)
		}
		s.chain = append(s.chain, next)
		return nil
	}
	switch what {
	case answerLost:
		_ = do()
		return ErrUnknown
	case comesLate:
		s.late = append(s.late, func() { _ = do() })
		return ErrUnknown
	case never:
		return ErrUnknown
	}
	return do()
}

func (s *shelf) Put(context.Context, string, Kind, io.Reader) (Digest, int64, error) {
	return "", 0, errors.ErrUnsupported
}
func (s *shelf) Get(context.Context, string, Kind, Digest) (io.ReadCloser, error) {
	return nil, errors.ErrUnsupported
}
func (s *shelf) Objects(context.Context, string, Kind) ([]Digest, error) {
	return nil, errors.ErrUnsupported
}

func (s *shelf) do(cmd Command) (Revision, bool, error) {
	return Do(context.Background(), s, Request{Command: cmd, Env: s.env})
}

func (s *shelf) env(context.Context, Revision) (Env, error) {
	return Env{Now: Stamp{SourceStore, s.now}}, nil
}

func newShelf(t *testing.T) (*shelf, *world) {
	s := &shelf{now: start}
	w := &world{t: t}
	if _, _, err := s.do(Create{Meta: w.operator("olga")}); err != nil {
		t.Fatal(err)
	}
	return s, w
}

// TestAnswerLost: an attempt whose answer was lost is found by its nonce, and is not made twice.
func TestAnswerLost(t *testing.T) {
	for _, what := range []fate{answerLost, never} {
		s, w := newShelf(t)
		fates := []fate{what}
		s.fate = func(Revision) fate {
			if len(fates) == 0 {
				return happens
			}
			f := fates[0]
			fates = fates[1:]
			return f
		}
		secret := w.secret()
		rev, replayed, err := s.do(Acquire{w.agent("anna"), secret.Hash()})
		if err != nil || replayed != (what == answerLost) || rev.page.Grant != 1 || len(s.chain) != 2 {
			t.Errorf("%v: %v, replayed %t, %d revisions", what, err, replayed, len(s.chain))
		}
		if err := Verify(s.chain); err != nil {
			t.Error(err)
		}
	}
}

// TestSwapComesLate: a swap that was given up and comes after all is the attempt's only effect.
func TestSwapComesLate(t *testing.T) {
	s, w := newShelf(t)
	first := true
	s.fate = func(Revision) fate {
		if !first {
			for _, late := range s.late { // just before the second try
				late()
			}
			return happens
		}
		first = false
		return comesLate
	}
	rev, replayed, err := s.do(Petition{w.agent("anna")})
	if err != nil || !replayed || len(s.chain) != 2 || rev.Ref() != s.chain[1].Ref() {
		t.Errorf("%v, replayed %t, %d revisions", err, replayed, len(s.chain))
	}
}

// TestRefusedWhileASwapIsUnderWay: what may still happen is not called refused.
func TestRefusedWhileASwapIsUnderWay(t *testing.T) {
	s, w := newShelf(t)
	secret := w.secret()
	if _, _, err := s.do(Acquire{w.agent("anna"), secret.Hash()}); err != nil {
		t.Fatal(err)
	}
	s.fate = func(Revision) fate {
		s.now = s.now.Add(100 * time.Hour) // now it has expired
		return comesLate
	}
	beat := Heartbeat{w.agent("anna"), Session{1, secret}}
	if _, _, err := s.do(beat); CodeOf(err) != CodeUnknown || errors.Is(err, CodeExpired) || !strings.Contains(err.Error(), "expired") {
		t.Errorf("%v", err)
	}
	base := s.chain[1].Ref()
	s.mu.Lock()
	s.late[0]()
	s.mu.Unlock()
	rev, replayed, err := Do(context.Background(), s, Request{Command: beat, Since: base, Env: s.env})
	if err != nil || !replayed || rev.page.Op != OpHeartbeat {
		t.Errorf("and later: %v, replayed %t", err, replayed)
	}
}

// TestRetryInAnotherProcess: with the head that was stored before the first attempt the first result comes
// back, whatever has happened since; with other content it is refused.
func TestRetryInAnotherProcess(t *testing.T) {
	s, w := newShelf(t)
	base := s.chain[0].Ref()
	c := Petition{w.agent("anna")}
	first, _, err := s.do(c)
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := s.do(Withdraw{w.agent("anna")}); err != nil {
		t.Fatal(err)
	}
	for _, since := range []Request{{Command: c, Since: base}, {Command: c, Anywhere: true}} {
		since.Env = s.env
		rev, replayed, err := Do(context.Background(), s, since)
		if err != nil || !replayed || rev.Ref() != first.Ref() || len(s.chain) != 3 {
			t.Errorf("%v, replayed %t, %d revisions", err, replayed, len(s.chain))
		}
	}
	_, _, err = Do(context.Background(), s, Request{Command: Petition{Meta{name, c.Nonce, Agent("ben")}}, Since: base, Env: s.env})
	if CodeOf(err) != CodeOpIDReused {
		t.Errorf("other content: %v", err)
	}
}

// TestConflictIsEvaluatedAgain on the head that won.
func TestConflictIsEvaluatedAgain(t *testing.T) {
	s, w := newShelf(t)
	other := Acquire{w.agent("ben"), w.secret().Hash()}
	s.fate = func(next Revision) fate {
		if next.page.By.Name == "anna" && len(s.chain) == 1 {
			r, err := Apply(s.chain[0], other, Env{Now: Stamp{SourceStore, s.now}})
			if err != nil {
				t.Fatal(err)
			}
			s.chain = append(s.chain, r)
		}
		return happens
	}
	_, _, err := s.do(Acquire{w.agent("anna"), w.secret().Hash()})
	var r *Refusal
	if !errors.As(err, &r) || r.Code != CodeHeld || r.Holder.Agent != "ben" {
		t.Errorf("%v", err)
	}
}

// TestDoErrors: errors of the store are themselves, and a lost answer is not forgotten over them.
func TestDoErrors(t *testing.T) {
	s, w := newShelf(t)
	full := errors.New("no space")
	s.fail = full
	if _, _, err := s.do(Petition{w.agent("anna")}); !errors.Is(err, full) || errors.Is(err, ErrUnknown) {
		t.Errorf("%v", err)
	}
	s.fail = nil
	s.fate = func(Revision) fate { s.fail = full; return answerLost }
	if _, _, err := s.do(Petition{w.agent("anna")}); !errors.Is(err, full) || !errors.Is(err, ErrUnknown) || CodeOf(err) != CodeUnknown {
		t.Errorf("%v", err)
	}
	s.fail, s.fate = nil, nil
	s.fate = func(Revision) fate { return never }
	if _, _, err := s.do(Petition{w.agent("ben")}); CodeOf(err) != CodeUnknown {
		t.Errorf("when every answer is lost: %v", err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	s.fate = func(Revision) fate { cancel(); return never }
	if _, _, err := Do(ctx, s, Request{Command: Touch{w.agent("anna")}, Env: s.env}); !errors.Is(err, context.Canceled) || !errors.Is(err, ErrUnknown) {
		t.Errorf("%v", err)
	}
}

// TestHistory: Chain, FindNonce and FindEnd go back over the whole chain, and say when it has a hole.
func TestHistory(t *testing.T) {
	ctx := context.Background()
	s := &shelf{chain: longChain(t)}
	chain, err := Chain(ctx, s, name)
	if err != nil || len(chain) != len(s.chain) || Verify(chain) != nil {
		t.Fatalf("%d of %d revisions, %v", len(chain), len(s.chain), err)
	}
	for _, r := range s.chain {
		found, ok, err := FindNonce(ctx, s, name, r.page.Nonce, Ref{})
		if err != nil || !ok || found.Ref() != r.Ref() {
			t.Errorf("revision %d: %t, %v", r.page.Rev, ok, err)
		}
		if _, ok, _ := FindNonce(ctx, s, name, r.page.Nonce, r.Ref()); ok {
			t.Errorf("revision %d is found after itself", r.page.Rev)
		}
	}
	for grant, how := range map[int64]How{1: HowReleased, 2: HowCleared, 4: HowReleased, 5: HowTakenOver} {
		end, err := FindEnd(ctx, s, name, grant)
		if err != nil || end == nil || end.How != how || end.Grant != grant {
			t.Errorf("grant %d: %+v, %v", grant, end, err)
		}
	}
	for _, grant := range []int64{3, 6, 77} { // burned, current, never
		if end, err := FindEnd(ctx, s, name, grant); err != nil || end != nil {
			t.Errorf("grant %d: %+v, %v", grant, end, err)
		}
	}
	whole := s.chain
	s.chain = append(append([]Revision(nil), whole[:4]...), whole[5:]...)
	if _, err := Chain(ctx, s, name); !errors.Is(err, ErrBadPage) || !strings.Contains(err.Error(), "missing in the middle") {
		t.Errorf("a hole: %v", err)
	}
	s.chain = forge(t, whole, OpTouch, 1, func(p *Page) { p.Note = "another" })[:5]
	s.chain = append(s.chain, whole[5:]...)
	if _, err := Chain(ctx, s, name); !errors.Is(err, ErrRollback) {
		t.Errorf("another page in the middle: %v", err)
	}
}

// TestManyContenders: of eight that want one container each gets it once, and the chain holds.
func TestManyContenders(t *testing.T) {
	s, _ := newShelf(t)
	var group sync.WaitGroup
	for i := range 8 {
		group.Go(func() {
			who := fmt.Sprintf("agent%d", i)
			n := 0
			do := func(cmd func(m Meta, head *Page) Command) error {
				n++
				head, err := s.Head(context.Background(), name)
				if err != nil {
					return err
				}
				_, _, err = s.do(cmd(Meta{name, fmt.Sprintf("nonce-%d-%d", i, n), Agent(who)}, head.page))
				return err
			}
			secret := Secret{byte(i), 1}
			if err := do(func(m Meta, _ *Page) Command { return Petition{m} }); err != nil {
				t.Error(err)
				return
			}
			for {
				err := do(func(m Meta, _ *Page) Command { return Acquire{m, secret.Hash()} })
				if err == nil {
					break
				}
				if c := CodeOf(err); c != CodeHeld && c != CodeNotYourTurn {
					t.Error(err)
					return
				}
			}
			head, _ := s.Head(context.Background(), name)
			session := Session{head.page.Grant, secret}
			for _, cmd := range []func(m Meta, p *Page) Command{
				func(m Meta, p *Page) Command {
					return Land{Meta: m, Session: session, Base: p.Register.Head, Manifest: p.Digest}
				},
				func(m Meta, p *Page) Command { return Release{m, session, p.Register.Head} },
			} {
				if err := do(cmd); err != nil {
					t.Error(err)
				}
			}
		})
	}
	group.Wait()
	if err := Verify(s.chain); err != nil {
		t.Error(err)
	}
	if p := s.chain[len(s.chain)-1].page; p.Grant != 8 || p.Register.Seq != 8 {
		t.Errorf("grant %d, %d landings", p.Grant, p.Register.Seq)
	}
}
