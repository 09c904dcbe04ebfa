package main

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"
)

// figure is one measured quantity of one contestant: a value a round.
type figure struct {
	Workload   string    `json:"workload"`
	Case       string    `json:"case,omitempty"`
	Contestant string    `json:"contestant"`
	Metric     string    `json:"metric"`
	Unit       string    `json:"unit"`
	Rounds     []float64 `json:"rounds"`
}

// book is everything that a run found.
type book struct {
	Started time.Time `json:"started"`
	Quick   bool      `json:"quick"`
	Machine machine   `json:"machine"`
	Figures []*figure `json:"figures"`
	Missing []string  `json:"missing"` // peers that could not be had, with the reason
	Broken  []string  `json:"broken"`  // lost steps, overlaps and failures, with who
	Goals   []verdict `json:"goals"`
	Spent   []spent   `json:"spent"`
}

// spent is how long a workload took.
type spent struct {
	What    string  `json:"what"`
	Seconds float64 `json:"seconds"`
}

func (b *book) add(workload, kase, who, metric, unit string, v float64) {
	f := b.find(workload, kase, who, metric)
	if f == nil {
		f = &figure{workload, kase, who, metric, unit, nil}
		b.Figures = append(b.Figures, f)
	}
	f.Rounds = append(f.Rounds, v)
}

func (b *book) find(workload, kase, who, metric string) *figure {
	for _, f := range b.Figures {
		if f.Workload == workload && f.Case == kase && f.Contestant == who && f.Metric == metric {
			return f
		}
	}
	return nil
}

// value is a figure's median; ratio its median ratio to another contestant's
// figure. Both are NaN when it was not measured.
func (b *book) value(workload, kase, who, metric string) float64 {
	if f := b.find(workload, kase, who, metric); f != nil {
		return median(f.Rounds)
	}
	return math.NaN()
}

func (b *book) ratio(workload, kase, who, peer, metric string) float64 {
	f, p := b.find(workload, kase, who, metric), b.find(workload, kase, peer, metric)
	if f == nil || p == nil {
		return math.NaN()
	}
	return median(ratios(f.Rounds, p.Rounds))
}

func (b *book) missing(format string, args ...any) {
	if s := fmt.Sprintf(format, args...); !slices.Contains(b.Missing, s) {
		b.Missing = append(b.Missing, s)
	}
}

func (b *book) broken(format string, args ...any) {
	b.Broken = append(b.Broken, fmt.Sprintf(format, args...))
}

// amount prints v with three significant digits.
func amount(v float64) string {
	switch a := math.Abs(v); {
	case math.IsNaN(v):
		return "—"
	case a >= 10000:
		return fmt.Sprintf("%.0fk", v/1000)
	case a >= 100:
		return fmt.Sprintf("%.0f", v)
	case a >= 10:
		return fmt.Sprintf("%.1f", v)
	case a >= 0.1 || a == 0:
		return fmt.Sprintf("%.2f", v)
	}
	return fmt.Sprintf("%.2g", v)
}

func (f *figure) cell() string {
	s := amount(median(f.Rounds))
	if len(f.Rounds) > 1 {
		s += fmt.Sprintf(" (%s–%s)", amount(slices.Min(f.Rounds)), amount(slices.Max(f.Rounds)))
	}
	return s
}

// tables renders the figures of one workload: a table a case, a row a
// contestant, a column a metric, and the ratio of the first metric to each
// base.
func (b *book) tables(w workload) string {
	var cases []string
	for _, f := range b.Figures {
		if f.Workload == w.id && !slices.Contains(cases, f.Case) {
			cases = append(cases, f.Case)
		}
	}
	var out strings.Builder
	for _, c := range cases {
		var who, metrics []string
		units := map[string]string{}
		for _, f := range b.Figures {
			if f.Workload != w.id || f.Case != c {
				continue
			}
			if !slices.Contains(who, f.Contestant) {
				who = append(who, f.Contestant)
			}
			if !slices.Contains(metrics, f.Metric) {
				metrics = append(metrics, f.Metric)
			}
			units[f.Metric] = f.Unit
		}
		head := []string{"contestant"}
		for _, m := range metrics {
			if units[m] != "" {
				m += ", " + units[m]
			}
			head = append(head, m)
		}
		var bases []string
		for _, base := range w.bases {
			if slices.Contains(who, base) {
				bases = append(bases, base)
				head = append(head, metrics[0]+" / "+base)
			}
		}
		rows := [][]string{head}
		for _, id := range who {
			row := []string{id}
			for _, m := range metrics {
				if f := b.find(w.id, c, id, m); f != nil {
					row = append(row, f.cell())
				} else {
					row = append(row, "—")
				}
			}
			for _, base := range bases {
				row = append(row, amount(b.ratio(w.id, c, id, base, metrics[0]))+"×")
			}
			rows = append(rows, row)
		}
		if c != "" {
			fmt.Fprintf(&out, "\n### %s\n", c)
		}
		out.WriteString("\n" + grid(rows) + "\n")
	}
	return out.String()
}

// grid lays rows out as a Markdown table that is also readable as it stands.
func grid(rows [][]string) string {
	width := make([]int, len(rows[0]))
	for _, r := range rows {
		for i, s := range r {
			width[i] = max(width[i], len([]rune(s)))
		}
	}
	var out strings.Builder
	line := func(r []string) {
		for i, s := range r {
			fmt.Fprintf(&out, "| %s%s ", s, strings.Repeat(" ", width[i]-len([]rune(s))))
		}
		out.WriteString("|\n")
	}
	line(rows[0])
	for _, w := range width {
		out.WriteString("|" + strings.Repeat("-", w+2))
	}
	out.WriteString("|\n")
	for _, r := range rows[1:] {
		line(r)
	}
	return out.String()
}
