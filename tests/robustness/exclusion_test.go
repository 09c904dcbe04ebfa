//go:build unix

package robustness

import (
	"bufio"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stile-lock/stile/kernlock"
)

// hammer acquires and releases its target until its time is up. In each hold
// it appends "enter" and "leave" to a log, whose order the kernel decides,
// and adds one to a counter by reading and writing it.
//
// Arguments: target, log, counter, duration, mode; mode "oneshot" opens the
// lock anew each time, "handle" keeps a handle.
func hammer(args []string) error {
	target, counter, mode := args[0], args[2], args[4]
	d, err := time.ParseDuration(args[3])
	if err != nil {
		return err
	}
	log, err := os.OpenFile(args[1], os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	opts := kernlock.Options{Timeout: time.Minute}
	h, err := kernlock.Open(target, opts)
	if err != nil {
		return err
	}
	for end := time.Now().Add(d); time.Now().Before(end); {
		var l *kernlock.Lock
		if mode == "handle" {
			l, err = h.Acquire(context.Background())
		} else {
			l, err = kernlock.Acquire(context.Background(), target, opts)
		}
		if err != nil {
			return err
		}
		if err := inside(log, counter); err != nil {
			return err
		}
		if err := l.Fence(); err != nil {
			return err
		}
		if err := l.Release(); err != nil {
			return err
		}
	}
	return nil
}

func inside(log *os.File, counter string) error {
	pid := os.Getpid()
	if _, err := fmt.Fprintf(log, "enter %d\n", pid); err != nil {
		return err
	}
	b, err := os.ReadFile(counter)
	if err != nil {
		return err
	}
	n, err := strconv.Atoi(strings.TrimSpace(string(b)))
	if err != nil {
		return fmt.Errorf("counter is torn: %q", b)
	}
	// In place and of one length: a kill leaves the old or the new number.
	f, err := os.OpenFile(counter, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	if _, err := fmt.Fprintf(f, "%12d", n+1); err != nil {
		return err
	}
	if err := f.Close(); err != nil {
		return err
	}
	_, err = fmt.Fprintf(log, "leave %d\n", pid)
	return err
}

// nightly is d, or the long form where the long tests are asked for.
func nightly(d, long time.Duration) time.Duration {
	if os.Getenv("STILE_NIGHTLY") != "" {
		return long
	}
	return d
}

// judgeLog looks for two holds that overlap. A hold without a leave is
// allowed to those that were killed alone. It returns how many were entered
// and how many were cut off.
func judgeLog(lines []string, killed map[string]bool) (entered, cut int, err error) {
	inside := ""
	for i, line := range lines {
		verb, pid, ok := strings.Cut(line, " ")
		switch {
		case !ok:
			return 0, 0, fmt.Errorf("line %d is torn: %q", i+1, line)
		case verb == "enter" && inside != "" && !killed[inside]:
			return 0, 0, fmt.Errorf("line %d: %s entered while %s was inside", i+1, pid, inside)
		case verb == "enter":
			if inside != "" {
				cut++
			}
			inside = pid
			entered++
		case verb == "leave" && inside != pid:
			return 0, 0, fmt.Errorf("line %d: %s left while %q was inside", i+1, pid, inside)
		default:
			inside = ""
		}
	}
	if inside != "" && !killed[inside] {
		return 0, 0, fmt.Errorf("%s entered and never left", inside)
	}
	if inside != "" {
		cut++
	}
	return entered, cut, nil
}

func TestJudgeLogCatchesOverlap(t *testing.T) {
	for _, c := range []struct {
		name, log string
		killed    string
		ok        bool
	}{
		{"in turn", "enter 1,leave 1,enter 2,leave 2", "", true},
		{"overlap", "enter 1,enter 2,leave 1,leave 2", "", false},
		{"inside twice", "enter 1,enter 2,leave 2", "", false},
		{"killed inside", "enter 1,enter 2,leave 2", "1", true},
		{"killed, and left all the same", "enter 1,enter 2,leave 1", "1", false},
		{"never left", "enter 1", "", false},
		{"torn", "enter 1,lea", "", false},
	} {
		_, _, err := judgeLog(strings.Split(c.log, ","), map[string]bool{c.killed: c.killed != ""})
		if (err == nil) != c.ok {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}

// TestExclusionOf16Processes has sixteen processes contend, and kills some of
// them at random moments while others take their place.
func TestExclusionOf16Processes(t *testing.T) {
	for _, mode := range []string{"handle", "oneshot"} {
		for _, kills := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s,kills=%t", mode, kills), func(t *testing.T) {
				exclusion(t, mode, kills, nightly(750*time.Millisecond, 15*time.Second))
			})
		}
	}
}

func exclusion(t *testing.T, mode string, kills bool, d time.Duration) {
	dir := t.TempDir()
	target, log, counter := filepath.Join(dir, "f"), filepath.Join(dir, "log"), filepath.Join(dir, "n")
	for path, text := range map[string]string{log: "", counter: fmt.Sprintf("%12d", 0)} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	end := time.Now().Add(d)
	killed := map[string]bool{}
	var mu sync.Mutex
	var wg sync.WaitGroup
	for range 16 {
		wg.Go(func() {
			for {
				left := time.Until(end)
				if left <= 0 {
					return
				}
				c := startChild(t, "hammer", target, log, counter, left.String(), mode)
				if !kills {
					if err := c.cmd.Wait(); err != nil {
						t.Errorf("hammer: %v", err)
					}
					return
				}
				// How long it lives is the random part, not a wait for anything.
				<-time.After(rand.N(100 * time.Millisecond))
				mu.Lock()
				killed[strconv.Itoa(c.cmd.Process.Pid)] = true
				mu.Unlock()
				c.kill()
			}
		})
	}
	wg.Wait()

	lines := readLines(t, log)
	entered, cut, err := judgeLog(lines, killed)
	if err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(counter)
	if err != nil {
		t.Fatal(err)
	}
	n, err := strconv.Atoi(strings.TrimSpace(string(b)))
	if err != nil || n > entered || n < entered-cut {
		t.Fatalf("counter is %q after %d holds, %d of them cut off", b, entered, cut)
	}
	if entered == 0 {
		t.Fatal("nobody ever entered")
	}
	t.Logf("%d holds, %d cut off by a kill", entered, cut)
	// The lock is free at once, and its file is still there.
	l, dup, err := kernlock.TryAcquire(target, kernlock.Options{})
	if err != nil || dup != nil {
		t.Fatalf("after all have ended: %v, %v", dup, err)
	}
	if err := l.Release(); err != nil {
		t.Fatal(err)
	}
}

func readLines(t *testing.T, path string) []string {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var all []string
	s := bufio.NewScanner(f)
	for s.Scan() {
		all = append(all, s.Text())
	}
	if err := s.Err(); err != nil {
		t.Fatal(err)
	}
	return all
}
