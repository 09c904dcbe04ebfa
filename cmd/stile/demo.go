package main

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"strconv"
)

func demoVerb() verb {
	return verb{
		name:     "demo",
		brief:    "show what a grant does, or with 'locks' what the locks do",
		synopsis: "[locks]",
		detail: `Plays the worked example of a grant, in a temporary estate and in a moment: a holder
dies at hour 20, its grant expires at hour 24, the next one takes over, and what the
dead one's client brings later is refused and kept. The code and the store are those
that ship, only the clock is not the world's; each page is shown as it changes.

With 'locks', what the kernel locks promise, in a few seconds: real processes write
one file, without a lock and with one; holders are killed and stopped.

Every number printed is counted from the files. Nothing is left behind.

Exit code: 0 when every promise was kept, else 1.`,
		examples: "stile demo\nstile demo locks",
		operands: "locks",
		run:      cmdDemo,
	}
}

func cmdDemo(args []string) int {
	p, err := parse(args, nil, false)
	if err == nil && (len(p.operands) > 1 || len(p.operands) == 1 && p.operands[0] != "locks") {
		err = usageHint("stile demo, or stile demo locks", "there is no such demo")
	}
	switch {
	case err != nil:
		return fail(err, false)
	case len(p.operands) == 0:
		return demoGrant()
	}
	return demoLocks()
}

type demoRecord struct {
	Writer string `json:"writer"`
	Number string `json:"number"`
}

// demoAdd is one ordinary program that knows nothing of locks: it reads a
// JSON file, adds a record and replaces the file.
func demoAdd(file, writer, number string) error {
	b, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	var records []demoRecord
	if err := json.Unmarshal(b, &records); err != nil {
		return err
	}
	records = append(records, demoRecord{writer, number})
	if b, err = json.Marshal(records); err != nil {
		return err
	}
	next := file + ".new." + strconv.Itoa(os.Getpid())
	if err := os.WriteFile(next, b, 0o600); err != nil {
		return err
	}
	return os.Rename(next, file)
}

// demoWriter adds its records one after another, each by a process of its
// own: plainly, or under "stile run".
func demoWriter(how, file, writer, count string) error {
	n, err := strconv.Atoi(count)
	if err != nil {
		return err
	}
	exe, err := os.Executable()
	if err != nil {
		return err
	}
	for i := range n {
		args := []string{childVerb, "add", file, writer, strconv.Itoa(i)}
		if how == "locked" {
			args = append([]string{"run", "-w", "60", file, "--", exe}, args...)
		}
		cmd := &exec.Cmd{Path: exe, Args: append([]string{"stile"}, args...)}
		if out, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("writer %s, record %d: %w: %s", writer, i, err, out)
		}
	}
	return nil
}

// allKept ends a demo in which so many promises were broken.
func allKept(broken int) int {
	if broken > 0 {
		fmt.Fprintf(stdout, "\n%s not kept.\n", plural(broken, "promise was", "promises were"))
		return exitFailed
	}
	fmt.Fprintln(stdout, "\nEvery promise was kept.")
	return 0
}
