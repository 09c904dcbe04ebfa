package lockfile

import (
	"testing"

	"github.com/stile-lock/stile/internal/seam"
)

// row is one row of the specification's table of states and crash points.
type row struct {
	name string
	test func(*world)
}

// matrix has every row, in the table's order, under the name that the test and the generated page
// give it.
var matrix = []row{
	{"free", testFree},
	{"live holder, short", testLiveShort},
	{"live holder of any age", testLiveAnyAge},
	{"dead holder on this host", testDeadHolder},
	{"empty or unreadable lock", testUnreadable},
	{"holder on another host", testOtherHost},
	{"holder whose pid is reused", testReusedPID},
	{"skewed times", testSkewedTimes},
	{"two breakers of one dead lock", testTwoBreakers},
	{"breaker judged a lock since replaced", testJudgedReplaced},
	{"breaker stalled with its claim", testBreakerStalled},
	{"eight writers against a dead lock", testEightWriters},
	{"link fails", testLinkFails},
	{"publish fails after its exclusive step", testPublishFails},
	{"releaser stalled", testReleaserStalled},
	{"releaser resumes in a fence window", testReleaserInWindow},
	{"sweeper stalled", testSweeperStalled},
	{"unlock with no lock", testUnlockNone},
	{"unlock on a dead holder", testUnlockDead},
	{"unlock on a holder not provably dead", testUnlockRefused},
	{"unlock force", testUnlockForce},
	{"lock lost under a holder", testLost},
	{"board check with a held lock", testBoardCheck},
	{"board write after the lock is lost", testBoardWrite},
	{"earlier leftovers of a dead owner", testEarlierDead},
	{"leftovers of an owner not provably dead", testLeftoversStay},
	{"names unique per attempt", testUniqueNames},
	{"kill at acquire:pending", kill(seam.AcquirePending, nil, nil)},
	{"kill at acquire:opened", killAcquireOpened},
	{"kill at acquire:published", kill(seam.AcquirePublished, nil, nil)},
	{"kill at sweep:judged", kill(seam.SweepJudged, plantLeftover, nil)},
	{"kill at break:judged", kill(seam.BreakJudged, plantDead, nil)},
	{"kill at break:claimed", kill(seam.BreakClaimed, plantDead, nil)},
	{"kill at break:confirmed", kill(seam.BreakConfirmed, plantDead, nil)},
	{"kill at break:renamed", kill(seam.BreakRenamed, plantDead, nil)},
	{"kill at break:removed", kill(seam.BreakRemoved, plantDead, nil)},
	{"kill at break:mismatch", killMismatch(seam.BreakMismatch)},
	{"kill at break:put-back-opened", killPutBackOpened(seam.BreakPutBackOpened, seam.BreakPutBack)},
	{"kill at break:put-back", killMismatch(seam.BreakPutBack)},
	{"kill at hold:read", kill(seam.HoldRead, nil, nil)},
	{"kill at commit:temp-written", kill(seam.CommitTempWritten, nil, nil)},
	{"kill at commit:fenced", kill(seam.CommitFenced, nil, nil)},
	{"kill at commit:renamed", kill(seam.CommitRenamed, nil, []string{"child"})},
	{"kill at release:renamed", kill(seam.ReleaseRenamed, nil, []string{"child"})},
	{"kill at release:removed", kill(seam.ReleaseRemoved, nil, []string{"child"})},
	{"kill at release:mismatch", killMismatch(seam.ReleaseMismatch)},
	{"kill at release:put-back-opened", killPutBackOpened(seam.ReleasePutBackOpened, seam.ReleasePutBack)},
	{"kill at release:put-back", killMismatch(seam.ReleasePutBack)},
	{"kill in unlock", killUnlock},
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
