package main

import (
	"math"
	"testing"
)

func near(a, b float64) bool { return math.Abs(a-b) < 1e-12 }

func TestMedian(t *testing.T) {
	for _, c := range []struct {
		in   []float64
		want float64
	}{
		{[]float64{3}, 3},
		{[]float64{9, 1, 5}, 5},
		{[]float64{4, 1, 3, 2}, 2.5},
	} {
		if got := median(c.in); !near(got, c.want) {
			t.Errorf("median(%v) = %v, want %v", c.in, got, c.want)
		}
	}
	if !math.IsNaN(median(nil)) {
		t.Error("the median of nothing is a number")
	}
	in := []float64{2, 1}
	median(in)
	if in[0] != 2 {
		t.Error("median sorted the caller's rounds")
	}
}

func TestPercentile(t *testing.T) {
	var s []float64
	for i := 1; i <= 200; i++ {
		s = append(s, float64(i))
	}
	for _, c := range []struct{ p, want float64 }{{0.1, 1}, {50, 100}, {99, 198}, {99.9, 200}, {100, 200}} {
		if got := percentile(s, c.p); got != c.want {
			t.Errorf("percentile %v = %v, want %v", c.p, got, c.want)
		}
	}
	if got := percentile([]float64{7}, 99); got != 7 {
		t.Errorf("of one value: %v", got)
	}
	if !math.IsNaN(percentile(nil, 50)) {
		t.Error("a percentile of nothing is a number")
	}
}

func TestJain(t *testing.T) {
	for _, c := range []struct {
		in   []float64
		want float64
	}{
		{[]float64{5, 5, 5, 5}, 1},
		{[]float64{1, 0, 0, 0}, 0.25},
		{[]float64{1, 2, 3}, 36.0 / 42},
		{[]float64{1000, 2000, 3000}, 36.0 / 42},
	} {
		if got := jain(c.in); !near(got, c.want) {
			t.Errorf("jain(%v) = %v, want %v", c.in, got, c.want)
		}
	}
	if !math.IsNaN(jain([]float64{0, 0})) {
		t.Error("nobody got anything, and that was fair")
	}
}

func TestEvenness(t *testing.T) {
	if got := evenness([]float64{4, 5, 3}); !near(got, 0.6) {
		t.Errorf("evenness = %v", got)
	}
	if got := evenness([]float64{0, 5}); got != 0 {
		t.Errorf("a starved worker gives %v", got)
	}
}

func TestRatiosAreTakenRoundByRound(t *testing.T) {
	got := ratios([]float64{2, 30, 9}, []float64{1, 10})
	if len(got) != 2 || got[0] != 2 || got[1] != 3 {
		t.Errorf("ratios = %v", got)
	}
}

func TestOverlapsFindsPlanted(t *testing.T) {
	clean := []hold{{0, 20, 30}, {0, 1, 10}, {0, 10, 20}}
	if n := overlaps(clean); n != 0 {
		t.Errorf("clean holds: %d overlaps", n)
	}
	inside := []hold{{0, 1, 100}, {0, 10, 20}, {0, 30, 40}, {0, 100, 110}}
	if n := overlaps(inside); n != 2 {
		t.Errorf("two holds inside another: %d overlaps", n)
	}
	if n := overlaps([]hold{{0, 1, 11}, {0, 10, 20}}); n != 1 {
		t.Errorf("one tick of overlap: %d", n)
	}
}
