package main

import (
	"encoding/json"
	"encoding/xml"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// drawn is what is in a plot.
type drawn struct {
	XMLName xml.Name `xml:"http://www.w3.org/2000/svg svg"`
	Role    string   `xml:"role,attr"`
	Title   string   `xml:"title"`
	Desc    string   `xml:"desc"`
	Style   string   `xml:"style"`
	Text    []string `xml:"text"`
	Rects   []struct {
		Class  string `xml:"class,attr"`
		Group  string `xml:"data-group,attr"`
		Series string `xml:"data-series,attr"`
		Value  string `xml:"data-value,attr"`
		Width  string `xml:"width,attr"`
	} `xml:"rect"`
}

func planted() *book {
	b := &book{Machine: machine{CPU: "a <processor> & more", Filesystem: journaled}}
	for i, id := range []string{"kernlock", "gofrs", "c-floor"} {
		for r := range 3 {
			v := float64(1+i*i) + float64(r)/8
			b.add("cycle", "", id, "time", "µs", v)
			b.add("handoff", "", id, "p50", "µs", 20*v)
			for _, n := range []int{100, 1000, 10000, 100000} {
				b.add("append", fmt.Sprintf("%d records, disk", n), id, "time", "ms", v*float64(n)/1000)
			}
			for _, m := range []string{"wait p50", "p99", "max"} {
				b.add("contend", eightHeld, id, m, "ms", 3*v)
			}
			b.add("grant-contend", "1 processes, disk", id, "rate", "/s", 100*v)
			b.add("grant-contend", "8 processes, disk", id, "rate", "/s", 300*v)
			for _, n := range []int{10, 100, 1000} {
				b.add("waiters", fmt.Sprintf("%d waiters", n), id, "cores", "", v*float64(n)/10000)
			}
		}
	}
	return b
}

// The numbers of every plot are those of the JSON that it was drawn from, and its bars are as long as they say.
func TestPlotsShowTheFigures(t *testing.T) {
	folder := t.TempDir()
	want := planted()
	data, err := json.Marshal(want)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(folder, "results.json")
	if err := os.WriteFile(file, data, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := plotFile(file, ""); err != nil {
		t.Fatal(err)
	}
	charts := want.charts()
	if len(charts) < 3 {
		t.Fatalf("%d charts", len(charts))
	}
	for _, c := range charts {
		text, err := os.ReadFile(filepath.Join(folder, "plots", c.file+".svg"))
		if err != nil {
			t.Error(err)
			continue
		}
		var got drawn
		if err := xml.Unmarshal(text, &got); err != nil {
			t.Errorf("%s: %v", c.file, err)
			continue
		}
		if got.Role != "img" || got.Title != c.title || !strings.Contains(got.Desc, "a <processor> & more") {
			t.Errorf("%s: role %q, title %q, desc %q", c.file, got.Role, got.Title, got.Desc)
		}
		if !strings.Contains(got.Style, "prefers-color-scheme:dark") || strings.Contains(string(text), "url(") {
			t.Errorf("%s: no dark style, or something from outside", c.file)
		}
		if !strings.Contains(strings.Join(got.Text, "\n"), c.axis) {
			t.Errorf("%s: no axis %q", c.file, c.axis)
		}
		from, to, _ := c.scale()
		i := 0
		for _, r := range got.Rects {
			if !strings.HasPrefix(r.Class, "bar") {
				continue
			}
			v, verr := strconv.ParseFloat(r.Value, 64)
			width, werr := strconv.ParseFloat(r.Width, 64)
			if verr != nil || werr != nil {
				t.Errorf("%s: %s: value %q, width %q", c.file, r.Group, r.Value, r.Width)
				continue
			}
			b := findBar(c, r.Group, r.Series)
			if b == nil || b.value != v {
				t.Errorf("%s: %s, %s is drawn as %v, measured was %+v", c.file, r.Group, r.Series, v, b)
				continue
			}
			part := v / to
			if c.log {
				part = (math.Log10(v) - math.Log10(from)) / (math.Log10(to) - math.Log10(from))
			}
			if length := part * (barsTo - barsFrom); math.Abs(length-width) > 0.02 {
				t.Errorf("%s: %s: the bar of %v is %v long, not %v", c.file, r.Group, v, width, length)
			}
			i++
		}
		if i != len(c.bars) || i == 0 {
			t.Errorf("%s: %d bars of %d", c.file, i, len(c.bars))
		}
	}
}

// Each plot shows the metric that it says.
func TestPlotsShowTheRightMetric(t *testing.T) {
	b := planted()
	for _, c := range []struct{ file, series, workload, kase, metric string }{
		{"cycle", "", "cycle", "", "time"},
		{"handoff", "", "handoff", "", "p50"},
		{"append", "10000 records", "append", "10000 records, disk", "time"},
		{"waits", "99th of 100", "contend", eightHeld, "p99"},
		{"grant", "8 processes", "grant-contend", "8 processes, disk", "rate"},
		{"waiters", "1000 waiters", "waiters", thousand, "cores"},
	} {
		seen := false
		for _, x := range b.charts() {
			if x.file != c.file {
				continue
			}
			seen = true
			if got, want := findBar(x, "gofrs", c.series), b.value(c.workload, c.kase, "gofrs", c.metric); got == nil || got.value != want {
				t.Errorf("%s, %s: %+v, want %v", c.file, c.series, got, want)
			}
		}
		if !seen {
			t.Errorf("no plot %s", c.file)
		}
	}
}

func findBar(c chart, group, series string) *bar {
	for i, b := range c.bars {
		if b.group == group && b.series == series {
			return &c.bars[i]
		}
	}
	return nil
}

func TestPlotOfNoResults(t *testing.T) {
	file := filepath.Join(t.TempDir(), "results.json")
	for text, want := range map[string]string{"no JSON": "no JSON of a run", "{}": "no figures"} {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := plotFile(file, ""); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", text, err)
		}
	}
	if _, err := os.Stat(filepath.Join(filepath.Dir(file), "plots")); err == nil {
		t.Error("a folder was made for nothing")
	}
}

func TestAxisHoldsEveryBar(t *testing.T) {
	for _, values := range [][]float64{{0}, {0.003, 900}, {1}, {10, 10}, {7, 0}, {199}} {
		for _, log := range []bool{false, true} {
			c := chart{log: log}
			for _, v := range values {
				c.bars = append(c.bars, bar{value: v, lowest: v, highest: v})
			}
			from, to, marks := c.scale()
			if len(marks) < 2 || len(marks) > 11 {
				t.Errorf("%v, log %v: marks %v", values, log, marks)
			}
			for _, v := range values {
				if v > to || v > 0 && v < from {
					t.Errorf("%v, log %v: from %v to %v", values, log, from, to)
				}
			}
		}
	}
}
