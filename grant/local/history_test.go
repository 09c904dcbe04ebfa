package local

import (
	"fmt"
	"testing"

	"github.com/anishathalye/porcupine"

	"github.com/stile-lock/stile/grant"
)

// seen is what an answer told of the page.
type seen struct {
	Rev    int64      `json:"rev"`
	Grant  int64      `json:"grant"`
	Held   bool       `json:"held"`
	Seq    int64      `json:"seq"`
	Landed bool       `json:"landed"`
	Stamp  grant.Time `json:"stamp"`
	Expiry grant.Time `json:"expiry"`
}

const opRead grant.Op = "read"

type input struct {
	kind grant.Op
	mine int64
}

type output struct {
	code grant.Code
	page seen
}

// container is what a container is to its users: a number that rises, who holds it until when, and how often it
// landed. An answer is legal if it follows from the state at one moment between call and return.
var containerModel = porcupine.Model{
	Init: func() any { return seen{Rev: 1} },
	Step: func(state, in, out any) (bool, any) {
		s, i, o := state.(seen), in.(input), out.(output)
		mine := s.Held && s.Grant == i.mine
		switch o.code {
		case "":
		case grant.CodeFenced: // justified: the grant was really over
			return !mine, s
		case grant.CodeExpired:
			return mine, s
		case grant.CodeHeld, grant.CodeNotExpired:
			return s.Held, s
		case grant.CodeAlreadyCleared, grant.CodeNotHeld:
			return !s.Held, s
		case grant.CodeNotPushed:
			return mine && !s.Landed, s
		case grant.CodeConflict:
			return true, s // the operator had looked at an older page
		default:
			return false, s
		}
		p := o.page
		if i.kind == opRead {
			s.Stamp, p.Stamp = 0, 0
			return s == p, state
		}
		if p.Rev != s.Rev+1 {
			return false, s
		}
		switch i.kind {
		case grant.OpAcquire:
			return p.Grant == s.Grant+1 && p.Seq == s.Seq && p.Held && (!s.Held || p.Stamp >= s.Expiry), p
		case grant.OpHeartbeat:
			return mine && p.Grant == s.Grant && p.Stamp < s.Expiry && p.Expiry >= s.Expiry && p.Seq == s.Seq, p
		case grant.OpLand:
			return mine && p.Grant == s.Grant && p.Stamp < s.Expiry && p.Seq == s.Seq+1, p
		case grant.OpRelease:
			return mine && s.Landed && p.Grant == s.Grant && !p.Held && p.Seq == s.Seq, p
		case grant.OpClear:
			return s.Held && p.Stamp >= s.Expiry && p.Grant == s.Grant+1 && !p.Held && p.Seq == s.Seq, p
		}
		return false, s
	},
	Equal: func(a, b any) bool { return a == b },
	DescribeOperation: func(in, out any) string {
		return fmt.Sprintf("%s under %d: %s %+v", in.(input).kind, in.(input).mine, out.(output).code, out.(output).page)
	},
}

// TestBadHistories: the checker refuses what must never be seen.
func TestBadHistories(t *testing.T) {
	held := seen{Rev: 2, Grant: 1, Held: true, Stamp: 10, Expiry: 100}
	taken := seen{Rev: 3, Grant: 2, Held: true, Stamp: 100, Expiry: 200}
	landed := seen{Rev: 3, Grant: 1, Held: true, Seq: 1, Landed: true, Stamp: 20, Expiry: 100}
	acquire := porcupine.Operation{Input: input{kind: grant.OpAcquire}, Output: output{page: held}, Call: 0, Return: 1}
	take := porcupine.Operation{Input: input{kind: grant.OpAcquire}, Output: output{page: taken}, Call: 2, Return: 3}
	op := func(kind grant.Op, mine int64, code grant.Code, p seen, at int64) porcupine.Operation {
		return porcupine.Operation{Input: input{kind, mine}, Output: output{code, p}, Call: at, Return: at + 1}
	}
	with := func(p seen, f func(*seen)) seen { f(&p); return p }
	for _, c := range []struct {
		what string
		good bool
		ops  []porcupine.Operation
	}{
		{"as it should be", true, []porcupine.Operation{acquire, take, op(grant.OpLand, 1, grant.CodeFenced, seen{}, 4)}},
		{"landed, then released", true, []porcupine.Operation{acquire, op(grant.OpLand, 1, "", landed, 2),
			op(grant.OpRelease, 1, "", seen{Rev: 4, Grant: 1, Seq: 1, Stamp: 30}, 4)}},
		{"fenced while the swap that ended it was under way", true, []porcupine.Operation{acquire,
			{Input: take.Input, Output: take.Output, Call: 2, Return: 9}, op(grant.OpLand, 1, grant.CodeFenced, seen{}, 4)}},
		{"two with one number", false, []porcupine.Operation{acquire, acquire}},
		{"a number that comes back", false, []porcupine.Operation{acquire, op(grant.OpAcquire, 0, "", with(taken, func(p *seen) { p.Grant = 1 }), 2)}},
		{"taken over before the expiry", false, []porcupine.Operation{acquire, op(grant.OpAcquire, 0, "", with(taken, func(p *seen) { p.Stamp = 99 }), 2)}},
		{"landed after the end", false, []porcupine.Operation{acquire, take, op(grant.OpLand, 1, "", with(landed, func(p *seen) { p.Rev = 4 }), 4)}},
		{"fenced while the grant lived", false, []porcupine.Operation{acquire, op(grant.OpLand, 1, grant.CodeFenced, seen{}, 2),
			{Input: take.Input, Output: take.Output, Call: 4, Return: 5}}},
		{"an old page read", false, []porcupine.Operation{acquire, take, op(opRead, 0, "", held, 4)}},
		{"a landing lost", false, []porcupine.Operation{acquire, op(grant.OpLand, 1, "", landed, 2), op(opRead, 0, "", held, 4)}},
		{"released without a landing", false, []porcupine.Operation{acquire, op(grant.OpRelease, 1, "", seen{Rev: 3, Grant: 1, Stamp: 20}, 2)}},
		{"held by nobody", false, []porcupine.Operation{op(grant.OpAcquire, 0, grant.CodeHeld, seen{}, 0)}},
		{"a clear that burns no number", false, []porcupine.Operation{acquire, op(grant.OpClear, 0, "", seen{Rev: 3, Grant: 1, Stamp: 100}, 2)}},
	} {
		if got := porcupine.CheckOperations(containerModel, c.ops); got != c.good {
			t.Errorf("%s: taken for good: %v", c.what, got)
		}
	}
}
