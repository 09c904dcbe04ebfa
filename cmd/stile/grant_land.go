package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/stile-lock/stile/grant"
	"github.com/stile-lock/stile/grant/session"
	"github.com/stile-lock/stile/internal/display"
	"github.com/stile-lock/stile/internal/estate"
	"github.com/stile-lock/stile/register"
)

type grantLandFlags struct {
	grantFlags
	note, empty, dir, manifest string
	links                      bool
	ids                        []grant.Range
	keep                       []int64
	base                       *grant.Digest

	resolve, reason, of string // of a fenced command in doubt
	wait                time.Duration
	argv                []string // of a fenced command
	fencedForm          bool     // there was a --
}

func (f *grantLandFlags) options() []option {
	return append([]option{
		nonEmpty("dir", "D", "land everything in the folder D, instead of FILE…", &f.dir),
		boolOption("links", "with --dir: land symbolic links as links", &f.links),
		nonEmpty("manifest", "FILE", "land a manifest whose files are stored already", &f.manifest),
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
		f.spanOption("w,wait", "the wait", "with -- COMMAND: wait at most DUR for another one to end, instead of 5s", &f.wait),
		{names: "resolve", arg: "done|undone", words: "done undone", help: "settle a command whose end nobody saw", set: func(v string) error {
			if v != "done" && v != "undone" {
				return usagef("--resolve is done or undone")
			}
			f.resolve = v
			return nil
		}},
		stringOption("reason", "WHY", "with --resolve: how that is known", &f.reason),
		nonEmpty("of", "ID", "with --resolve: the command's id, where there are several", &f.of),
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
		name:  "grant land",
		brief: "land files, or a command's work, in a container's register",
		synopsis: "NAME FILE… [--note TEXT] [flags]\n" +
			"NAME --dir D [--links] [flags]\n" +
			"NAME --empty REASON [flags]\n" +
			"NAME --manifest FILE [flags]\n" +
			"NAME [flags] -- COMMAND [ARG…]\n" +
			"NAME --resolve done|undone --reason WHY",
		detail: `Copies files into the container, each under its SHA-256, and moves the register's head
to them, in one step with the check that the grant is the live one. A landing is the
whole tree, not a change to the last one. A file is called by its path below the
working folder, or with --dir by that below D.

A landing under a grant that has ended is refused; its files are kept in quarantine,
byte for byte, with the refusal, and never reach the register ('stile register
refused'). The lease of an identifier that is not among --ids is closed, and the rest
of it free again, unless --keep names the lease.

With -- COMMAND the landing is what COMMAND does: a deploy, a push. Nobody's grant
begins or ends while it runs, even if stile is killed; its exit code 0 is the landing.
If nobody sees its end it is in doubt, until the lead says with --resolve what became
of it.

Exit code: 0; 1 usage, or it could not be done; 2 refused: the register is as it was.
With -- COMMAND: its own, or 128+n when signal n ended it; else as in 'grant run', with
75 while another command runs, and 76 when the grant has ended.`,
		examples: `stile grant land atlas map.svg notes.md --agent bob --note 'north half' --ids 41-44
stile grant land atlas --dir out --agent bob
stile grant land atlas --empty 'no roads found' --agent bob
stile grant land atlas --agent bob -- rsync -a out/ web:/srv/atlas/
stile grant land atlas --agent bob --resolve done --reason 'the server has it'`,
		options:  func() []option { return new(grantLandFlags).options() },
		operands: "FILE",
		run:      cmdGrantLand,
	}
}

func cmdGrantLand(args []string) int {
	var f grantLandFlags
	if at := slices.Index(args, "--"); at >= 0 {
		f.fencedForm, f.argv, args = true, args[at+1:], args[:at]
	}
	name, files, err := f.parse(args, f.options(), -1, "land NAME FILE…")
	if f.fencedForm {
		return f.runFenced(name, files, err)
	}
	if err == nil {
		err = f.oneForm(name, files)
	}
	if err != nil {
		return f.fail(err)
	}
	return f.in(func(ctx context.Context, c *session.Client) error {
		if err := f.holder(c); err != nil {
			return err
		}
		if f.resolve != "" {
			return f.settle(ctx, c, name)
		}
		l := session.Landing{Empty: f.empty, Note: f.note, IDs: f.ids, Keep: f.keep, Base: f.base, ID: f.id}
		if err := f.gather(&l, files); err != nil {
			return err
		}
		l.Tell = func(landed session.Landed) error {
			return f.done(ctx, c, landed.Result, func(o *grantResult) {
				o.Manifest, o.Entries = landed.Receipt.Manifest, landed.Receipt.Tree.Entries
			})
		}
		_, err := c.Land(ctx, name, f.sessionPath(), l)
		return err
	})
}

// oneForm refuses what is several forms at once, or none.
func (f *grantLandFlags) oneForm(name string, files []string) error {
	forms := 0
	for _, is := range []bool{len(files) > 0, f.dir != "", f.empty != "", f.manifest != "", f.resolve != ""} {
		if is {
			forms++
		}
	}
	switch {
	case forms == 0:
		return usageHint("with nothing to land: stile grant land "+shown(name)+" --empty REASON", "no FILE was named")
	case forms > 1:
		return usagef("either FILE…, or one of --dir, --empty, --manifest and --resolve")
	case f.links && f.dir == "":
		return usagef("--links goes with --dir")
	}
	return nil
}

// gather looks at what is to land. Nothing of it is read yet.
func (f *grantLandFlags) gather(l *session.Landing, files []string) error {
	tree := &register.Tree{Links: f.links}
	var err error
	switch {
	case f.manifest != "":
		var data []byte
		if data, err = os.ReadFile(f.manifest); err == nil {
			l.Manifest, err = register.ParseManifest(data)
		}
	case f.dir != "":
		if err = f.outside(f.dir); err == nil {
			l.Tree, err = tree, tree.AddDir(f.dir)
		}
		if err == nil && tree.Len() == 0 {
			err = fmt.Errorf("land %s: %w", display.Text(f.dir), register.ErrNothing)
		}
	default:
		l.Tree = tree
		for _, file := range files {
			if err = tree.AddFile(file); err != nil {
				break
			}
		}
	}
	return givenError(err)
}

// outside refuses a folder that the estate lies in: what has landed would land in itself.
func (f *grantLandFlags) outside(dir string) error {
	e, err := estate.Open(estateOptions(f.estate, ""))
	if err != nil {
		return err
	}
	path := e.Path
	if err := e.Close(); err != nil {
		return err
	}
	whole, err := filepath.Abs(dir)
	if err == nil {
		whole, err = filepath.EvalSymlinks(whole)
	}
	if err == nil {
		path, err = filepath.EvalSymlinks(path)
	}
	if err != nil {
		return err
	}
	if rel, err := filepath.Rel(whole, path); err == nil && filepath.IsLocal(rel) {
		return &failure{exit: exitBadFile, code: "estate_in_folder", hint: "nothing was changed; name the folder that the work is in, beside the estate",
			err: fmt.Errorf("land %s: the estate %s lies in it", display.Text(dir), display.Text(path))}
	}
	return nil
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
