package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/stile-lock/stile/grant"
	"github.com/stile-lock/stile/grant/session"
	"github.com/stile-lock/stile/internal/display"
	"github.com/stile-lock/stile/register"
)

func reproVerb() verb {
	v := verb{
		name:     "repro",
		brief:    "have a record derived again by somebody else, and compare",
		synopsis: "VERB [flags] NAME …",
		detail: `The lead commissions a reproduction: a record that has landed is to be derived again,
from the kernel and the record's assumptions, by another agent than its author. The
deriver is given these two and not the result. What the deriver submits is stamped
and cannot change; only then a third judges whether it matches.`,
		examples: `stile repro commission atlas data/mass --kernel k.md --assumptions a.md --deriver bob --agent ada
stile repro derive atlas 12 --to work --agent bob
stile repro submit atlas 12 work/mass --agent bob
stile repro judge atlas 12 --agent eve`,
		operands: "commission derive submit judge list",
		subs: func() []verb {
			return []verb{reproCommissionVerb(), reproDeriveVerb(), reproSubmitVerb(), reproJudgeVerb(), reproListVerb()}
		},
	}
	v.options = func() []option { return groupFlags(v.subs()) }
	return v
}

// reproFlags are the flags of the repro verbs. Not every verb has all.
type reproFlags struct {
	registerFlags
	kernel, assumptions, deriver, author string
	to, with, reason                     string
	void                                 bool
}

// bundleJSON is what a deriver is given, and where.
type bundleJSON struct {
	register.Bundle
	Folder string `json:"folder,omitempty"`
}

func (f *reproFlags) printBundle(b register.Bundle) error {
	if f.json {
		return printJSONTo(stdout, bundleJSON{b, display.Text(f.to)})
	}
	_, err := fmt.Fprintf(stdout, "reproduction %d of %s, for %s\nrecord       %s\nkernel       %s\nassumptions  %s\n",
		b.Block, display.Text(b.Container), display.Text(b.Deriver), display.Text(b.Record), b.Kernel, b.Assumptions)
	if err == nil && f.to != "" {
		_, err = fmt.Fprintf(stdout, "folder       %s\n", display.Text(f.to))
	}
	return err
}

// writeBundle puts what the deriver is given into a new folder.
func (f *reproFlags) writeBundle(ctx context.Context, r *register.Register, b register.Bundle) error {
	if f.to == "" {
		return nil
	}
	if err := os.Mkdir(f.to, 0o777); err != nil && !errors.Is(err, os.ErrExist) {
		return err
	}
	for name, d := range map[string]grant.Digest{"kernel": b.Kernel, "assumptions": b.Assumptions} {
		data, err := r.Given(ctx, d, name)
		if err != nil {
			return err
		}
		to, err := os.OpenFile(filepath.Join(f.to, name), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
		if err != nil {
			return err
		}
		_, err = to.Write(data)
		if err = errors.Join(err, to.Close()); err != nil {
			return err
		}
	}
	return nil
}

func reproCommissionVerb() verb {
	return verb{
		name:     "repro commission",
		brief:    "ask for a record to be derived again",
		synopsis: "NAME RECORD --kernel FILE --assumptions FILE --deriver WHO [--author WHO]",
		detail: `Freezes the kernel and the record's assumptions, and prints what the deriver is given.
RECORD is a file of the register's tree, and stays the one that it is now, whatever
lands later. Its author is who landed it, unless --author says otherwise; the deriver
is somebody else. A kernel or assumptions that have the result in them are refused.
Only the lead commissions.`,
		examples: `stile repro commission atlas data/mass --kernel k.md --assumptions a.md --deriver bob --agent ada`,
		options:  func() []option { return new(reproFlags).commissionOptions() },
		run:      cmdReproCommission,
	}
}

func (f *reproFlags) commissionOptions() []option {
	return append([]option{
		nonEmpty("kernel", "FILE", "the kernel", &f.kernel),
		nonEmpty("assumptions", "FILE", "the record's assumptions", &f.assumptions),
		nonEmpty("deriver", "WHO", "the agent who is to derive it", &f.deriver),
		nonEmpty("author", "WHO", "the record's author; who landed it by default", &f.author),
		f.landingOption(),
	}, f.holders()...)
}

func cmdReproCommission(args []string) int {
	var f reproFlags
	name, rest, err := f.parse(args, f.commissionOptions(), 1, 1, "repro commission NAME RECORD")
	if err == nil && (f.kernel == "" || f.assumptions == "" || f.deriver == "") {
		err = usageHint("stile repro commission "+shown(name)+" RECORD --kernel FILE --assumptions FILE --deriver WHO", "--kernel, --assumptions and --deriver are needed")
	}
	var given [2][]byte
	for i, file := range []string{f.kernel, f.assumptions} {
		if err == nil {
			given[i], err = readGiven(file)
		}
	}
	if err != nil {
		return f.fail(err)
	}
	return f.on(name, func(ctx context.Context, c *session.Client, r *register.Register) error {
		if err := f.holder(c); err != nil {
			return err
		}
		x, _, err := c.Find(ctx, grant.OpCommission, name, f.sessionPath())
		if err != nil {
			return err
		}
		record := register.Record{Name: rest[0]}
		if f.landing != "" {
			l, err := r.At(ctx, f.landing)
			if err != nil {
				return err
			}
			record.Seq = l.Seq
		}
		b, err := r.Commission(ctx, register.Commissioning{
			Command: grant.Commission{Meta: grant.Meta{Container: name, Nonce: session.Nonce(f.id), By: grant.Agent(x.Agent)}, Session: x.Proof(), Deriver: f.deriver, Author: f.author},
			Record:  record, Kernel: given[0], Assumptions: given[1], Since: sinceOf(f.id, x.Base),
		})
		if err != nil {
			return err
		}
		return f.printBundle(b)
	})
}

// sinceOf is where to look for an earlier attempt: with an id there may have been one.
func sinceOf(id string, base grant.Ref) grant.Ref {
	if id == "" {
		return grant.Ref{}
	}
	return base
}

func readGiven(file string) ([]byte, error) {
	data, err := os.ReadFile(file)
	return data, givenError(err)
}

// givenError says of a file that was named and is not there that this is all.
func givenError(err error) error {
	if errors.Is(err, os.ErrNotExist) {
		return &failure{exit: exitNoFolder, code: "no_such_file", hint: "check the name; nothing was changed", err: err}
	}
	return err
}

// onBlock works as an agent on the reproduction whose number is the first operand.
func (f *reproFlags) onBlock(rest []string, work func(ctx context.Context, c *session.Client, block int64) error) int {
	return f.asAgent(func(ctx context.Context, c *session.Client) error {
		block, err := parseNumber("the reproduction", rest[0])
		if err != nil {
			return err
		}
		return work(ctx, c, block)
	})
}

func (f *reproFlags) meta(c *session.Client, name string) grant.Meta {
	return grant.Meta{Container: name, Nonce: session.Nonce(f.id), By: grant.Agent(c.Agent)}
}

func reproDeriveVerb() verb {
	return verb{
		name:     "repro derive",
		brief:    "begin a derivation, as its deriver",
		synopsis: "NAME NUMBER [--to DIR]",
		detail: `Begins the derivation, and prints what it is made from; with --to the kernel and the
assumptions are written into DIR. The result is not among them.`,
		examples: `stile repro derive atlas 12 --to work --agent bob`,
		options:  func() []option { return new(reproFlags).deriveOptions() },
		run:      cmdReproDerive,
	}
}

func (f *reproFlags) deriveOptions() []option {
	return append([]option{nonEmpty("to", "DIR", "write the kernel and the assumptions into DIR", &f.to)}, f.agents()...)
}

func cmdReproDerive(args []string) int {
	var f reproFlags
	name, rest, err := f.parse(args, f.deriveOptions(), 1, 1, "repro derive NAME NUMBER")
	if err != nil {
		return f.fail(err)
	}
	return f.onBlock(rest, func(ctx context.Context, c *session.Client, block int64) error {
		r := register.Of(c.Store, name)
		b, err := r.Derive(ctx, grant.Derive{Meta: f.meta(c, name), Block: block})
		if errors.Is(err, grant.CodeConflict) {
			// Begun already, by whoever asks again for what it is made from.
			if pair, perr := r.Pair(ctx, block); perr == nil && pair.Block.Worker == c.Agent && !pair.Staged() {
				b, err = register.BundleOf(name, pair.Block), nil
			}
		}
		if err == nil {
			err = f.writeBundle(ctx, r, b)
		}
		if err != nil {
			return err
		}
		return f.printBundle(b)
	})
}

func reproSubmitVerb() verb {
	return verb{
		name:     "repro submit",
		brief:    "stage the result of a derivation",
		synopsis: "NAME NUMBER FILE",
		detail: `Stages FILE as the result: stamped with the store's time and its SHA-256, it cannot
change any more. Only the deriver submits, once, and before anybody judges.`,
		examples: `stile repro submit atlas 12 work/mass --agent bob`,
		options:  func() []option { return new(reproFlags).agents() },
		operands: "FILE",
		run:      cmdReproSubmit,
	}
}

func cmdReproSubmit(args []string) int {
	var f reproFlags
	name, rest, err := f.parse(args, f.agents(), 2, 2, "repro submit NAME NUMBER FILE")
	if err != nil {
		return f.fail(err)
	}
	return f.onBlock(rest, func(ctx context.Context, c *session.Client, block int64) error {
		result, err := os.Open(rest[1])
		if err != nil {
			return givenError(err)
		}
		defer result.Close() // it is only read
		b, err := register.Of(c.Store, name).Submit(ctx, grant.Stage{Meta: f.meta(c, name), Block: block}, result)
		if err != nil {
			return err
		}
		return f.printReproductions(name, []register.Reproduction{{Block: b}}, true)
	})
}

func reproListVerb() verb {
	return verb{
		name:     "repro list",
		brief:    "list reproductions",
		synopsis: "NAME [--all] [--json]",
		detail:   `Lists the open reproductions of a container, with --all those too that were closed ('stile grant block NAME --close').`,
		examples: `stile repro list atlas`,
		options: func() []option {
			f := new(reproFlags)
			return append([]option{boolOption("all", "those that were closed as well", &f.all)}, f.base()...)
		},
		run: cmdReproList,
	}
}

func cmdReproList(args []string) int {
	var f reproFlags
	options := append([]option{boolOption("all", "those that were closed as well", &f.all)}, f.base()...)
	name, _, err := f.parse(args, options, 0, 0, "repro list NAME")
	if err != nil {
		return f.fail(err)
	}
	return f.on(name, func(ctx context.Context, _ *session.Client, r *register.Register) error {
		list, err := r.Reproductions(ctx, f.all)
		if err != nil {
			return err
		}
		return f.printReproductions(name, list, false)
	})
}

// reproJSON is a reproduction for programs.
type reproJSON struct {
	Number  int64               `json:"number"`
	Deriver string              `json:"deriver"`
	Closed  bool                `json:"closed"`
	Repro   *grant.Reproduction `json:"repro"`
}

func (f *reproFlags) printReproductions(name string, list []register.Reproduction, one bool) error {
	if f.json {
		out := make([]reproJSON, len(list))
		for i, r := range list {
			out[i] = reproJSON{r.ID, display.Text(r.Worker), r.Closed, r.Repro}
		}
		if one {
			return printJSONTo(stdout, out[0])
		}
		return printJSONTo(stdout, map[string]any{"container": display.Text(name), "reproductions": out})
	}
	if len(list) == 0 {
		_, err := fmt.Fprintln(stdout, "no reproductions")
		return err
	}
	rows := [][]string{{"NUMBER", "STATE", "RECORD", "AUTHOR", "DERIVER", "STAGED", "VERDICT"}}
	for _, r := range list {
		state, staged, verdict := string(r.Repro.State), "-", "-"
		if r.Closed {
			state = "CLOSED"
		}
		if r.Repro.StagedAt.T != 0 {
			staged = clock(r.Repro.StagedAt.T.Std())
		}
		if r.Repro.Verdict != "" {
			verdict = fmt.Sprintf("%s, by %s", r.Repro.Verdict, display.Text(r.Repro.Judge))
		}
		rows = append(rows, []string{fmt.Sprint(r.ID), state, display.Text(r.Repro.Record), display.Text(r.Repro.Author), display.Text(r.Worker), staged, verdict})
	}
	printTable(stdout, rows)
	return nil
}
