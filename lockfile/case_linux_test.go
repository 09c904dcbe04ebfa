package lockfile

import (
	"testing"

	"github.com/stile-lock/stile/internal/format"
	"github.com/stile-lock/stile/internal/proc"
)

// The machine was restarted, and the old pid is another program's (here this one's). On a folder that is this
// machine's alone the lock is broken at once; on any other it may be another machine's with our host name, and
// blocks. So it does for who cannot see that the pids are the machine's own.
func TestCase03MachineRestarted(t *testing.T) {
	eachClass(t, func(w *world) {
		self := proc.Self()
		if self.Proc == nil || self.Proc.BootID == "" {
			t.Fatal("this process has no boot to tell")
		}
		before := *self.Proc
		before.BootID = "00000000-0000-4000-8000-000000000000"
		l := format.Lock{PID: self.PID, Host: self.Host, Token: "0123456789abcdef01234567", Proc: &before}
		w.plant("log.lock", string(l.Encode()))
		local, kind, err := proc.FilesystemLocal(w.dir)
		w.nil(err)
		t.Logf("on %s, local %v", kind, local)
		if !local || !proc.InInitialPIDNamespace() {
			_ = w.refused(w.real(), Unknown)
			w.only("log.lock")
			return
		}
		w.update(w.real(), "a")
		w.records("a")
		w.only("log")
	})
}
