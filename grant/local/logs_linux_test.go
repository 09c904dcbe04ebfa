package local

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"

	"github.com/anishathalye/porcupine"

	"github.com/stile-lock/stile/grant"
)

// event is a line of a process's log: that it calls, or what came of it.
type event struct {
	ID     int        `json:"id"` // of the operation, in its process
	Return bool       `json:"return,omitempty"`
	T      int64      `json:"t"` // ns, one clock for all processes
	Kind   grant.Op   `json:"kind,omitempty"`
	Nonce  string     `json:"nonce,omitempty"`
	Mine   int64      `json:"mine,omitempty"` // the grant that the command came with
	Code   grant.Code `json:"code,omitempty"` // of a refusal
	Lost   bool       `json:"lost,omitempty"` // any other error: nobody knows
	Page   seen       `json:"page,omitzero"`
}

func seenOf(p *grant.Page) seen {
	return seen{Rev: p.Rev, Grant: p.Grant, Held: p.State == grant.StateHeld, Seq: p.Register.Seq, Landed: p.Landing != nil, Stamp: p.Stamp.T, Expiry: p.Expiry}
}

// readLog reads what a process wrote until it ended, perhaps in the middle of a line.
func readLog(name string) ([]event, error) {
	f, err := os.Open(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil // killed before it had begun
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	var events []event
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		var e event
		if json.Unmarshal(lines.Bytes(), &e) != nil {
			break
		}
		events = append(events, e)
	}
	return events, lines.Err()
}

// operations makes a history of the logs. An operation whose end nobody knows is open-ended: if the chain has its
// nonce it happened at some time after its call, else it never did.
func operations(logs []string, chain []grant.Revision) (ops []porcupine.Operation, counts map[string]int, err error) {
	made := map[string]*grant.Page{}
	for _, r := range chain {
		made[r.Page().Nonce] = r.Page()
	}
	counts = map[string]int{}
	for client, name := range logs {
		events, err := readLog(name)
		if err != nil {
			return nil, nil, err
		}
		returns := map[int]event{}
		for _, e := range events {
			if e.Return {
				returns[e.ID] = e
			}
		}
		for _, e := range events {
			if e.Return {
				continue
			}
			op := porcupine.Operation{ClientId: client, Input: input{e.Kind, e.Mine}, Call: e.T, Return: math.MaxInt64}
			r, ok := returns[e.ID]
			switch {
			case ok && !r.Lost:
				op.Return, op.Output = r.T, output{r.Code, r.Page}
				counts[string(e.Kind)+" "+string(r.Code)]++
				if p := made[e.Nonce]; e.Kind != opRead && (r.Code == "") != (p != nil) {
					return nil, nil, fmt.Errorf("%s %s was answered %q, and the chain has it: %t", e.Kind, e.Nonce, string(r.Code), p != nil)
				}
			case made[e.Nonce] != nil && e.Kind != opRead:
				op.Output = output{page: seenOf(made[e.Nonce])}
				counts["unknown, done"]++
			default:
				counts["unknown, not done"]++
				continue
			}
			ops = append(ops, op)
		}
	}
	if len(ops) == 0 {
		err = errors.New("nothing happened")
	}
	return ops, counts, err
}
