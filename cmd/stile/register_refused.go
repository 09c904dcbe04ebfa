package main

import (
	"context"
	"fmt"
	"os"

	"github.com/stile-lock/stile/grant"
	"github.com/stile-lock/stile/grant/session"
	"github.com/stile-lock/stile/internal/display"
	"github.com/stile-lock/stile/register"
)

func registerRefusedVerb() verb {
	return verb{
		name:  "register refused",
		brief: "list refused landings, and give them back",
		synopsis: "NAME [--all]\n" +
			"NAME ID [--json]\n" +
			"NAME ID --export DIR [--replace]\n" +
			"NAME ID --discard --reason WHY",
		detail: `A landing that is refused because its grant has ended is kept: its files, byte for
byte, and what it was told. Without ID they are listed, with --all those too that were
discarded. With ID (its first six digits, or the landing's own id) one is shown,
written into a folder, or discarded with a reason; what only it needs goes with the
next 'stile register gc'. Nothing of it is merged: land it again under a new grant, on
the new head, with new ids.`,
		examples: `stile register refused atlas
stile register refused atlas 3f2a91 --export rescued
stile register refused atlas 3f2a91 --discard --reason 'landed again as number 9' --operator olga`,
		options: func() []option { return new(registerRefusedFlags).options() },
		run:     cmdRegisterRefused,
	}
}

type registerRefusedFlags struct {
	registerFlags
	dir, reason      string
	discard, replace bool
}

func (f *registerRefusedFlags) options() []option {
	return append([]option{
		boolOption("all", "those that were discarded as well", &f.all),
		nonEmpty("export", "DIR", "write its files into DIR", &f.dir),
		boolOption("replace", "with --export: replace DIR and all that is in it", &f.replace),
		boolOption("discard", "say that it is not needed any more", &f.discard),
		stringOption("reason", "WHY", "with --discard: why", &f.reason),
		nonEmpty("agent", "NAME", "with --discard: who says so; else $STILE_AGENT", &f.agent),
		nonEmpty("operator", "NAME", "with --discard: the operator who says so; else $STILE_OPERATOR", &f.operator),
	}, f.base()...)
}

func cmdRegisterRefused(args []string) int {
	var f registerRefusedFlags
	name, rest, err := f.parse(args, f.options(), 0, 1, "register refused NAME [ID]")
	switch {
	case err != nil:
	case len(rest) == 0 && (f.discard || f.dir != ""):
		err = usageHint("stile register refused "+shown(name), "it was not said which")
	case f.discard && f.dir != "":
		err = usagef("either --export or --discard")
	case f.discard && f.reason == "":
		err = register.ErrReason
	}
	if err != nil {
		return f.fail(err)
	}
	return f.on(name, func(ctx context.Context, _ *session.Client, r *register.Register) error {
		if len(rest) == 0 {
			return f.list(ctx, name, r)
		}
		k, err := r.Find(ctx, rest[0])
		if err != nil {
			return err
		}
		switch {
		case f.discard:
			return f.drop(ctx, r, k)
		case f.dir != "":
			m, err := r.Manifest(ctx, k.Manifest)
			if err == nil && len(m.Entries) == 0 {
				err = fmt.Errorf("%w: it brought no files", register.ErrNotKept)
			}
			if err == nil {
				err = r.Export(ctx, m, f.dir, f.replace)
			}
			if err != nil {
				return err
			}
			return f.exported(name, f.dir, m, "refused landing "+k.Short())
		}
		return f.show(ctx, name, r, k)
	})
}

// refusedJSON is a refused landing for programs.
type refusedJSON struct {
	Name      grant.Digest      `json:"name"`
	Document  *register.Refused `json:"document"`
	Discarded *register.Refused `json:"discarded"`
	Entries   []register.Entry  `json:"entries,omitempty"`
}

func (f *registerRefusedFlags) list(ctx context.Context, name string, r *register.Register) error {
	list, bad := r.Kept(ctx, f.all)
	if f.json {
		if bad != nil {
			return bad
		}
		out := make([]refusedJSON, len(list))
		for i := range list {
			out[i] = refusedJSON{Name: list[i].Name, Document: &list[i].Refused, Discarded: list[i].Gone}
		}
		return printJSONTo(stdout, map[string]any{"container": display.Text(name), "refused": out})
	}
	if len(list) == 0 && bad == nil {
		_, err := fmt.Fprintln(stdout, "no refused landings")
		return err
	}
	rows := [][]string{{"ID", "REFUSED", "CODE", "GRANT", "AGENT", "WHAT"}}
	for _, k := range list {
		what := display.Text(k.Note)
		if k.Gone != nil {
			what = "discarded: " + display.Text(k.Gone.Discarded.Reason)
		}
		rows = append(rows, []string{
			k.Short(), clock(k.At.Std()), display.Text(string(k.Refusal.Code)), fmt.Sprint(k.Refusal.Yours), display.Text(k.By.Name), what,
		})
	}
	printTable(stdout, rows)
	return bad
}

func (f *registerRefusedFlags) show(ctx context.Context, name string, r *register.Register, k register.Kept) error {
	m, err := r.Manifest(ctx, k.Manifest)
	if err != nil {
		return err
	}
	if f.json {
		return printJSONTo(stdout, refusedJSON{Name: k.Name, Document: &k.Refused, Discarded: k.Gone, Entries: m.Entries})
	}
	said := k.Refusal
	fmt.Fprintf(stdout, "refused    %s of %s\nname       %s\nid         %s\nby         %s, under grant %d\nwhy        %s: %s\n", clock(k.At.Std()), display.Text(name), k.Name,
		display.Text(k.ID), display.Text(k.By.Name), said.Yours, display.Text(string(said.Code)), display.Text(said.Cause))
	if e := said.Ended; e != nil {
		fmt.Fprintf(stdout, "ended      %s by %s at revision %d, %s\n", e.How, display.Text(e.By.Name), e.Rev, clock(e.At.Std()))
		if e.Reason != "" {
			fmt.Fprintf(stdout, "reason     %s\n", display.Text(e.Reason))
		}
	}
	fmt.Fprintf(stdout, "then       %s\n", display.Text(holdsText(said.State, said.Grant, said.Holder, said.Expiry)))
	for i, do := range said.ToDo {
		fmt.Fprintf(stdout, "%s %d. %s\n", map[bool]string{true: "to do     ", false: "          "}[i == 0], i+1, display.Text(do))
	}
	if k.Gone != nil {
		fmt.Fprintf(stdout, "discarded  by %s: %s\n", display.Text(k.Gone.By.Name), display.Text(k.Gone.Discarded.Reason))
	}
	if len(m.Entries) == 0 {
		_, err := fmt.Fprintln(stdout, "tree       none: "+display.Text(m.Empty))
		return err
	}
	return printEntries(m)
}

func (f *registerRefusedFlags) drop(ctx context.Context, r *register.Register, k register.Kept) error {
	var by grant.Actor
	if f.operator != "" || f.agent == "" && os.Getenv(operatorVariable) != "" {
		name, err := f.whoOperates()
		if err != nil {
			return err
		}
		by = grant.Operator(name)
	} else {
		name, err := f.who()
		if err != nil {
			return err
		}
		by = grant.Agent(name)
	}
	k, err := r.Discard(ctx, k, by, f.reason)
	if err != nil {
		return err
	}
	if f.json {
		return printJSONTo(stdout, refusedJSON{Name: k.Name, Document: &k.Refused, Discarded: k.Gone})
	}
	_, err = fmt.Fprintf(stdout, "%s: %s is discarded; 'stile register gc' removes what only it needs\n", display.Text(k.Container), k.Short())
	return err
}
