package grant

import (
	"reflect"
	"slices"
)

// those are the identifiers in some of plus and none of minus, as joined ranges. Verify has its own arithmetic, so
// that a mistake in the machine's does not agree with itself.
func those(plus, minus []Range) []Range {
	type edge struct{ at, plus, minus int64 }
	var edges []edge
	for _, r := range plus {
		edges = append(edges, edge{r.Lo, 1, 0}, edge{r.Hi + 1, -1, 0})
	}
	for _, r := range minus {
		edges = append(edges, edge{r.Lo, 0, 1}, edge{r.Hi + 1, 0, -1})
	}
	slices.SortFunc(edges, func(a, b edge) int { return int(min(max(a.at-b.at, -1), 1)) })
	out := list[Range](nil)
	in, no := int64(0), int64(0)
	for i, e := range edges {
		in, no = in+e.plus, no+e.minus
		if i+1 == len(edges) || edges[i+1].at == e.at || in == 0 || no > 0 {
			continue
		}
		if k := len(out) - 1; k >= 0 && out[k].Hi+1 == e.at {
			out[k].Hi = edges[i+1].at - 1
		} else {
			out = append(out, Range{Lo: e.at, Hi: edges[i+1].at - 1})
		}
	}
	return out
}

func overlaps(all []Range, r Range) bool {
	for _, x := range all {
		if x.Lo <= r.Hi && r.Lo <= x.Hi {
			return true
		}
	}
	return false
}

// within tells whether all of r is in ranges that are joined.
func within(r Range, joined []Range) bool {
	for _, x := range joined {
		if x.Lo <= r.Lo && r.Hi <= x.Hi {
			return true
		}
	}
	return false
}

// disjoint checks one page's identifiers: what is free, leased and used.
func disjoint(p *Page) *Broken {
	var all []Range
	take := func(r Range) bool {
		ok := !overlaps(all, r) && r.Hi < p.IDs.Next
		all = append(all, r)
		return ok
	}
	for i, r := range p.IDs.Free {
		if !take(r) || i > 0 && p.IDs.Free[i-1].Hi+1 == r.Lo {
			return broken(p, "I5", "%d to %d are free twice, or not yet known", r.Lo, r.Hi)
		}
	}
	for _, l := range p.IDs.Leases {
		if !take(Range{Lo: l.Lo, Hi: l.Hi}) {
			return broken(p, "I5", "%d to %d are leased twice, or free, or not yet known", l.Lo, l.Hi)
		}
		for _, u := range l.Used {
			if u.Lo < l.Lo || u.Hi > l.Hi {
				return broken(p, "I5", "%d to %d were used and not leased", u.Lo, u.Hi)
			}
		}
	}
	return nil
}

// identifiers checks where identifiers come from and go to.
func identifiers(a, b *Page) *Broken {
	switch b.Op {
	case OpIDs:
		return leased(a, b)
	case OpLand, OpFinish:
		if moved(a, b) {
			return used(a, b)
		}
		if !reflect.DeepEqual(a.IDs, b.IDs) {
			return broken(b, "I5", "identifiers changed without a landing")
		}
	case OpAcquire, OpClear, OpRelease:
		if len(b.IDs.Leases) > 0 || b.IDs.Next != a.IDs.Next || !reflect.DeepEqual(a.IDs.Free, b.IDs.Free) {
			return broken(b, "I5", "what an ended grant had left is burned")
		}
	}
	return nil
}

func leased(a, b *Page) *Broken {
	n := len(a.IDs.Leases)
	if len(b.IDs.Leases) != n+1 || !reflect.DeepEqual(b.IDs.Leases[:n], a.IDs.Leases) {
		return broken(b, "I5", "one lease is added, and no other changes")
	}
	l := b.IDs.Leases[n]
	r := Range{Lo: l.Lo, Hi: l.Hi}
	if l.ID != b.Rev || len(l.Used) > 0 || l.Kept {
		return broken(b, "I5", "the lease is not a new one")
	}
	if within(r, a.IDs.Free) {
		if b.IDs.Next != a.IDs.Next || !reflect.DeepEqual(those(append(list(b.IDs.Free), r), nil), a.IDs.Free) {
			return broken(b, "I5", "a lease takes from the free ones what it has")
		}
		return nil
	}
	if l.Lo != a.IDs.Next || b.IDs.Next != l.Hi+1 || !reflect.DeepEqual(a.IDs.Free, b.IDs.Free) {
		return broken(b, "I5", "%d to %d are neither free nor next", l.Lo, l.Hi)
	}
	return nil
}

func used(a, b *Page) *Broken {
	if b.IDs.Next != a.IDs.Next {
		return broken(b, "I5", "a landing leases nothing")
	}
	var all, gone []Range
	for _, l := range a.IDs.Leases {
		all = append(all, Range{Lo: l.Lo, Hi: l.Hi})
		gone = append(gone, l.Used...)
	}
	unused := those(all, gone)
	for i, r := range b.Landing.IDs {
		if !within(r, unused) || i > 0 && r.Lo <= b.Landing.IDs[i-1].Hi {
			return broken(b, "I5", "%d to %d are in no open lease, or landed", r.Lo, r.Hi)
		}
	}
	kept := b.IDs.Leases
	back := list(a.IDs.Free)
	for _, l := range a.IDs.Leases {
		var mine []Range
		for _, r := range b.Landing.IDs {
			if lo, hi := max(r.Lo, l.Lo), min(r.Hi, l.Hi); lo <= hi {
				mine = append(mine, Range{Lo: lo, Hi: hi})
			}
		}
		now := those(append(mine, l.Used...), nil)
		if len(kept) > 0 && kept[0].ID == l.ID {
			want := l
			want.Kept, want.Used = true, now
			if !reflect.DeepEqual(kept[0], want) {
				return broken(b, "I5", "lease %d was kept, and changed", l.ID)
			}
			kept = kept[1:]
			continue
		}
		back = append(back, those([]Range{{Lo: l.Lo, Hi: l.Hi}}, now)...)
	}
	if len(kept) > 0 {
		return broken(b, "I5", "a landing leases nothing")
	}
	back = those(back, nil)
	for _, r := range b.IDs.Free {
		if !within(r, back) {
			return broken(b, "I5", "%d to %d are free, and came out of no closed lease", r.Lo, r.Hi)
		}
	}
	// Some may be burned where the list is full; none is given up while there is room.
	if len(back) <= MaxRanges && !reflect.DeepEqual(back, list(b.IDs.Free)) {
		return broken(b, "I5", "a landing gives back what its leases did not use")
	}
	return nil
}
