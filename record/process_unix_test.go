//go:build unix

package record

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stile-lock/stile/internal/seam"
	"github.com/stile-lock/stile/lockfile"
)

func init() { children["stopped"] = childStopped }

// childStopped stops itself at a step of its first try, and says how often it has read: PATH STEP.
func childStopped(args []string) error {
	var once sync.Once
	reads := 0
	s := &seam.Set{OnStep: func(step seam.Step) {
		if step == seam.HoldRead {
			reads++
		}
		if string(step) == args[1] {
			once.Do(func() {
				// The signal may go to another thread, and this one go on for a while: it waits to be let go on.
				goesOn := make(chan os.Signal, 1)
				signal.Notify(goesOn, syscall.SIGCONT)
				syscall.Kill(syscall.Getpid(), syscall.SIGSTOP)
				<-goesOn
			})
		}
	}}
	err := Append(context.Background(), args[0], []byte(`"stopped"`), UpdateOptions{
		Lock: LockFile(lockfile.Options{NoSync: true, Timeout: time.Minute, Seams: s}), Seams: s,
	})
	fmt.Println("read", reads)
	return err
}

// Case 7: the holder is stopped, its lock forced away, another writes, the holder goes on. Its commit is
// refused and done again, and both records are there.
func TestCase07StoppedHolderForcedUnlock(t *testing.T) {
	for _, step := range []seam.Step{seam.AcquirePublished, seam.HoldRead, seam.CommitTempWritten} {
		t.Run(string(step), func(t *testing.T) {
			dir := t.TempDir()
			path := filepath.Join(dir, "f")
			put(t, path, "[\n]\n")
			c := startChild(t, "stopped", path, string(step))
			var status syscall.WaitStatus
			for {
				_, err := syscall.Wait4(c.cmd.Process.Pid, &status, syscall.WUNTRACED, nil)
				if err != syscall.EINTR {
					must(t, err)
					break
				}
			}
			if !status.Stopped() {
				t.Fatalf("the holder did not stop: %v", status)
			}
			lock := LockFile(lockfile.Options{NoSync: true, Timeout: -1})
			is(t, Append(t.Context(), path, []byte(`"early"`), UpdateOptions{Lock: lock}), lockfile.ErrHeld)
			var shown lockfile.State
			got, err := lockfile.Unlock(t.Context(), path, lockfile.UnlockOptions{Force: true, Show: func(s lockfile.State) { shown = s }})
			must(t, err)
			if !got.Removed || shown.Holder.PID != int64(c.cmd.Process.Pid) || shown.Holder.State != lockfile.Alive {
				t.Fatalf("unlock showed %+v and did %+v", shown, got)
			}
			must(t, Append(t.Context(), path, []byte(`"other"`), UpdateOptions{Lock: lock}))
			must(t, c.cmd.Process.Signal(syscall.SIGCONT))
			c.expect("read 2")
			holds(t, path, "[\n  \"other\",\n  \"stopped\"\n]\n")
			only(t, dir, "f")
		})
	}
}
