package grant

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"
)

// TestRefusals has every command meet every refusal that its type names.
func TestRefusals(t *testing.T) {
	type story struct {
		name string
		code Code
		run  func(w *world) Command
	}
	lead := func(w *world) Session { return w.acquire("anna") }
	both := func(name string, code Code, run func(w *world, s Session) Command) story {
		return story{name, code, func(w *world) Command { return run(w, lead(w)) }}
	}
	// What every command of a holder refuses, for each of them.
	holders := map[string]func(w *world, s Session) Command{
		"heartbeat":   func(w *world, s Session) Command { return Heartbeat{w.agent("anna"), s} },
		"land":        func(w *world, s Session) Command { return w.landing("anna", s) },
		"release":     func(w *world, s Session) Command { return w.release("anna", s) },
		"begin":       func(w *world, s Session) Command { return Begin{w.agent("anna"), s, w.page().Register.Head, "push"} },
		"finish":      func(w *world, s Session) Command { return Finish{Meta: w.agent("anna"), Session: s, ID: "none-such"} },
		"ids":         func(w *world, s Session) Command { return LeaseIDs{Meta: w.agent("anna"), Session: s, Count: 1} },
		"block":       func(w *world, s Session) Command { return AssignBlock{w.agent("anna"), s, "ben", ""} },
		"close_block": func(w *world, s Session) Command { return CloseBlock{w.agent("anna"), s, 1, ""} },
		"resolve":     func(w *world, s Session) Command { return Resolve{w.agent("anna"), s, "none-such", true, "why"} },
		"commission":  func(w *world, s Session) Command { return commission(w, s) },
	}
	leads := map[string]bool{"ids": true, "block": true, "close_block": true, "resolve": true, "commission": true}
	var stories []story
	for op, cmd := range holders {
		ended, other := CodeFenced, CodeNotHolder
		if leads[op] {
			ended, other = CodeNotLead, CodeNotLead
		}
		stories = append(stories,
			both(op+" after a takeover", ended, func(w *world, s Session) Command {
				w.now = w.page().Expiry
				w.acquire("ben")
				return cmd(w, s)
			}),
			both(op+" after a clear", ended, func(w *world, s Session) Command {
				w.clear()
				return cmd(w, s)
			}),
			both(op+" with the number that a clear burned", ended, func(w *world, s Session) Command {
				w.clear()
				s.Grant++
				return cmd(w, s)
			}),
			both(op+" after the release", ended, func(w *world, s Session) Command {
				w.do(w.landing("anna", s))
				w.do(w.release("anna", s))
				return cmd(w, s)
			}),
			both(op+" of another session", other, func(w *world, s Session) Command {
				s.Secret = w.secret()
				return cmd(w, s)
			}),
			both(op+" of a grant that the page does not know", CodeRollback, func(w *world, s Session) Command {
				s.Grant = 7
				return cmd(w, s)
			}),
			both(op+" of no grant", CodeBadInput, func(w *world, s Session) Command {
				s.Grant = 0
				return cmd(w, s)
			}),
		)
		if op != "release" && op != "finish" {
			stories = append(stories, both(op+" at the expiry", CodeExpired, func(w *world, s Session) Command {
				w.now = w.page().Expiry
				return cmd(w, s)
			}))
		}
	}
	stories = append(stories, []story{
		{"create again", CodeExists, func(w *world) Command { return Create{Meta: w.agent("anna")} }},
		{"petition twice", CodeDuplicate, func(w *world) Command {
			w.do(Petition{w.agent("anna")})
			return Petition{w.agent("anna")}
		}},
		{"petition of one too many", CodeLimit, func(w *world) Command {
			for i := range MaxQueue {
				w.chain = append(w.chain, w.must(Petition{w.agent(fmt.Sprintf("a%d", i))}))
			}
			return Petition{w.agent("anna")}
		}},
		{"touch of none", CodeGone, func(w *world) Command { return Touch{w.agent("anna")} }},
		{"withdraw of none", CodeGone, func(w *world) Command { return Withdraw{w.agent("anna")} }},
		{"withdraw twice", CodeGone, func(w *world) Command {
			w.do(Petition{w.agent("anna")})
			w.do(Withdraw{w.agent("anna")})
			return Withdraw{w.agent("anna")}
		}},
		both("acquire while held", CodeHeld, func(w *world, s Session) Command { return Acquire{w.agent("ben"), w.secret().Hash()} }),
		both("acquire by the holder's agent", CodeHeld, func(w *world, s Session) Command { return Acquire{w.agent("anna"), w.secret().Hash()} }),
		both("acquire with the holder's session", CodeBadInput, func(w *world, s Session) Command {
			w.now = w.page().Expiry
			return Acquire{w.agent("anna"), s.Secret.Hash()}
		}),
		{"acquire without a session", CodeBadInput, func(w *world) Command { return Acquire{Meta: w.agent("anna")} }},
		{"acquire past the queue", CodeNotYourTurn, func(w *world) Command {
			w.do(Petition{w.agent("anna")})
			return Acquire{w.agent("ben"), w.secret().Hash()}
		}},
		{"acquire at place 2 within the window", CodeNotYourTurn, func(w *world) Command {
			w.do(Petition{w.agent("anna")})
			w.do(Petition{w.agent("ben")})
			w.pass(30*time.Minute - time.Microsecond)
			return Acquire{w.agent("ben"), w.secret().Hash()}
		}},
		both("takeover past the queue", CodeNotYourTurn, func(w *world, s Session) Command {
			w.do(Petition{w.agent("ben")})
			w.now = w.page().Expiry.Add(100 * time.Hour)
			return Acquire{w.agent("cara"), w.secret().Hash()}
		}),
		{"acquire elsewhere too", CodeNested, func(w *world) Command {
			w.env.Elsewhere = []string{name, "other"}
			return Acquire{w.agent("anna"), w.secret().Hash()}
		}},
		both("takeover under a fenced command", CodeLandingRuns, func(w *world, s Session) Command {
			w.begin("anna", s)
			w.now = w.page().Expiry
			return Acquire{w.agent("ben"), w.secret().Hash()}
		}),
		both("clear under a fenced command", CodeLandingRuns, func(w *world, s Session) Command {
			w.begin("anna", s)
			w.now = w.page().Expiry
			return Clear{Meta: w.operator("olga"), Reason: "gone", Seen: w.page().Rev}
		}),
		both("release under a fenced command", CodeLandingRuns, func(w *world, s Session) Command {
			w.do(w.landing("anna", s))
			w.begin("anna", s)
			return w.release("anna", s)
		}),
		both("land under a fenced command", CodeLandingRuns, func(w *world, s Session) Command {
			w.begin("anna", s)
			return w.landing("anna", s)
		}),
		both("begin under a fenced command", CodeBadInput, func(w *world, s Session) Command {
			w.begin("anna", s)
			return Begin{w.agent("anna"), s, w.page().Register.Head, "push"}
		}),
		both("begin after one in doubt", CodeInDoubt, func(w *world, s Session) Command {
			w.begin("anna", s)
			w.env.FenceHeld = true
			return Begin{w.agent("anna"), s, w.page().Register.Head, "push"}
		}),
		both("begin on another head", CodeRegisterMoved, func(w *world, s Session) Command {
			w.env.FenceHeld = true
			return Begin{w.agent("anna"), s, w.manifest("x"), "push"}
		}),
		both("begin of nothing", CodeBadInput, func(w *world, s Session) Command {
			w.env.FenceHeld = true
			return Begin{w.agent("anna"), s, "", " "}
		}),
		both("finish of what does not run", CodeNotRunning, func(w *world, s Session) Command {
			return Finish{Meta: w.agent("anna"), Session: s, ID: "none-such"}
		}),
		both("finish with other ids", CodeBadIDs, func(w *world, s Session) Command {
			id := w.begin("anna", s)
			return Finish{Meta: w.agent("anna"), Session: s, ID: id, Done: true, Manifest: w.manifest("x"), IDs: []Range{{Lo: 1, Hi: 1}}}
		}),
		both("finish undone with ids", CodeBadInput, func(w *world, s Session) Command {
			id := w.begin("anna", s)
			return Finish{Meta: w.agent("anna"), Session: s, ID: id, Keep: []int64{1}}
		}),
		both("resolve while it runs", CodeLandingRuns, func(w *world, s Session) Command {
			return Resolve{w.agent("anna"), s, w.begin("anna", s), true, "seen"}
		}),
		both("resolve without a reason", CodeReasonRequired, func(w *world, s Session) Command {
			id := w.begin("anna", s)
			w.env.FenceHeld = true
			return Resolve{w.agent("anna"), s, id, true, ""}
		}),
		both("resolve of no doubt", CodeNotRunning, func(w *world, s Session) Command {
			return Resolve{w.agent("anna"), s, "none-such", true, "seen"}
		}),
		both("heartbeat at the cap", CodePastCap, func(w *world, s Session) Command {
			for range 6 {
				w.pass(4*time.Hour - time.Minute)
				w.do(Heartbeat{w.agent("anna"), s})
			}
			return Heartbeat{w.agent("anna"), s}
		}),
		both("land on yesterday's head", CodeRegisterMoved, func(w *world, s Session) Command {
			old := w.landing("anna", s)
			w.do(w.landing("anna", s))
			return old
		}),
		both("land without a manifest", CodeBadInput, func(w *world, s Session) Command {
			return Land{Meta: w.agent("anna"), Session: s}
		}),
		both("land nothing, with ids", CodeBadInput, func(w *world, s Session) Command {
			l := w.landing("anna", s)
			l.Empty, l.IDs = "nothing", []Range{{Lo: 1, Hi: 1}}
			return l
		}),
		both("land nothing, for no reason", CodeReasonRequired, func(w *world, s Session) Command {
			l := w.landing("anna", s)
			l.Empty = " "
			return l
		}),
		both("release before a landing", CodeNotPushed, func(w *world, s Session) Command { return w.release("anna", s) }),
		both("release with another read-back", CodeNotPushed, func(w *world, s Session) Command {
			w.do(w.landing("anna", s))
			r := w.release("anna", s)
			r.ReadBack = w.manifest("x")
			return r
		}),
		both("release with a kept lease", CodeLeasesOpen, func(w *world, s Session) Command {
			w.do(LeaseIDs{Meta: w.agent("anna"), Session: s, Count: 3})
			l := w.landing("anna", s)
			l.Keep = []int64{w.page().IDs.Leases[0].ID}
			w.do(l)
			return w.release("anna", s)
		}),
		both("clear before the expiry", CodeNotExpired, func(w *world, s Session) Command {
			w.now = w.page().Expiry - 1
			return Clear{Meta: w.operator("olga"), Reason: "gone", Seen: w.page().Rev}
		}),
		both("clear without a reason", CodeReasonRequired, func(w *world, s Session) Command {
			w.now = w.page().Expiry
			return Clear{Meta: w.operator("olga"), Reason: "\u00a0 ", Seen: w.page().Rev}
		}),
		both("clear of a page that moved on", CodeConflict, func(w *world, s Session) Command {
			seen := w.page().Rev
			w.do(Petition{w.agent("ben")})
			w.now = w.page().Expiry
			return Clear{Meta: w.operator("olga"), Reason: "gone", Seen: seen}
		}),
		both("clear twice", CodeAlreadyCleared, func(w *world, s Session) Command {
			w.clear()
			return Clear{Meta: w.operator("oscar"), Reason: "gone", Seen: w.page().Rev - 1}
		}),
		both("clear by the holder", CodeOwnGrant, func(w *world, s Session) Command {
			w.now = w.page().Expiry
			return Clear{Meta: w.operator("olga"), Reason: "gone", Seen: w.page().Rev, Own: []Digest{s.Secret.Hash()}}
		}),
		both("clear by an agent", CodeBadInput, func(w *world, s Session) Command {
			return Clear{Meta: w.agent("olga"), Reason: "gone", Seen: w.page().Rev}
		}),
		{"clear of a free one", CodeNotHeld, func(w *world) Command {
			return Clear{Meta: w.operator("olga"), Reason: "gone", Seen: w.page().Rev}
		}},
		{"petition of an operator", CodeBadInput, func(w *world) Command { return Petition{w.operator("olga")} }},
		{"restore of what is whole", CodeRollback, func(w *world) Command {
			return Restore{Meta: w.operator("olga"), Reason: "why not", Witness: WitnessOf(w.head(), Witness{})}
		}},
		{"restore without a reason", CodeReasonRequired, func(w *world) Command {
			return Restore{Meta: w.operator("olga"), Witness: Witness{Rev: 9, Epoch: 1}}
		}},
		{"any on a page below the witness", CodeRollback, func(w *world) Command {
			w.env.Witness = Witness{Epoch: 1, Rev: 9, Grant: 3}
			return Petition{w.agent("anna")}
		}},
		both("block for nobody", CodeBadInput, func(w *world, s Session) Command { return AssignBlock{w.agent("anna"), s, "", ""} }),
		both("block of one too many", CodeLimit, func(w *world, s Session) Command {
			for range MaxBlocks {
				w.chain = append(w.chain, w.must(AssignBlock{w.agent("anna"), s, "ben", ""}))
			}
			return AssignBlock{w.agent("anna"), s, "ben", ""}
		}),
		both("close of no block", CodeNoBlock, func(w *world, s Session) Command { return CloseBlock{w.agent("anna"), s, 77, ""} }),
		both("ids for no block", CodeNoBlock, func(w *world, s Session) Command {
			return LeaseIDs{Meta: w.agent("anna"), Session: s, Count: 1, Block: 77}
		}),
		both("lease of one too many", CodeLimit, func(w *world, s Session) Command {
			for range MaxLeases {
				w.chain = append(w.chain, w.must(LeaseIDs{Meta: w.agent("anna"), Session: s, Count: 1}))
			}
			return LeaseIDs{Meta: w.agent("anna"), Session: s, Count: 1}
		}),
	}...)
	for _, s := range stories {
		t.Run(strings.ReplaceAll(s.name, " ", "_"), func(t *testing.T) {
			w := newWorld(t)
			w.refused(s.code, s.run(w))
		})
	}
}

func commission(w *world, s Session) Commission {
	return Commission{Meta: w.agent("anna"), Session: s, Record: "lemma 4", Author: "anna", Kernel: w.manifest("k"), Assumptions: w.manifest("a"), Deriver: "ben"}
}

// must is do without Verify on the whole chain, for long ones.
func (w *world) must(cmd Command) Revision {
	w.t.Helper()
	next, err := w.try(cmd)
	if err != nil {
		w.t.Fatalf("%s: %v", cmd.Op(), err)
	}
	return next
}

func (w *world) clear() {
	w.t.Helper()
	w.now = max(w.now, w.page().Expiry)
	w.do(Clear{Meta: w.operator("olga"), Reason: "its host is gone", Seen: w.page().Rev})
}

func (w *world) begin(who string, s Session) string {
	w.t.Helper()
	c := Begin{w.agent(who), s, w.page().Register.Head, "rsync -a site/ web:"}
	w.env.FenceHeld = true
	w.do(c)
	w.env.FenceHeld = false
	return c.Nonce
}

// TestQuarantine: the refused landings of which the artifacts are kept, and no others.
func TestQuarantine(t *testing.T) {
	for _, code := range []Code{CodeFenced, CodeNotHolder, CodeExpired} {
		if !(&Refusal{Code: code, Op: OpLand}).Quarantined() || (&Refusal{Code: code, Op: OpHeartbeat}).Quarantined() {
			t.Errorf("%s", code)
		}
	}
	for _, code := range []Code{CodeRegisterMoved, CodeBadIDs, CodeLandingRuns, CodeBadInput} {
		if (&Refusal{Code: code, Op: OpLand}).Quarantined() {
			t.Errorf("%s", code)
		}
	}
}

// TestBadInput: names, nonces, texts, ranges and times that can never work.
func TestBadInput(t *testing.T) {
	w := newWorld(t)
	s := w.acquire("anna")
	long := strings.Repeat("x", MaxText+1)
	for what, cmd := range map[string]Command{
		"container":       Petition{Meta{"a/b", "nonce-xx", Agent("anna")}},
		"agent":           Petition{Meta{name, "nonce-xx", Agent("")}},
		"agent of a dot":  Petition{Meta{name, "nonce-xx", Agent("..")}},
		"control":         Petition{Meta{name, "nonce-xx", Agent("a\x1b[31m")}},
		"direction":       Petition{Meta{name, "nonce-xx", Agent("a\u202eb")}},
		"bytes":           Petition{Meta{name, "nonce-xx", Agent("a\xff")}},
		"dash":            Petition{Meta{name, "nonce-xx", Agent("-f")}},
		"long":            Petition{Meta{name, "nonce-xx", Agent(strings.Repeat("a", MaxName+1))}},
		"nonce":           Petition{Meta{name, "short", Agent("anna")}},
		"nonce's letters": Petition{Meta{name, "nonce xx", Agent("anna")}},
		"role":            Petition{Meta{name, "nonce-xx", Actor{Name: "anna"}}},
		"count 0":         LeaseIDs{Meta: w.agent("anna"), Session: s, Count: 0},
		"count -1":        LeaseIDs{Meta: w.agent("anna"), Session: s, Count: -1},
		"count":           LeaseIDs{Meta: w.agent("anna"), Session: s, Count: 1<<63 - 1},
		"note":            AssignBlock{w.agent("anna"), s, "ben", long},
		"two lines":       AssignBlock{w.agent("anna"), s, "ben", "a\nb"},
		"cap":             Create{Meta: w.agent("anna"), Params: Params{Cap: 25 * 3600, Extension: 1, Window: 1, PetitionIdle: 60}},
	} {
		head := w.head()
		if cmd.Op() == OpCreate {
			head = Revision{}
		}
		_, err := Apply(head, cmd, Env{Now: Stamp{SourceStore, w.now}})
		if CodeOf(err) != CodeBadInput {
			t.Errorf("%s: %v", what, err)
		}
		if err != nil && (!printable(err.Error()) || len(err.Error()) > 2*MaxName) {
			t.Errorf("%s: the error cannot be shown: %q", what, err)
		}
	}
	for _, now := range []Stamp{{}, {SourceStore, 0}, {SourceStore, -1}, {SourceStore, maxTime + 1}, {"", w.now}} {
		if _, err := Apply(w.head(), Petition{w.agent("ben")}, Env{Now: now}); CodeOf(err) != CodeBadInput {
			t.Errorf("at %v: %v", now, err)
		}
	}
	if _, err := Apply(Revision{}, Petition{w.agent("ben")}, Env{Now: Stamp{SourceStore, w.now}}); !errors.Is(err, ErrLockMissing) {
		t.Errorf("no page: %v", err)
	}
	if _, err := Apply(w.head(), Petition{Meta{"other", "nonce-xx", Agent("anna")}}, Env{Now: Stamp{SourceStore, w.now}}); !errors.Is(err, ErrBadPage) {
		t.Errorf("another container's page: %v", err)
	}
}

// TestLostPage: a page that a witness knows is never made anew.
func TestLostPage(t *testing.T) {
	now := Env{Now: Stamp{SourceStore, start}, Witness: Witness{Epoch: 1, Rev: 12, Grant: 4}}
	m := Meta{name, "nonce-xx", Operator("olga")}
	for _, cmd := range []Command{Create{Meta: m}, Acquire{Meta{name, "nonce-xx", Agent("anna")}, Secret{}.Hash()}} {
		_, err := Apply(Revision{}, cmd, now)
		var r *Refusal
		if !errors.As(err, &r) || r.Code != CodeLockMissing || !strings.Contains(r.Next, "restore") {
			t.Errorf("%s: %v", cmd.Op(), err)
		}
	}
}
