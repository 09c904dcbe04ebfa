package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/stile-lock/stile/grant"
	"github.com/stile-lock/stile/grant/session"
	"github.com/stile-lock/stile/internal/display"
	"github.com/stile-lock/stile/register"
)

func reproJudgeVerb() verb {
	return verb{
		name:     "repro judge",
		brief:    "say whether a reproduction matches",
		synopsis: "NAME NUMBER [--with COMMAND] [--reason TEXT]\nNAME NUMBER --void --reason TEXT",
		detail: `Compares the record as it landed with the result that was staged, by their SHA-256; or
with COMMAND, which is given two files and says by its exit code 0 that they match, by 1
that they do not; any other judges nothing. --void says that the reproduction proves
nothing either way. The deriver does not judge, and nobody before the result is
stamped.

Exit code: 0, whatever the verdict; 1; 2 refused: nothing was judged.`,
		examples: `stile repro judge atlas 12 --agent eve
stile repro judge atlas 12 --agent eve --with ./within-a-percent`,
		options: func() []option { return new(reproFlags).judgeOptions() },
		run:     cmdReproJudge,
	}
}

func (f *reproFlags) judgeOptions() []option {
	return append([]option{
		nonEmpty("with", "COMMAND", "compare with COMMAND ORIGINAL RESULT", &f.with),
		boolOption("void", "it proves nothing either way", &f.void),
		stringOption("reason", "TEXT", "a line that stays with the verdict", &f.reason),
	}, f.agents()...)
}

func cmdReproJudge(args []string) int {
	var f reproFlags
	name, rest, err := f.parse(args, f.judgeOptions(), 1, 1, "repro judge NAME NUMBER")
	switch {
	case err != nil:
	case f.void && f.with != "":
		err = usagef("--void compares nothing, so it takes no --with")
	case f.void && strings.TrimSpace(f.reason) == "":
		err = usageHint("--reason WHY", "a void reproduction needs a reason")
	}
	if err != nil {
		return f.fail(err)
	}
	return f.onBlock(rest, func(ctx context.Context, c *session.Client, block int64) error {
		r := register.Of(c.Store, name)
		pair, err := r.Pair(ctx, block)
		if err != nil {
			return err
		}
		verdict := grant.VerdictVoid
		if !f.void && pair.Staged() {
			if verdict, err = f.compare(ctx, pair); err != nil {
				return err
			}
		}
		b, err := r.Judge(ctx, grant.Judge{Meta: f.meta(c, name), Block: block, Verdict: verdict, Reason: f.reason})
		if err != nil {
			return err
		}
		return f.printReproductions(name, []register.Reproduction{{Block: b}}, true)
	})
}

// compare says whether two results match.
func (f *reproFlags) compare(ctx context.Context, p register.Pair) (v grant.Verdict, err error) {
	match := map[bool]grant.Verdict{true: grant.VerdictMatch, false: grant.VerdictMismatch}
	if f.with == "" {
		return match[p.Same()], nil
	}
	path, err := findCommand(f.with)
	if err != nil {
		return "", err
	}
	dir, err := os.MkdirTemp("", "stile-judge-")
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	argv := []string{f.with}
	for _, side := range []struct {
		name string
		open func(context.Context) (io.ReadCloser, error)
	}{{"original", p.Original}, {"result", p.Result}} {
		file := filepath.Join(dir, side.name)
		if err := copyOut(ctx, file, side.open); err != nil {
			return "", err
		}
		argv = append(argv, file)
	}
	code, err := runCommand(path, argv, os.Environ(), catchSignals(), os.Stdin, os.Stderr, os.Stderr)
	switch {
	case err != nil:
		return "", err
	case code > 1:
		return "", fmt.Errorf("%s ended with exit code %d: nothing was judged", display.Text(f.with), code)
	}
	return match[code == 0], nil
}

func copyOut(ctx context.Context, file string, open func(context.Context) (io.ReadCloser, error)) error {
	from, err := open(ctx)
	if err != nil {
		return err
	}
	defer from.Close() // it is only read
	to, err := os.Create(file)
	if err != nil {
		return err
	}
	_, err = io.Copy(to, from)
	return errors.Join(err, to.Close())
}
