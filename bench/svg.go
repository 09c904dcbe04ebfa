package main

import (
	"encoding/xml"
	"fmt"
	"math"
	"strings"
)

// bar is one bar of a chart: what it stands for, and the least and the most of its rounds.
type bar struct {
	group, series          string
	value, lowest, highest float64
}

// chart is a chart of lying bars: a group a contestant, in it a bar a series.
type chart struct {
	file, title, desc string
	axis              string // what the bars are, with the unit
	log               bool   // the axis counts in tenfolds
	series            []string
	bars              []bar
}

const (
	svgWidth  = 760.0
	barsFrom  = 210.0 // left of it the names
	barsTo    = 660.0 // right of it the values
	barHeight = 13.0
	groupGap  = 9.0
)

// svgStyle is for both: the page's background shows through.
const svgStyle = `text{font:12px system-ui,sans-serif;fill:#24292f}.t{font-size:15px;font-weight:600}.v{font-size:11px}` +
	`.g{stroke:#8c959f;stroke-opacity:.35}.w{stroke:#57606a;stroke-width:1.2}` +
	`.s0{fill:#0969da}.s1{fill:#bf8700}.s2{fill:#8250df}.s3{fill:#1a7f37}` +
	`@media (prefers-color-scheme:dark){text{fill:#e6edf3}.w{stroke:#afb8c1}.s0{fill:#58a6ff}.s1{fill:#e3b341}.s2{fill:#bc8cff}.s3{fill:#56d364}}`

func escaped(s string) string {
	var out strings.Builder
	_ = xml.EscapeText(&out, []byte(s)) // a Builder fails no write
	return out.String()
}

// scale gives where the axis begins and ends, and its marks.
func (c chart) scale() (from, to float64, marks []float64) {
	least, most := math.Inf(1), 0.0
	for _, b := range c.bars {
		if b.value > 0 {
			least = min(least, b.value, positive(b.lowest, b.value))
		}
		most = max(most, b.value, b.highest)
	}
	if most == 0 {
		least, most = 0.1, 1
	}
	if c.log {
		from = math.Pow(10, math.Floor(math.Log10(least*0.999)))
		to = math.Pow(10, math.Ceil(math.Log10(most)))
		for m := from; m <= to*1.001; m *= 10 {
			marks = append(marks, m)
		}
		return from, to, marks
	}
	step := math.Pow(10, math.Floor(math.Log10(most)))
	switch {
	case most/step < 2:
		step /= 5
	case most/step < 5:
		step /= 2
	}
	to = math.Ceil(most/step) * step
	for i := range int(math.Round(to/step)) + 1 {
		marks = append(marks, float64(i)*step)
	}
	return 0, to, marks
}

func positive(v, otherwise float64) float64 {
	if v > 0 {
		return v
	}
	return otherwise
}

// at is where v lies on the axis.
func (c chart) at(v, from, to float64) float64 {
	part := v / to
	if c.log {
		part = math.Log(max(v, from)/from) / math.Log(to/from)
	}
	return barsFrom + (barsTo-barsFrom)*min(max(part, 0), 1)
}

// svg draws the chart. Every bar carries its value as it was measured.
func (c chart) svg() string {
	var groups []string
	byGroup := map[string][]bar{}
	for _, b := range c.bars {
		if byGroup[b.group] == nil {
			groups = append(groups, b.group)
		}
		byGroup[b.group] = append(byGroup[b.group], b)
	}
	from, to, marks := c.scale()
	top := 46.0
	if len(c.series) > 1 {
		top += 22
	}
	height := top
	for _, g := range groups {
		height += float64(len(byGroup[g]))*barHeight + groupGap
	}
	bottom := height
	height += 42
	var out strings.Builder
	p := func(format string, args ...any) { fmt.Fprintf(&out, format+"\n", args...) }
	p(`<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %.0f %.0f" role="img" aria-labelledby="title desc">`, svgWidth, height)
	p(`<title id="title">%s</title>`, escaped(c.title))
	p(`<desc id="desc">%s</desc>`, escaped(c.desc))
	p(`<style>%s</style>`, svgStyle)
	p(`<text class="t" x="12" y="24">%s</text>`, escaped(c.title))
	if len(c.series) > 1 {
		x := barsFrom
		for i, s := range c.series {
			p(`<rect class="s%d" x="%.1f" y="38" width="11" height="11"/><text x="%.1f" y="48">%s</text>`, i%4, x, x+16, escaped(s))
			x += 30 + 7.2*float64(len([]rune(s)))
		}
	}
	for _, m := range marks {
		x := c.at(m, from, to)
		p(`<line class="g" x1="%.1f" y1="%.1f" x2="%.1f" y2="%.1f"/><text class="v" x="%.1f" y="%.1f" text-anchor="middle">%s</text>`,
			x, top-4, x, bottom, x, bottom+14, mark(m))
	}
	y := top
	for _, g := range groups {
		bars := byGroup[g]
		p(`<text x="%.0f" y="%.1f" text-anchor="end">%s</text>`, barsFrom-10, y+float64(len(bars))*barHeight/2+4, escaped(g))
		for _, b := range bars {
			end := c.at(b.value, from, to)
			p(`<rect class="bar s%d" x="%.0f" y="%.1f" width="%.2f" height="%.0f" data-group="%s" data-series="%s" data-value="%v"><title>%s</title></rect>`,
				c.seriesIndex(b.series)%4, barsFrom, y, end-barsFrom, barHeight-2, escaped(b.group), escaped(b.series), b.value,
				escaped(fmt.Sprintf("%s %s: %s (%s–%s)", b.group, b.series, amount(b.value), amount(b.lowest), amount(b.highest))))
			right := end
			if b.highest > b.lowest {
				right = c.at(b.highest, from, to)
				p(`<line class="w" x1="%.1f" y1="%.1f" x2="%.1f" y2="%.1f"/>`, c.at(b.lowest, from, to), y+barHeight/2-1, right, y+barHeight/2-1)
			}
			p(`<text class="v" x="%.1f" y="%.1f">%s</text>`, max(right, end)+6, y+barHeight-3, amount(b.value))
			y += barHeight
		}
		y += groupGap
	}
	p(`<text x="%.0f" y="%.1f" text-anchor="middle">%s</text>`, (barsFrom+barsTo)/2, bottom+34, escaped(c.axis))
	p(`</svg>`)
	return out.String()
}

func (c chart) seriesIndex(name string) int {
	for i, s := range c.series {
		if s == name {
			return i
		}
	}
	return 0
}

// mark writes a number at the axis.
func mark(v float64) string {
	if v >= 10000 {
		return fmt.Sprintf("%gk", v/1000)
	}
	return fmt.Sprintf("%.4g", v)
}
