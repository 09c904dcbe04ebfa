package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/stile-lock/stile/grant"
	"github.com/stile-lock/stile/grant/session"
	"github.com/stile-lock/stile/internal/display"
)

type grantLandFlags struct {
	grantFlags
	note, empty string
	ids         []grant.Range
	keep        []int64
	base        *grant.Digest
}

func (f *grantLandFlags) options() []option {
	return append([]option{
		stringOption("note", "TEXT", "a line that stays with the landing", &f.note),
		nonEmpty("empty", "REASON", "land that there was nothing, and why", &f.empty),
		{names: "ids", arg: "LIST", help: "identifiers that it uses, as in 5-9,12; may be repeated", set: func(v string) error {
			list, err := parseRanges(v)
			f.ids = append(f.ids, list...)
			return f.later(err)
		}},
		{names: "keep", arg: "LEASE", help: "leave this lease open; may be repeated", set: func(v string) error {
			n, err := parseNumber("a lease", v)
			f.keep = append(f.keep, n)
			return f.later(err)
		}},
		{names: "base", arg: "HEAD", help: "the register's head that the work began from; the present one by default", set: func(v string) error {
			d := grant.Digest(v)
			f.base = &d
			return nil
		}},
	}, f.holders()...)
}

// parseRanges reads 5-9,12.
func parseRanges(list string) ([]grant.Range, error) {
	var all []grant.Range
	for part := range strings.SplitSeq(list, ",") {
		lo, hi, pair := strings.Cut(part, "-")
		if !pair {
			hi = lo
		}
		r := grant.Range{}
		var err error
		if r.Lo, err = parseNumber("an identifier", lo); err == nil {
			r.Hi, err = parseNumber("an identifier", hi)
		}
		if err != nil {
			return nil, err
		}
		all = append(all, r)
	}
	return all, nil
}

func grantLandVerb() verb {
	return verb{
		name:     "grant land",
		brief:    "land files in a container's register",
		synopsis: "NAME FILE… [--note TEXT] [flags]\nNAME --empty REASON [flags]",
		detail: `Copies files into the container, each under its SHA-256, and moves the register's head
to them, in one step with the check that the grant is the live one. A file is called
by its path below the working folder.

A landing under a grant that has ended is refused; its files are kept in quarantine,
byte for byte, with the refusal, and never reach the register. The lease of an
identifier that is not among --ids is closed, and the rest of it free again, unless
--keep names the lease.

Exit code: 0; 1 usage, or it could not be done; 2 refused: the register is as it was.`,
		examples: `stile grant land atlas map.svg notes.md --agent bob --note 'north half' --ids 41-44
stile grant land atlas --empty 'no roads found' --agent bob`,
		options:  func() []option { return new(grantLandFlags).options() },
		operands: "FILE",
		run:      cmdGrantLand,
	}
}

func cmdGrantLand(args []string) int {
	var f grantLandFlags
	name, files, err := f.parse(args, f.options(), -1, "land NAME FILE…")
	if err == nil && len(files) == 0 && f.empty == "" {
		err = usageHint("with nothing to land: stile grant land "+shown(name)+" --empty REASON", "no FILE was named")
	}
	if err != nil {
		return f.fail(err)
	}
	return f.in(func(ctx context.Context, c *session.Client) error {
		if err := f.holder(c); err != nil {
			return err
		}
		_, err := c.Land(ctx, name, f.sessionPath(), session.Landing{
			Files: files, Empty: f.empty, Note: f.note, IDs: f.ids, Keep: f.keep, Base: f.base, ID: f.id,
			Tell: func(landed session.Landed) error {
				return f.done(ctx, c, landed.Result, func(o *grantResult) {
					o.Manifest, o.Files = landed.SHA256, landed.Manifest.Files
				})
			},
		})
		return err
	})
}

// shown is a name as it can be typed.
func shown(name string) string { return display.ShellWord(name) }

func landedText(l *grant.Landing, seq int64, files int) string {
	what := plural(files, "file", "files")
	if l.Empty != "" {
		what = "nothing (" + display.Text(l.Empty) + ")"
	}
	return fmt.Sprintf("landed %s as number %d of the register, head %s", what, seq, shortDigest(l.New))
}

func shortDigest(d grant.Digest) string {
	if len(d) > 12 {
		return string(d[:12])
	}
	return string(d)
}
