package lockfile

import (
	"testing"

	"github.com/stile-lock/stile/internal/seam"
)

// row is one row of the specification's table of states and crash points.
type row struct {
	name      string
	guarantee string // of the specification's two; or what the row is instead
	bug       string // the planted bug that makes this row's tests fail
	test      func(*world)
}

// matrix has every row, in the table's order, under the name that the test and the generated page
// give it.
var matrix = []row{
	{"free", "G1, G2", "moved lock left", testFree},
	{"live holder, short", "G2", "live holder broken", testLiveShort},
	{"live holder of any age", "G1, G2", "broken by age", testLiveAnyAge},
	{"dead holder on this host", "G1, G2", "dead holder kept", testDeadHolder},
	{"empty or unreadable lock", "a block", "unreadable lock broken", testUnreadable},
	{"holder on another host", "G2", "unknown holder broken", testOtherHost},
	{"holder whose pid is reused", "G2", "live holder broken", testReusedPID},
	{"skewed times", "G2", "age from acquiredAt alone", testSkewedTimes},
	{"two breakers of one dead lock", "G1, G2", "break without the claim", testTwoBreakers},
	{"breaker judged a lock since replaced", "G2", "break without the confirm", testJudgedReplaced},
	{"breaker stalled with its claim", "G1, G2", "break without the claim", testBreakerStalled},
	{"eight writers against a dead lock", "G1, G2", "commit forgotten", testEightWriters},
	{"link fails", "G1, G2", "no second class", testLinkFails},
	{"publish fails after its exclusive step", "G2", "failed publish unlinks the lock", testPublishFails},
	{"releaser stalled", "G1, G2", "release unlinks the name too", testReleaserStalled},
	{"releaser resumes in a fence window", "G1, G2", "release unlinks the name too", testReleaserInWindow},
	{"sweeper stalled", "G1, G2", "sweep takes the lock", testSweeperStalled},
	{"unlock with no lock", "writes nothing", "no lock is an error", testUnlockNone},
	{"unlock on a dead holder", "G1", "claim left", testUnlockDead},
	{"unlock on a holder not provably dead", "G2", "unlock does not ask", testUnlockRefused},
	{"unlock force", "residual: forced unlock of a running holder", "break without the confirm", testUnlockForce},
	{"lock lost under a holder", "G1", "fence skipped", testLost},
	{"board check with a held lock", "read-only", "line without bounds", testBoardCheck},
	{"board write after the lock is lost", "G1", "fence always passes", testBoardWrite},
	{"earlier leftovers of a dead owner", "G1", "inode claims unknown", testEarlierDead},
	{"leftovers of an owner not provably dead", "G1, G2", "sweep without proof of death", testLeftoversStay},
	{"names unique per attempt", "G2", "claim name reused", testUniqueNames},
	{"kill at acquire:pending", "G1", "pending files not swept", kill(seam.AcquirePending, nil, nil)},
	{"kill at acquire:opened", "G1", "unreadable lock broken", killAcquireOpened},
	{"kill at acquire:published", "G1", "dead holder kept", kill(seam.AcquirePublished, nil, nil)},
	{"kill at sweep:judged", "G1", "temp files not swept", kill(seam.SweepJudged, plantLeftover, nil)},
	{"kill at break:judged", "G1", "dead holder kept", kill(seam.BreakJudged, plantDead, nil)},
	{"kill at break:claimed", "G1", "claims not swept", kill(seam.BreakClaimed, plantDead, nil)},
	{"kill at break:confirmed", "G1", "claims not swept", kill(seam.BreakConfirmed, plantDead, nil)},
	{"kill at break:renamed", "G1", "broken files not swept", kill(seam.BreakRenamed, plantDead, nil)},
	{"kill at break:removed", "G1", "claims not swept", kill(seam.BreakRemoved, plantDead, nil)},
	{"kill at break:mismatch", "residual: forced unlock in a confirm-to-rename window", "broken files not swept", killMismatch(seam.BreakMismatch)},
	{"kill at break:put-back-opened", "residual: as the row above", "put-back forgotten", killPutBackOpened(seam.BreakPutBackOpened, seam.BreakPutBack)},
	{"kill at break:put-back", "G1, G2", "put-back forgotten", killMismatch(seam.BreakPutBack)},
	{"kill at hold:read", "G1", "dead holder kept", kill(seam.HoldRead, nil, nil)},
	{"kill at commit:temp-written", "G1", "temp files not swept", kill(seam.CommitTempWritten, nil, nil)},
	{"kill at commit:fenced", "G1", "temp files not swept", kill(seam.CommitFenced, nil, nil)},
	{"kill at commit:renamed", "G1", "dead holder kept", kill(seam.CommitRenamed, nil, []string{"child"})},
	{"kill at release:renamed", "G1", "broken files not swept", kill(seam.ReleaseRenamed, nil, []string{"child"})},
	{"kill at release:removed", "G1", "commit forgotten", kill(seam.ReleaseRemoved, nil, []string{"child"})},
	{"kill at release:mismatch", "residual: forced unlock of a running holder", "broken files not swept", killMismatch(seam.ReleaseMismatch)},
	{"kill at release:put-back-opened", "residual: as the row above", "put-back forgotten", killPutBackOpened(seam.ReleasePutBackOpened, seam.ReleasePutBack)},
	{"kill at release:put-back", "G1, G2", "put-back forgotten", killMismatch(seam.ReleasePutBack)},
	{"kill in unlock", "G1", "claims not swept", killUnlock},
}

func TestMatrix(t *testing.T) {
	if len(matrix) != 49 {
		t.Errorf("%d rows; the specification has 49", len(matrix))
	}
	for _, r := range matrix {
		t.Run(r.name, func(t *testing.T) {
			for _, class := range classes {
				t.Run(class, func(t *testing.T) { r.test(newWorld(t, class)) })
			}
		})
	}
}
