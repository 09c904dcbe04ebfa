package main

import (
	"math"
	"slices"
)

// median returns the middle of xs (the mean of the two middle values when
// there is an even number), or NaN for none.
func median(xs []float64) float64 {
	if len(xs) == 0 {
		return math.NaN()
	}
	s := slices.Sorted(slices.Values(xs))
	m := len(s) / 2
	if len(s)%2 == 1 {
		return s[m]
	}
	return (s[m-1] + s[m]) / 2
}

// percentile returns the nearest-rank p-th percentile of sorted, p in
// (0, 100]: a value that did occur, never one between two. NaN for none.
func percentile(sorted []float64, p float64) float64 {
	if len(sorted) == 0 {
		return math.NaN()
	}
	rank := int(math.Ceil(p / 100 * float64(len(sorted))))
	return sorted[min(max(rank, 1), len(sorted))-1]
}

// jain is Jain's fairness index: 1 when all shares are equal, 1/n when one of
// n has everything. NaN when nobody has anything.
func jain(shares []float64) float64 {
	var sum, squares float64
	for _, x := range shares {
		sum += x
		squares += x * x
	}
	if squares == 0 {
		return math.NaN()
	}
	return sum * sum / (float64(len(shares)) * squares)
}

// evenness is the slowest share over the fastest.
func evenness(shares []float64) float64 {
	if len(shares) == 0 {
		return math.NaN()
	}
	hi := slices.Max(shares)
	if hi == 0 {
		return math.NaN()
	}
	return slices.Min(shares) / hi
}

// ratios divides round by round; rounds that only one side has are left out.
func ratios(a, b []float64) []float64 {
	n := min(len(a), len(b))
	out := make([]float64, 0, n)
	for i := range n {
		if b[i] > 0 {
			out = append(out, a[i]/b[i])
		}
	}
	return out
}

// hold is one passage through the lock, in ns of CLOCK_MONOTONIC.
type hold struct{ ask, enter, leave int64 }

// overlaps counts the holds that began before an earlier one had ended. The
// order of hs is changed.
func overlaps(hs []hold) int {
	slices.SortFunc(hs, func(a, b hold) int {
		switch {
		case a.enter < b.enter:
			return -1
		case a.enter > b.enter:
			return 1
		}
		return 0
	})
	n := 0
	end := int64(math.MinInt64)
	for _, h := range hs {
		if h.enter < end {
			n++
		}
		end = max(end, h.leave)
	}
	return n
}
