package main

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"math"
	"os"
	"os/signal"
	"regexp"
	"strings"
	"syscall"
	"time"
)

func main() {
	if len(os.Args) > 1 && os.Args[1] == "worker" {
		if err := runWorker(os.Args[2:]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	if code, ran := inOwnMounts(); ran {
		os.Exit(code)
	}
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func run() error {
	quick := flag.Bool("quick", false, "fewer and shorter rounds: under three minutes")
	only := flag.String("only", "", "run the workloads whose name matches `REGEXP`")
	jsonFile := flag.String("json", "", "write every round of every figure to `FILE`")
	mdFile := flag.String("out", "", "write the tables to `FILE`")
	plots := flag.String("plots", "", "draw the plots into `FOLDER`")
	plotOf := flag.String("plot", "", "only draw the plots of the results in `FILE` (JSON), into the folder of -plots or \"plots\" beside it")
	dir := flag.String("dir", "", "`FOLDER` for the lock files: its filesystem is what is measured (default: a temporary folder)")
	stile := flag.String("stile", "", "measure the tool at `FILE` instead of building cmd/stile")
	flag.Usage = func() {
		fmt.Fprintln(flag.CommandLine.Output(), "bench: stile and its peers on the same work.\n\nRun it in its own folder: go run .")
		flag.PrintDefaults()
		fmt.Fprintln(flag.CommandLine.Output(), "workloads:")
		for _, w := range workloads {
			fmt.Fprintf(flag.CommandLine.Output(), "  %-8s %s\n", w.id, w.title)
		}
	}
	flag.Parse()
	if flag.NArg() > 0 {
		return fmt.Errorf("operand %q: there are none", flag.Arg(0))
	}
	if *plotOf != "" {
		return plotFile(*plotOf, *plots)
	}
	match, err := regexp.Compile(*only)
	if err != nil {
		return err
	}

	tmp, err := os.MkdirTemp(*dir, "stile-bench-")
	if err != nil {
		return err
	}
	mem := tmp
	if d, err := os.MkdirTemp("/dev/shm", "stile-bench-"); err == nil {
		mem = d
	}
	unmount := func() {}
	tidy := func() {
		unmount()
		// Workers of a run that was stopped may still be making files.
		for range 50 {
			if errors.Join(os.RemoveAll(tmp), os.RemoveAll(mem)) == nil {
				return
			}
			nap(20_000_000)
		}
	}
	defer tidy()
	stopped := make(chan os.Signal, 1)
	signal.Notify(stopped, os.Interrupt, syscall.SIGTERM)
	go func() {
		<-stopped
		tidy()
		os.Exit(130)
	}()
	b := &bench{quick: *quick, dir: tmp, mem: mem, book: &book{Started: time.Now().UTC(), Quick: *quick}}
	b.book.Machine = lookAround(tmp)
	b.stile = *stile
	started := time.Now()
	if b.brief = *quick && *only == ""; b.brief {
		b.book.missing("the other kind of ext4: a quick run has no time for it (with -only it has)")
	} else {
		unmount = b.mountOther(tmp)
	}
	b.compile(tmp)
	b.book.spent("(building the peers)", started)
	var ran []workload
	for _, w := range workloads {
		if !match.MatchString(w.id) {
			continue
		}
		b.logf("%s …", w.title)
		started := time.Now()
		w.run(b)
		b.book.spent(w.id, started)
		b.logf("  %.1f s", time.Since(started).Seconds())
		ran = append(ran, w)
	}
	if len(ran) == 0 {
		return fmt.Errorf("no workload matches %q", *only)
	}
	b.book.Machine.LoadAfter = load()
	b.book.judge()

	text := b.book.report(ran)
	fmt.Print(text)
	if *mdFile != "" {
		if err := os.WriteFile(*mdFile, []byte(text), 0o644); err != nil {
			return err
		}
	}
	if *jsonFile != "" {
		data, err := json.MarshalIndent(b.book, "", " ")
		if err != nil {
			return err
		}
		if err := os.WriteFile(*jsonFile, append(data, '\n'), 0o644); err != nil {
			return err
		}
	}
	if *plots != "" {
		return b.book.plotInto(*plots)
	}
	return nil
}

// spent notes how long a workload took.
func (b *book) spent(what string, since time.Time) {
	b.Spent = append(b.Spent, spent{what, math.Round(time.Since(since).Seconds()*10) / 10})
}

func (b *book) report(ran []workload) string {
	var out strings.Builder
	kind := "full run"
	if b.Quick {
		kind = "quick run"
	}
	fmt.Fprintf(&out, "# Benchmark results\n\n%s, %s.\n\n%s.\n\nVersions: %s.\n",
		b.Started.Format("2006-01-02"), kind, b.Machine, strings.Join(b.Machine.Versions, "; "))
	out.WriteString("\nA cell is the median of the rounds (minimum–maximum); a ratio is the median of the rounds' ratios.\n")
	out.WriteString("\n## Contestants\n\n")
	for _, c := range contestants {
		fmt.Fprintf(&out, "- `%s`: %s\n", c.id, c.about)
	}
	for _, w := range ran {
		fmt.Fprintf(&out, "\n## %s\n\n%s\n%s", w.title, w.what, b.tables(w))
	}
	rows := [][]string{{"goal", "limit", "figure", "met"}}
	for _, g := range b.Goals {
		rows = append(rows, []string{g.Goal, g.Limit, g.Figure, g.Met})
	}
	fmt.Fprintf(&out, "\n## Goals\n\n%s", grid(rows))
	list := func(title, none string, items []string) {
		fmt.Fprintf(&out, "\n## %s\n\n", title)
		if len(items) == 0 {
			out.WriteString(none + "\n")
		}
		for _, s := range items {
			out.WriteString("- " + s + "\n")
		}
	}
	list("Missing", "Nothing.", b.Missing)
	list("Lost, overlapped or failed", "Nothing: no shared step was lost and no two holds overlapped.", b.Broken)
	sum := 0.0
	rows = [][]string{{"workload", "seconds"}}
	for _, s := range b.Spent {
		sum += s.Seconds
		rows = append(rows, []string{s.What, fmt.Sprintf("%.1f", s.Seconds)})
	}
	rows = append(rows, []string{"all", fmt.Sprintf("%.1f", sum)})
	fmt.Fprintf(&out, "\n## How long it took\n\n%s", grid(rows))
	return out.String()
}
