package grant

import (
	"fmt"
	"reflect"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// TestIdentifiers: from next or free, landed once, back when unused, burned with the grant.
func TestIdentifiers(t *testing.T) {
	w := newWorld(t)
	s := w.acquire("anna")
	lease := func(n int64) Lease {
		t.Helper()
		w.do(LeaseIDs{Meta: w.agent("anna"), Session: s, Count: n, Worker: "ben"})
		all := w.page().IDs.Leases
		return all[len(all)-1]
	}
	land := func(keep []int64, ids ...Range) Land {
		l := w.landing("anna", s)
		l.IDs, l.Keep = ids, keep
		return l
	}
	a, b := lease(10), lease(10)
	if a.Lo != 1 || a.Hi != 10 || b.Lo != 11 || b.Hi != 20 || w.page().IDs.Next != 21 {
		t.Fatalf("leases %+v %+v, next %d", a, b, w.page().IDs.Next)
	}
	for _, ids := range [][]Range{{{Lo: 21, Hi: 21}}, {{Lo: 0, Hi: 1}}, {{Lo: 5, Hi: 4}}, {{Lo: 1, Hi: 2}, {Lo: 2, Hi: 3}}, {{Lo: -3, Hi: -1}}, {{Lo: 1, Hi: 1<<63 - 1}}, {{Lo: 20, Hi: 21}}} {
		w.refused(CodeBadIDs, land(nil, ids...))
	}
	w.refused(CodeBadIDs, land([]int64{99}))
	w.refused(CodeBadIDs, land([]int64{a.ID, a.ID}))
	w.do(land([]int64{b.ID}, Range{Lo: 9, Hi: 12})) // across both, and b stays
	if got, want := w.page().IDs, (Identifiers{Free: []Range{{Lo: 1, Hi: 8}}, Next: 21, Leases: []Lease{{Hi: 20, ID: b.ID, Kept: true, Lo: 11, Used: []Range{{Lo: 11, Hi: 12}}, Worker: "ben"}}}); !reflect.DeepEqual(got, want) {
		t.Fatalf("%+v, want %+v", got, want)
	}
	if r := w.refusal(CodeBadIDs, land(nil, Range{Lo: 12, Hi: 13})); !strings.Contains(r.Cause, "12 has landed already") {
		t.Error(r)
	}
	w.refused(CodeBadIDs, land(nil, Range{Lo: 11, Hi: 11}))
	w.refused(CodeBadIDs, land(nil, Range{Lo: 9, Hi: 9})) // of a closed lease
	c, d := lease(8), lease(2)
	if c.Lo != 1 || c.Hi != 8 || d.Lo != 21 {
		t.Errorf("from the free ones %+v, then %+v", c, d)
	}
	w.do(land(nil, Range{Lo: 13, Hi: 13}, Range{Lo: 1, Hi: 2}))
	if got := fmt.Sprint(w.page().IDs.Free); got != "[{8 3} {22 14}]" {
		t.Errorf("free: %s", got)
	}
	lease(5)
	w.now = w.page().Expiry
	s = w.acquire("anna")
	if got := fmt.Sprint(w.page().IDs.Free); got != "[{8 8} {22 14}]" || len(w.page().IDs.Leases) > 0 {
		t.Errorf("after the takeover: %s, %+v", got, w.page().IDs.Leases)
	}
	w.refused(CodeBadIDs, land(nil, Range{Lo: 3, Hi: 3}))
	if e := lease(5); e.Lo != 14 {
		t.Errorf("the dead grant's came back: %+v", e)
	}
}

// TestRanges: the machine's arithmetic and Verify's agree with counting on fingers.
func TestRanges(t *testing.T) {
	draw := rapid.Custom(func(t *rapid.T) []Range {
		var out []Range
		for at := int64(rapid.IntRange(1, 5).Draw(t, "at")); at < 30; {
			hi := at + int64(rapid.IntRange(0, 6).Draw(t, "n"))
			out = append(out, Range{Lo: at, Hi: hi})
			at = hi + int64(rapid.IntRange(1, 5).Draw(t, "gap"))
		}
		return out
	})
	count := func(in func(int64) bool) []Range {
		out := list[Range](nil)
		for i := int64(1); i < 50; i++ {
			if k := len(out) - 1; in(i) && k >= 0 && out[k].Hi == i-1 {
				out[k].Hi = i
			} else if in(i) {
				out = append(out, Range{Lo: i, Hi: i})
			}
		}
		return out
	}
	has := func(all []Range, i int64) bool { return overlaps(all, Range{Lo: i, Hi: i}) }
	checks(t, 2_000)
	rapid.Check(t, func(rt *rapid.T) {
		a, b := draw.Draw(rt, "a"), draw.Draw(rt, "b")
		either := count(func(i int64) bool { return has(a, i) || has(b, i) })
		if got := join(a, b); !reflect.DeepEqual(got, either) {
			rt.Errorf("join: %v, want %v", got, either)
		}
		if got := those(append(list(a), b...), nil); !reflect.DeepEqual(got, either) {
			rt.Errorf("those of both: %v, want %v", got, either)
		}
		left := count(func(i int64) bool { return has(a, i) && !has(b, i) })
		if got := those(a, b); !reflect.DeepEqual(got, left) {
			rt.Errorf("those not in b: %v, want %v", got, left)
		}
		one := Range{Lo: a[0].Lo, Hi: a[len(a)-1].Hi}
		if got, want := list(without(one, a)), count(func(i int64) bool { return one.Lo <= i && i <= one.Hi && !has(a, i) }); !reflect.DeepEqual(got, want) {
			rt.Errorf("without: %v, want %v", got, want)
		}
		wide := Range{Lo: 1, Hi: 45}
		if got, want := list(without(wide, a)), count(func(i int64) bool { return i <= 45 && !has(a, i) }); !reflect.DeepEqual(got, want) {
			rt.Errorf("without: %v, want %v", got, want)
		}
	})
	if got := fmt.Sprint(longest([]Range{{Lo: 1, Hi: 1}, {Lo: 3, Hi: 9}, {Lo: 11, Hi: 11}, {Lo: 20, Hi: 22}}, 2)); got != "[{9 3} {22 20}]" {
		t.Errorf("the longest: %s", got)
	}
}

// TestIdentifiersEnd: at the last identifier there is an error and no overflow.
func TestIdentifiersEnd(t *testing.T) {
	w := newWorld(t)
	s := w.acquire("anna")
	if l := w.do(LeaseIDs{Meta: w.agent("anna"), Session: s, Count: MaxLease}).IDs.Leases; l[0].Hi != MaxLease {
		t.Errorf("the longest lease: %+v", l)
	}
	p := w.page().clone()
	p.IDs.Next = MaxNumber - 1
	r, err := Seal(p)
	if err != nil {
		t.Fatal(err)
	}
	w.chain = []Revision{r}
	w.refused(CodeExhausted, LeaseIDs{Meta: w.agent("anna"), Session: s, Count: 3})
	next := w.must(LeaseIDs{Meta: w.agent("anna"), Session: s, Count: 2})
	if l := next.page.IDs.Leases[1]; l.Hi != MaxNumber || next.page.IDs.Next != MaxNumber+1 {
		t.Errorf("%+v, next %d", l, next.page.IDs.Next)
	}
	if again, err := Open(next.bytes); err != nil || again.hash != next.hash {
		t.Errorf("the page that has leased the last: %v", err)
	}
	w.chain = append(w.chain, next)
	w.refused(CodeExhausted, LeaseIDs{Meta: w.agent("anna"), Session: s, Count: 1})
}
