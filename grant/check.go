package grant

import (
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// What a page holds at most. Together they keep it below MaxPage.
const (
	MaxPage    = 1 << 20       // bytes
	MaxName    = 240           // bytes of a container's, agent's or record's name
	MaxText    = 1024          // bytes of a reason, note or command
	MaxQueue   = 256           // petitions
	MaxBlocks  = 64            // open blocks
	MaxLeases  = 256           // leases of one grant
	MaxRanges  = 1024          // ranges of one list of identifiers
	MaxLease   = 1_000_000_000 // identifiers in one lease
	maxDoubts  = 16
	minNonce   = 8
	maxNonce   = 64
	digestSize = 64
)

// CheckName tells whether a container or agent can have the name: 1 to 240 bytes of UTF-8, printable, without
// slash or backslash, no space or dot at either end, no dash at the start. BAD_INPUT.
func CheckName(name string) error { return badInput(nameFault(name)) }

func nameFault(name string) string {
	switch {
	case name == "":
		return "a name is needed"
	case len(name) > MaxName:
		return fmt.Sprintf("a name of %d bytes is too long; at most %d", len(name), MaxName)
	case !printable(name):
		return "a name holds characters that cannot be shown"
	case strings.ContainsAny(name, `/\`):
		return "a name holds a slash or backslash"
	case strings.Trim(name, " .") != name:
		return "a name begins or ends with a dot or space"
	case name[0] == '-':
		return "a name begins with a dash"
	}
	return ""
}

// CheckNonce tells whether a nonce is one: 8 to 64 characters of A-Z a-z 0-9 . _ -. BAD_INPUT.
func CheckNonce(nonce string) error { return badInput(nonceFault(nonce)) }

func nonceFault(nonce string) string {
	if len(nonce) < minNonce || len(nonce) > maxNonce {
		return fmt.Sprintf("an id has %d to %d characters", minNonce, maxNonce)
	}
	for _, c := range []byte(nonce) {
		if !(c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || strings.IndexByte("._-", c) >= 0) {
			return "an id is made of letters, digits, dots, dashes and underscores"
		}
	}
	return ""
}

// CheckParams tells whether params are within bounds. BAD_INPUT.
func CheckParams(p Params) error { return badInput(paramsFault(p)) }

func paramsFault(p Params) string {
	for _, b := range []struct {
		name             string
		got, least, most Seconds
	}{
		{"cap", p.Cap, 1, 24 * 3600},
		{"extension", p.Extension, 1, p.Cap},
		{"window", p.Window, 1, 24 * 3600},
		{"petition_idle", p.PetitionIdle, 60, 366 * 24 * 3600},
	} {
		if b.got < b.least || b.got > b.most {
			return fmt.Sprintf("%s of %d s is not within %d s and %d s", b.name, b.got, b.least, b.most)
		}
	}
	return ""
}

// badInput is a refusal that needs no page; nil when nothing is at fault.
func badInput(fault string) error {
	if fault == "" {
		return nil
	}
	return &Refusal{Code: CodeBadInput, Cause: fault}
}

func printable(s string) bool {
	for i, r := range s {
		if r == utf8.RuneError {
			if _, n := utf8.DecodeRuneInString(s[i:]); n <= 1 {
				return false
			}
		}
		if !unicode.IsPrint(r) {
			return false
		}
	}
	return true
}

// textFault tells whether words can stand in a page.
func textFault(what, s string) string {
	if len(s) > MaxText {
		return fmt.Sprintf("a %s of %d bytes is too long; at most %d", what, len(s), MaxText)
	}
	if !printable(s) {
		return "a " + what + " is one line of characters that can be shown"
	}
	return ""
}

func (d Digest) valid() bool {
	if len(d) != digestSize {
		return false
	}
	for _, c := range []byte(d) {
		if !(c >= '0' && c <= '9' || c >= 'a' && c <= 'f') {
			return false
		}
	}
	return true
}

func (s Stamp) valid() bool {
	return s.T.valid() && (s.Source == SourceStore || s.Source == SourceClient)
}

func (a Actor) valid() bool {
	return nameFault(a.Name) == "" && (a.Role == RoleAgent || a.Role == RoleOperator)
}

func (h Holder) valid() bool { return nameFault(h.Agent) == "" && h.Session.valid() }

func number(n int64) bool { return n >= 1 && n <= MaxNumber }

// shape tells what is wrong with a page as it stands, whatever came before it: sizes, texts, names, and what
// belongs to its state. What may not be of a page that could be decoded is pageInvariant's.
func shape(p *Page) error {
	c := &shapeCheck{}
	c.is(p.V == Version, "v")
	c.is(nameFault(p.Container) == "", "container")
	c.is(number(p.Rev), "rev")
	c.is(number(p.Epoch), "epoch")
	c.is(p.Grant >= 0 && p.Grant <= MaxNumber, "grant")
	c.is(nonceFault(p.Nonce) == "", "nonce")
	c.is(slices.Contains(knownOps[:], p.Op), "op")
	c.is(p.By.valid(), "by")
	c.is(p.Stamp.valid(), "stamp")
	c.is(p.Digest.valid(), "digest")
	c.is(p.PrevHash == "" || p.PrevHash.valid(), "prev_hash")
	c.text("note", p.Note)
	c.is(paramsFault(p.Params) == "", "params")
	for _, t := range []Time{p.Expiry, p.GrantTime, p.Heartbeat} {
		c.is(t == 0 || t.valid(), "time")
	}
	c.state(p)
	c.lists(p)
	if a := p.Audit; a != nil {
		c.is(nameFault(a.Operator) == "" && a.Reason != "", "audit")
		c.is(a.Grant >= 0 && a.Grant <= MaxNumber && a.Seen >= 0 && a.Seen <= MaxNumber && a.SeenEpoch >= 0 && a.SeenEpoch <= MaxNumber, "audit")
		c.is(a.Holder == nil || a.Holder.valid(), "audit.holder")
		c.text("audit.reason", a.Reason)
	}
	if e := p.Ended; e != nil {
		c.is(number(e.Grant) && number(e.Rev) && e.At.valid() && e.By.valid() && e.Holder.valid(), "ended")
		c.is(knownHow(e.How), "ended.how")
		c.text("ended.reason", e.Reason)
	}
	if l := p.Landing; l != nil {
		c.is(number(l.N) && nonceFault(l.ID) == "" && l.New.valid() && l.SHA256.valid() && (l.Base == "" || l.Base.valid()), "landing")
		c.text("landing.empty", l.Empty)
		c.ranges("landing.ids", l.IDs)
	}
	if r := p.Running; r != nil {
		c.is(nonceFault(r.ID) == "" && r.Started.valid() && r.Command != "", "running")
		c.text("running.command", r.Command)
	}
	r := p.Register
	c.is(r.Seq >= 0 && r.Seq <= MaxNumber && (r.Head == "" && r.Seq == 0 || r.Head.valid() && r.Seq > 0), "register")
	s := p.Silent
	c.is(s.On && number(s.SinceGrant) && knownHow(s.Why) || !s.On && s.SinceGrant == 0 && s.Why == "", "silent")
	return c.err
}

func knownHow(h How) bool {
	return h == HowReleased || h == HowTakenOver || h == HowCleared || h == HowLost
}

// knownOps is no map: that would be made at the start of every program, whether it reads a page or not.
var knownOps = [...]Op{
	OpCreate, OpPetition, OpTouch, OpWithdraw, OpAcquire, OpHeartbeat, OpIDs, OpBlock, OpCloseBlock, OpLand,
	OpRelease, OpClear, OpRestore, OpBegin, OpFinish, OpResolve, OpCommission, OpDerive, OpStage, OpJudge,
}

type shapeCheck struct{ err error }

func (c *shapeCheck) is(ok bool, what string) {
	if !ok && c.err == nil {
		c.err = fmt.Errorf("%s is not what it should be", what)
	}
}

func (c *shapeCheck) text(what, s string) { c.is(textFault(what, s) == "", what) }

// ranges wants ascending ranges of which no two overlap.
func (c *shapeCheck) ranges(what string, list []Range) {
	c.is(len(list) <= MaxRanges && rangesAscend(list), what)
}

func rangesAscend(list []Range) bool {
	last := int64(0)
	for _, r := range list {
		if r.Lo <= last || r.Hi < r.Lo || r.Hi > MaxNumber {
			return false
		}
		last = r.Hi
	}
	return true
}

func (c *shapeCheck) state(p *Page) {
	switch p.State {
	case StateHeld:
		c.is(p.Holder != nil && p.Holder.valid(), "holder")
		c.is(p.GrantTime.valid() && p.Expiry.valid() && p.Heartbeat.valid() && p.Grant > 0, "grant's times")
		c.is(p.Offer == nil, "offer")
	case StateFree, StateCleared:
		c.is(p.Holder == nil && p.GrantTime == 0 && p.Expiry == 0 && p.Heartbeat == 0, "holder")
		c.is(p.Landing == nil && p.Running == nil && len(p.IDs.Leases) == 0, "what belongs to a grant")
		c.is((p.Offer != nil) == (len(p.Queue) > 0), "offer")
	default:
		c.is(false, "state")
	}
	if o := p.Offer; o != nil && len(p.Queue) > 0 {
		c.is(o.Petition == p.Queue[0].Rev && o.OpenedAt.valid() && number(o.OpenedRev) && o.OpenedRev <= p.Rev, "offer")
	}
}

func (c *shapeCheck) lists(p *Page) {
	agents := map[string]bool{}
	numbers := map[int64]bool{}
	c.is(len(p.Queue) <= MaxQueue, "queue")
	for _, w := range p.Queue {
		c.is(nameFault(w.Agent) == "" && number(w.Rev) && w.Rev <= p.Rev && w.Since.valid() && w.Touched.valid() && (w.Misses == 0 || w.Misses == 1), "queue")
		c.is(!agents[w.Agent] && !numbers[w.Rev], "queue")
		agents[w.Agent], numbers[w.Rev] = true, true
	}
	c.is(len(p.Passed) <= MaxQueue, "passed")
	for _, w := range p.Passed {
		c.is(nameFault(w.Agent) == "" && number(w.Petition) && (w.Why == WhyMissed || w.Why == WhyEnded || w.Why == WhyIdle), "passed")
	}
	c.is(len(p.Doubts) <= maxDoubts, "doubts")
	for _, d := range p.Doubts {
		c.is(number(d.Grant) && nonceFault(d.ID) == "" && d.Started.valid() && d.Command != "", "doubts")
		c.text("doubts", d.Command)
	}
	c.is(number(p.IDs.Next) || p.IDs.Next == MaxNumber+1, "ids.next")
	c.ranges("ids.free", p.IDs.Free)
	used := 0
	c.is(len(p.IDs.Leases) <= MaxLeases, "ids.leases")
	for i, l := range p.IDs.Leases {
		c.is(number(l.ID) && l.ID <= p.Rev && (i == 0 || l.ID > p.IDs.Leases[i-1].ID), "ids.leases")
		c.is(rangesAscend([]Range{{Lo: l.Lo, Hi: l.Hi}}) && l.Block >= 0 && l.Block <= MaxNumber && nameFault(l.Worker) == "", "ids.leases")
		c.ranges("ids.leases.used", l.Used)
		used += len(l.Used)
	}
	c.is(used <= MaxRanges, "ids.leases.used")
	c.is(len(p.Blocks) <= MaxBlocks, "blocks")
	for i, b := range p.Blocks {
		c.is(number(b.ID) && b.ID <= p.Rev && (i == 0 || b.ID > p.Blocks[i-1].ID) && number(b.Grant) && nameFault(b.Worker) == "", "blocks")
		c.text("blocks.note", b.Note)
		if b.Repro != nil {
			c.repro(*b.Repro)
		}
	}
}

func (c *shapeCheck) repro(r Reproduction) {
	c.is(nameFault(r.Author) == "" && r.Kernel.valid() && r.Assumptions.valid() && r.Record != "" && len(r.Record) <= MaxText && printable(r.Record), "blocks.repro")
	staged, judged := false, false
	switch r.State {
	case ReproCommissioned, ReproDeriving:
	case ReproStaged:
		staged = true
	case ReproJudged:
		staged, judged = true, true
	default:
		c.is(false, "blocks.repro.state")
	}
	c.is(staged && r.Result.valid() && r.StagedAt.valid() || !staged && r.Result == "" && r.StagedAt == Stamp{}, "blocks.repro.result")
	known := r.Verdict == VerdictMatch || r.Verdict == VerdictMismatch || r.Verdict == VerdictVoid
	c.is(judged && known && nameFault(r.Judge) == "" || !judged && r.Verdict == "" && r.Judge == "", "blocks.repro.verdict")
}
