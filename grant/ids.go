package grant

import (
	"cmp"
	"fmt"
	"slices"
)

func (s *step) leaseIDs(c LeaseIDs) *Refusal {
	if r := s.leads(c.Session); r != nil {
		return r
	}
	p, n := s.old, s.next
	worker := c.Worker
	if worker == "" {
		worker = p.Holder.Agent
	}
	switch fault := nameFault(worker); {
	case fault != "":
		return s.bad("worker: " + fault)
	case c.Count < 1 || c.Count > MaxLease:
		return s.bad(fmt.Sprintf("a lease has 1 to %d identifiers, not %d", MaxLease, c.Count))
	case c.Block != 0 && p.block(c.Block) < 0:
		return s.noBlock(c.Block)
	case len(p.IDs.Leases) >= MaxLeases:
		return s.refuse(CodeLimit, fmt.Sprintf("%d leases are open", MaxLeases), "grant land "+word(p.Container)+" FILE…", "a landing closes them")
	}
	lease := Lease{Block: c.Block, ID: n.Rev, Used: list[Range](nil), Worker: worker}
	if i := slices.IndexFunc(n.IDs.Free, func(r Range) bool { return r.Hi-r.Lo+1 >= c.Count }); i >= 0 {
		free := &n.IDs.Free[i]
		lease.Lo, lease.Hi = free.Lo, free.Lo+c.Count-1
		if free.Lo = lease.Hi + 1; free.Lo > free.Hi {
			n.IDs.Free = slices.Delete(n.IDs.Free, i, i+1)
		}
	} else {
		if c.Count > MaxNumber-n.IDs.Next+1 {
			return s.refuse(CodeExhausted, fmt.Sprintf("from %d on there are fewer than %d identifiers", n.IDs.Next, c.Count), "", "")
		}
		lease.Lo, lease.Hi = n.IDs.Next, n.IDs.Next+c.Count-1
		n.IDs.Next += c.Count
	}
	n.IDs.Leases = append(n.IDs.Leases, lease)
	return nil
}

// useIDs takes what a landing uses out of the grant's leases, closes those that it does not keep and frees
// what they have left. It returns the identifiers in order.
func (s *step) useIDs(ids []Range, keep []int64) ([]Range, *Refusal) {
	badIDs := func(why string) *Refusal {
		return s.refuse(CodeBadIDs, why, "grant ids "+word(s.old.Container)+" N", "leases identifiers; only those of this grant's open leases can land, once")
	}
	ids = list(ids)
	slices.SortFunc(ids, func(a, b Range) int { return cmp.Compare(a.Lo, b.Lo) })
	if len(ids) > MaxRanges {
		return nil, badIDs(fmt.Sprintf("%d ranges of identifiers; at most %d", len(ids), MaxRanges))
	}
	for i, r := range ids {
		if r.Lo < 1 || r.Hi < r.Lo || r.Hi > MaxNumber {
			return nil, badIDs(fmt.Sprintf("%d to %d is no range", r.Lo, r.Hi))
		}
		if i > 0 && r.Lo <= ids[i-1].Hi {
			return nil, badIDs(fmt.Sprintf("%d is named twice", r.Lo))
		}
	}
	n := s.next
	for i, id := range keep {
		if slices.Contains(keep[:i], id) || !slices.ContainsFunc(n.IDs.Leases, func(l Lease) bool { return l.ID == id }) {
			return nil, badIDs(fmt.Sprintf("%d is no open lease, or named twice", id))
		}
	}
	for _, r := range ids {
		for at := r.Lo; at <= r.Hi; {
			i := slices.IndexFunc(n.IDs.Leases, func(l Lease) bool { return l.Lo <= at && at <= l.Hi })
			if i < 0 {
				return nil, badIDs(fmt.Sprintf("%d is in no open lease of grant %d", at, s.old.Grant))
			}
			l := &n.IDs.Leases[i]
			part := Range{Lo: at, Hi: min(r.Hi, l.Hi)}
			if u := slices.IndexFunc(l.Used, func(u Range) bool { return u.Lo <= part.Hi && part.Lo <= u.Hi }); u >= 0 {
				return nil, badIDs(fmt.Sprintf("%d has landed already", max(l.Used[u].Lo, part.Lo)))
			}
			l.Used = join(l.Used, []Range{part})
			at = part.Hi + 1
		}
	}
	open, used := list[Lease](nil), 0
	for _, l := range n.IDs.Leases {
		if slices.Contains(keep, l.ID) {
			l.Kept = true
			used += len(l.Used)
			open = append(open, l)
			continue
		}
		n.IDs.Free = join(n.IDs.Free, without(Range{Lo: l.Lo, Hi: l.Hi}, l.Used))
	}
	if used > MaxRanges {
		return nil, s.refuse(CodeLimit, fmt.Sprintf("kept leases have been used in %d pieces", used), "grant land "+word(s.old.Container)+" FILE…", "keep fewer")
	}
	n.IDs.Leases = open
	n.IDs.Free = longest(n.IDs.Free, MaxRanges)
	return ids, nil
}

// join is two sets of ranges as one: ascending, and no two touch.
func join(a, b []Range) []Range {
	all := append(list(a), b...)
	slices.SortFunc(all, func(a, b Range) int { return cmp.Compare(a.Lo, b.Lo) })
	out := all[:0]
	for _, r := range all {
		if k := len(out) - 1; k >= 0 && r.Lo <= out[k].Hi+1 {
			out[k].Hi = max(out[k].Hi, r.Hi)
		} else {
			out = append(out, r)
		}
	}
	return out
}

// without is what is left of a range; used is ascending and within it.
func without(r Range, used []Range) []Range {
	var left []Range
	at := r.Lo
	for _, u := range used {
		if u.Lo > at {
			left = append(left, Range{Lo: at, Hi: u.Lo - 1})
		}
		at = u.Hi + 1
	}
	if at <= r.Hi {
		left = append(left, Range{Lo: at, Hi: r.Hi})
	}
	return left
}

// longest keeps the n longest ranges, in order. The rest are burned: that costs identifiers, where a list
// without bound would cost the page.
func longest(all []Range, n int) []Range {
	if len(all) <= n {
		return all
	}
	all = list(all)
	slices.SortStableFunc(all, func(a, b Range) int { return cmp.Compare(b.Hi-b.Lo, a.Hi-a.Lo) })
	all = all[:n]
	slices.SortFunc(all, func(a, b Range) int { return cmp.Compare(a.Lo, b.Lo) })
	return all
}
