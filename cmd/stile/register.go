package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"time"

	"github.com/stile-lock/stile/grant/session"
	"github.com/stile-lock/stile/internal/display"
	"github.com/stile-lock/stile/register"
)

func registerVerb() verb {
	v := verb{
		name:     "register",
		brief:    "what has landed in a container, and what was refused",
		synopsis: "VERB [flags] NAME …",
		detail: `The register of a container is what has landed in it: trees of files, each brought by
one landing of a grant ('stile grant land'). What is read is checked against its
SHA-256. What was refused because its grant had ended is kept beside it, whole.`,
		examples: `stile register log atlas
stile register cat atlas map.svg > map.svg
stile register export atlas out --replace
stile register refused atlas`,
		operands: "log show cat export refused gc",
		subs: func() []verb {
			return []verb{registerLogVerb(), registerShowVerb(), registerCatVerb(), registerExportVerb(), registerRefusedVerb(), registerGCVerb()}
		},
	}
	v.options = func() []option { return groupFlags(v.subs()) }
	return v
}

// registerFlags are the flags of the register verbs. Not every verb has all.
type registerFlags struct {
	grantFlags
	landing string
	all     bool
	max     int64
}

func (f *registerFlags) landingOption() option {
	return nonEmpty("landing", "L", "a landing by its number, id, head or manifest; the latest by default", &f.landing)
}

// parseRegister reads flags, the container's name and up to more operands.
func (f *registerFlags) parse(args []string, options []option, least, most int, form string) (name string, rest []string, err error) {
	name, rest, err = f.grantFlags.parse(args, options, -1, form)
	switch {
	case err != nil:
	case len(rest) > most:
		err = usageHint("stile "+form, "there is an operand too many: %q", rest[most])
	case len(rest) < least:
		err = usageHint("stile "+form, "there is an operand too few")
	}
	return name, rest, err
}

// open gives the container's register to work on.
func (f *registerFlags) on(name string, work func(ctx context.Context, c *session.Client, r *register.Register) error) int {
	return f.in(func(ctx context.Context, c *session.Client) error {
		if _, err := c.Store.Head(ctx, name); err != nil {
			return err // that there is no such container, before anything else
		}
		return work(ctx, c, register.Of(c.Store, name))
	})
}

func registerLogVerb() verb {
	return verb{
		name:     "register log",
		brief:    "list what has landed, the latest first",
		synopsis: "NAME [-n N] [--json]",
		detail:   `Lists the landings: number, when, under which grant, by whom, and what is said of it.`,
		examples: `stile register log atlas -n 10`,
		options:  func() []option { return new(registerFlags).logOptions() },
		run:      cmdRegisterLog,
	}
}

func (f *registerFlags) logOptions() []option {
	return append([]option{f.numberOption("n", "N", "the number of landings", "only the last N", &f.max)}, f.base()...)
}

func cmdRegisterLog(args []string) int {
	var f registerFlags
	name, _, err := f.parse(args, f.logOptions(), 0, 0, "register log NAME")
	if err == nil && f.max < 0 {
		err = usagef("-n takes a number that is not negative")
	}
	if err != nil {
		return f.fail(err)
	}
	return f.on(name, func(ctx context.Context, _ *session.Client, r *register.Register) error {
		list := []register.Landed{}
		for l, err := range r.All(ctx) {
			if err != nil {
				return err
			}
			list = append(list, shownLanding(l))
			if f.max > 0 && int64(len(list)) == f.max {
				break
			}
		}
		if f.json {
			return printJSONTo(stdout, map[string]any{"container": display.Text(name), "landings": list})
		}
		if len(list) == 0 {
			_, err := fmt.Fprintln(stdout, "nothing has landed")
			return err
		}
		rows := [][]string{{"NUMBER", "LANDED", "GRANT", "AGENT", "HEAD", "WHAT"}}
		for _, l := range list {
			rows = append(rows, []string{
				fmt.Sprint(l.Seq), clock(l.Stamp.T.Std()), fmt.Sprint(l.Grant), l.Agent, shortDigest(l.Head), whatLanded(&l),
			})
		}
		printTable(stdout, rows)
		return nil
	})
}

// whatLanded says in a few words what a landing was.
func whatLanded(l *register.Landed) string {
	switch {
	case l.Empty != "":
		return "nothing: " + l.Empty
	case l.Fenced && l.Note == "":
		return "a command"
	case l.Fenced:
		return "a command: " + l.Note
	}
	return l.Note
}

// shownLanding has its texts made safe.
func shownLanding(l register.Landed) register.Landed {
	l.Agent, l.Note, l.Empty = display.Text(l.Agent), display.Text(l.Note), display.Text(l.Empty)
	return l
}

// printJSONTo prints a value, and says when that failed.
func printJSONTo(w io.Writer, v any) error {
	b, err := json.Marshal(v)
	if err == nil {
		_, err = w.Write(append(b, '\n'))
	}
	return err
}

func registerShowVerb() verb {
	return verb{
		name:     "register show",
		brief:    "show one landing, and the tree that it left",
		synopsis: "NAME [--landing L] [--json | --manifest]",
		detail: `Shows a landing and the register's tree after it. An empty landing, and a command's,
leave the tree as it was. --manifest prints the manifest's own bytes, which 'stile
grant land --manifest' takes.`,
		examples: `stile register show atlas
stile register show atlas --landing 3 --json`,
		options: func() []option { return new(registerShowFlags).options() },
		run:     cmdRegisterShow,
	}
}

type registerShowFlags struct {
	registerFlags
	manifest bool
}

func (f *registerShowFlags) options() []option {
	return append([]option{f.landingOption(), boolOption("manifest", "print the manifest's bytes", &f.manifest)}, f.base()...)
}

func cmdRegisterShow(args []string) int {
	var f registerShowFlags
	name, _, err := f.parse(args, f.options(), 0, 0, "register show NAME")
	if err != nil {
		return f.fail(err)
	}
	return f.on(name, func(ctx context.Context, _ *session.Client, r *register.Register) error {
		l, m, err := r.Content(ctx, f.landing)
		if err != nil {
			return err
		}
		if f.manifest {
			if m == nil {
				return fmt.Errorf("%w: no tree has landed", register.ErrNoLanding)
			}
			data, err := m.Encode()
			if err == nil {
				_, err = stdout.Write(data)
			}
			return err
		}
		own, err := r.Manifest(ctx, l.Manifest)
		if err != nil {
			return err
		}
		l = shownLanding(l)
		if f.json {
			o := map[string]any{"container": display.Text(name), "landing": l, "ran": own.Ran, "entries": []register.Entry{}, "bytes": 0}
			if m != nil {
				o["entries"], o["bytes"] = m.Entries, m.Size()
			}
			return printJSONTo(stdout, o)
		}
		fmt.Fprintf(stdout, "landing    %d of %s\nid         %s\nhead       %s\nmanifest   %s\nlanded     %s by %s, grant %d\n",
			l.Seq, display.Text(name), l.ID, l.Head, l.Manifest, clock(l.Stamp.T.Std()), l.Agent, l.Grant)
		if what := whatLanded(&l); what != "" {
			fmt.Fprintf(stdout, "what       %s\n", what)
		}
		if own.Ran != nil {
			fmt.Fprintf(stdout, "command    %s\n", display.Text(fmt.Sprintf("%q", own.Ran.Args)))
		}
		return printEntries(m)
	})
}

func printEntries(m *register.Manifest) error {
	if m == nil {
		_, err := fmt.Fprintln(stdout, "tree       none yet")
		return err
	}
	fmt.Fprintf(stdout, "tree       %s, %s\n", plural(len(m.Entries), "entry", "entries"), plural(int(m.Size()), "byte", "bytes"))
	rows := make([][]string, len(m.Entries))
	for i, e := range m.Entries {
		switch e.Kind {
		case register.KindFile:
			rows[i] = []string{"  " + fmt.Sprintf("%04o", uint32(e.Mode)), fmt.Sprint(e.Size), shortDigest(e.SHA256), display.Text(e.Name)}
		case register.KindLink:
			rows[i] = []string{"  link", "", "", display.Text(e.Name + " -> " + e.Target)}
		default:
			rows[i] = []string{"  folder", "", "", display.Text(e.Name) + "/"}
		}
	}
	printTable(stdout, rows)
	return nil
}

func registerCatVerb() verb {
	return verb{
		name:     "register cat",
		brief:    "print a file that has landed",
		synopsis: "NAME FILE [--landing L]",
		detail: `Prints a file of the register's tree, checked against its SHA-256. Where its bytes are
damaged that is told at the end, by name, and the exit code is 2: do not use what came
before without looking at it.`,
		examples: `stile register cat atlas map.svg > map.svg`,
		options:  func() []option { f := new(registerFlags); return append([]option{f.landingOption()}, f.base()...) },
		run:      cmdRegisterCat,
	}
}

func cmdRegisterCat(args []string) int {
	var f registerFlags
	name, rest, err := f.parse(args, append([]option{f.landingOption()}, f.base()...), 1, 1, "register cat NAME FILE")
	if err != nil {
		return f.fail(err)
	}
	return f.on(name, func(ctx context.Context, _ *session.Client, r *register.Register) error {
		l, m, err := r.Content(ctx, f.landing)
		if err != nil {
			return err
		}
		var e register.Entry
		found := false
		if m != nil {
			e, found = m.Find(rest[0])
		}
		if !found || e.Kind != register.KindFile {
			return fmt.Errorf("%w: landing %d left no file %s", register.ErrRecord, l.Seq, display.Text(cut(rest[0], 120)))
		}
		from, err := r.Open(ctx, e)
		if err != nil {
			return err
		}
		defer from.Close() // it was only read
		_, err = io.Copy(stdout, from)
		return err
	})
}

func registerExportVerb() verb {
	return verb{
		name:     "register export",
		brief:    "write the register's tree into a folder",
		synopsis: "NAME DIR [--landing L] [--replace]",
		detail: `Writes the tree into DIR, which appears whole, with every file checked, or not at all.
A DIR that has something in it is refused; with --replace it is replaced as a whole, in
one step where the system can: what was in it is removed.`,
		examples: `stile register export atlas out
stile register export atlas /srv/atlas --replace`,
		options: func() []option { return new(registerExportFlags).options() },
		run:     cmdRegisterExport,
	}
}

type registerExportFlags struct {
	registerFlags
	replace bool
}

func (f *registerExportFlags) options() []option {
	return append([]option{f.landingOption(), boolOption("replace", "replace DIR and all that is in it", &f.replace)}, f.base()...)
}

func cmdRegisterExport(args []string) int {
	var f registerExportFlags
	name, rest, err := f.parse(args, f.options(), 1, 1, "register export NAME DIR")
	if err != nil {
		return f.fail(err)
	}
	return f.on(name, func(ctx context.Context, _ *session.Client, r *register.Register) error {
		l, m, err := r.Content(ctx, f.landing)
		if err == nil && m == nil {
			err = fmt.Errorf("%w: no tree has landed", register.ErrNoLanding)
		}
		if err == nil {
			err = r.Export(ctx, m, rest[0], f.replace)
		}
		if err != nil {
			return err
		}
		return f.exported(name, rest[0], m, fmt.Sprintf("landing %d", l.Seq))
	})
}

// exported says what was written.
func (f *registerFlags) exported(name, dir string, m *register.Manifest, what string) error {
	if f.json {
		return printJSONTo(stdout, map[string]any{
			"container": display.Text(name), "folder": display.Text(dir), "entries": len(m.Entries), "bytes": m.Size(),
		})
	}
	_, err := fmt.Fprintf(stdout, "%s: %s is in %s: %s, %s\n", display.Text(name), what, display.Text(dir),
		plural(len(m.Entries), "entry", "entries"), plural(int(m.Size()), "byte", "bytes"))
	return err
}

func registerGCVerb() verb {
	return verb{
		name:     "register gc",
		brief:    "remove stored files that nothing needs",
		synopsis: "NAME [--dry-run] [-w DUR]",
		detail: `Removes the files that no landing, no refused landing that is kept, and no
reproduction names: what killed landings left, and what was discarded. It waits for
landings that are under way, and none begins meanwhile. Where the history is not
whole nothing is removed.`,
		examples: `stile register gc atlas --dry-run`,
		options:  func() []option { return new(registerGCFlags).options() },
		run:      cmdRegisterGC,
	}
}

type registerGCFlags struct {
	registerFlags
	dry  bool
	wait time.Duration
}

func (f *registerGCFlags) options() []option {
	return append([]option{
		boolOption("dry-run", "only say what would be removed", &f.dry),
		f.spanOption("w,wait", "the wait", "wait at most DUR for landings to end, instead of 1m", &f.wait),
	}, f.base()...)
}

func cmdRegisterGC(args []string) int {
	f := registerGCFlags{wait: time.Minute}
	name, _, err := f.parse(args, f.options(), 0, 0, "register gc NAME")
	if err != nil {
		return f.fail(err)
	}
	return f.on(name, func(ctx context.Context, c *session.Client, _ *register.Register) error {
		store, err := f.onTheEstate(c, "stored files are removed by who has the estate's folder",
			"stile register gc "+display.ShellWord(name)+", where the estate is; the service may go on meanwhile")
		if err != nil {
			return err
		}
		done, err := register.Collect(ctx, store, name, max(f.wait, 1), f.dry)
		if err != nil {
			return err
		}
		if f.json {
			return printJSONTo(stdout, map[string]any{
				"container": display.Text(name), "removed": !f.dry, "objects": done.Objects, "bytes": done.Bytes, "kept": done.Kept,
			})
		}
		verb := "removed"
		if f.dry {
			verb = "would remove"
		}
		_, err = fmt.Fprintf(stdout, "%s: %s %s, %s; %d are needed\n", display.Text(name), verb,
			plural(done.Objects, "stored file", "stored files"), plural(int(done.Bytes), "byte", "bytes"), done.Kept)
		return err
	})
}
