package record

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/stile-lock/stile/internal/seam"
	"github.com/stile-lock/stile/internal/vfs"
	"github.com/stile-lock/stile/internal/vfs/vfstest"
	"github.com/stile-lock/stile/kernlock"
	"github.com/stile-lock/stile/lockfile"
)

// lockNamed is the lock that a child is told to use.
func lockNamed(family string, s *seam.Set) Lock {
	if family == "lock file" {
		return LockFile(lockfile.Options{NoSync: true, Timeout: time.Minute, Seams: s})
	}
	return KernelLock(kernlock.Options{Timeout: time.Minute})
}

// childIncrement adds 1 to each of its keys in turn: PATH FAMILY NAME TIMES.
func childIncrement(args []string) error {
	times, err := strconv.Atoi(args[3])
	if err != nil {
		return err
	}
	o := UpdateOptions{Lock: lockNamed(args[1], nil), NoSync: true, Create: true}
	for i := range times {
		key := fmt.Sprintf("%s.%d", args[2], i%4)
		err := Update(context.Background(), args[0], func(old []byte) ([]byte, error) {
			m := map[string]int{}
			if len(old) > 0 {
				if err := json.Unmarshal(old, &m); err != nil {
					return nil, err
				}
			}
			m[key]++
			return json.MarshalIndent(m, "", "  ")
		}, o)
		if err != nil {
			return err
		}
	}
	fmt.Println("done")
	return nil
}

// Case 28: ten sessions, one settings file, 200 increments of distinct keys each, and a reader.
func TestCase28TenSessionsOneSettingsFile(t *testing.T) {
	for _, l := range locks {
		t.Run(l.name, func(t *testing.T) {
			const sessions, times = 10, 200
			dir := t.TempDir()
			path := filepath.Join(dir, "f")
			put(t, path, "{}")
			stop := make(chan struct{})
			var reader sync.WaitGroup
			reader.Go(func() {
				last := 0
				for {
					data, err := os.ReadFile(path)
					m := map[string]int{}
					if err == nil {
						err = json.Unmarshal(data, &m)
					}
					sum := 0
					for n := range maps.Values(m) {
						sum += n
					}
					if err != nil || sum < last {
						t.Errorf("the reader saw %q, %v, after %d increments", data, err, last)
						return
					}
					last = sum
					select {
					case <-stop:
						return
					default:
					}
				}
			})
			var all []*child
			for i := range sessions {
				all = append(all, startChild(t, "increment", path, l.name, fmt.Sprintf("s%d", i), strconv.Itoa(times)))
			}
			for _, c := range all {
				c.expect("done")
			}
			close(stop)
			reader.Wait()
			m := map[string]int{}
			must(t, json.Unmarshal([]byte(get(t, path)), &m))
			for i := range sessions {
				for k := range 4 {
					if key := fmt.Sprintf("s%d.%d", i, k); m[key] != times/4 {
						t.Errorf("%s is %d, want %d", key, m[key], times/4)
					}
				}
			}
			only(t, dir, append(l.leaves, "f")...)
		})
	}
}

// childKilled appends a record and dies at an operation: PATH FAMILY OPERATION.
func childKilled(args []string) error {
	at, err := strconv.Atoi(args[2])
	if err != nil {
		return err
	}
	n := 0
	s := &seam.Set{FS: vfstest.Wrap(vfs.OS(), func(vfstest.Op) error {
		if n == at {
			p, _ := os.FindProcess(os.Getpid())
			p.Kill()
			select {}
		}
		n++
		return nil
	})}
	err = Append(context.Background(), args[0], []byte(`"killed"`), UpdateOptions{Lock: lockNamed(args[1], s), Seams: s})
	if err == nil {
		fmt.Println("landed")
	}
	return err
}

// A writer is killed before each file operation of its change, the real process on the real files. The
// next writer gets in at once, no record that was there is missing, and nothing is left behind.
func TestKilledAtEveryOperation(t *testing.T) {
	for _, l := range locks {
		t.Run(l.name, func(t *testing.T) {
			for n := 0; ; n++ {
				dir := t.TempDir()
				path := filepath.Join(dir, "f")
				put(t, path, "[\n  \"old\"\n]\n")
				c := startChild(t, "killed", path, l.name, strconv.Itoa(n))
				line, _ := c.out.ReadString('\n')
				c.cmd.Wait()
				killed := line == ""
				before, ok := decode([]byte(get(t, path)))
				if !ok || len(before) == 0 || before[0] != "old" || !killed && len(before) != 2 {
					t.Fatalf("operation %d: the file holds %q", n, get(t, path))
				}
				must(t, Append(t.Context(), path, []byte(`"next"`), UpdateOptions{Lock: l.lock, NoSync: true}))
				after, ok := decode([]byte(get(t, path)))
				if !ok || fmt.Sprint(after) != fmt.Sprint(append(before, "next")) {
					t.Fatalf("operation %d: %v became %v", n, before, after)
				}
				only(t, dir, append(l.leaves, "f")...)
				if !killed {
					if n < 8 {
						t.Errorf("killed at %d operations only", n)
					}
					return
				}
			}
		})
	}
}

// childAppend appends numbered records until it is killed, and says which have landed: PATH FAMILY NAME.
func childAppend(args []string) error {
	o := UpdateOptions{Lock: lockNamed(args[1], nil), NoSync: true}
	lines := args[1] == "lines"
	l, err := OpenLines(args[0], LineOptions{Lock: kernlock.Options{Timeout: time.Minute}})
	if err != nil {
		return err
	}
	for i := 0; ; i++ {
		rec := fmt.Appendf(nil, "%q", fmt.Sprintf("%s.%d", args[2], i))
		if lines {
			err = l.Append(context.Background(), rec)
		} else {
			err = Append(context.Background(), args[0], rec, o)
		}
		if err != nil {
			return err
		}
		fmt.Println(i)
	}
}

// Writers are killed at random while others write. What they said had landed is there once, in order,
// and of each at most one record more.
func TestKilledAtRandom(t *testing.T) {
	rounds := 12
	if testing.Short() {
		rounds = 3
	}
	for _, family := range []string{"kernel lock", "lock file", "lines"} {
		t.Run(family, func(t *testing.T) {
			dir := t.TempDir()
			path := filepath.Join(dir, "f")
			landed := map[string]int{}
			for round := range rounds {
				var all []*child
				var names []string
				for i := range 3 {
					name := fmt.Sprintf("r%d-%d", round, i)
					names = append(names, name)
					all = append(all, startChild(t, "append", path, family, name))
				}
				// Each is killed when it has said a few: at a point of the next that depends on
				// everything else.
				for i, c := range all {
					for range 3 + 5*i + round {
						if line, err := c.out.ReadString('\n'); err != nil {
							t.Fatalf("a writer ended: %q %v", line, err)
						}
						landed[names[i]]++
					}
					c.cmd.Process.Kill()
					for {
						line, err := c.out.ReadString('\n')
						if err != nil || line == "" {
							break
						}
						landed[names[i]]++
					}
					c.cmd.Wait()
				}
			}
			var records []any
			if family == "lines" {
				must(t, AppendLine(t.Context(), path, []byte(`"last"`), LineOptions{}))
				records = wholeLines(t, path)
			} else {
				must(t, Append(t.Context(), path, []byte(`"last"`), UpdateOptions{Lock: lockNamed(family, nil)}))
				var ok bool
				if records, ok = decode([]byte(get(t, path))); !ok {
					t.Fatalf("the file is torn: %q", get(t, path))
				}
			}
			next := map[string]int{}
			for _, r := range records[:len(records)-1] {
				var name string
				var n int
				for i, c := range fmt.Sprint(r) {
					if c == '.' {
						name = fmt.Sprint(r)[:i]
						n, _ = strconv.Atoi(fmt.Sprint(r)[i+1:])
					}
				}
				if n != next[name] {
					t.Fatalf("%s: record %d, want %d", name, n, next[name])
				}
				next[name]++
			}
			for name, n := range landed {
				if next[name] < n || next[name] > n+1 {
					t.Errorf("%s: said that %d had landed, %d are there", name, n, next[name])
				}
			}
			want := []string{"f"}
			if family != "lock file" {
				want = append(want, "f.lock")
			}
			only(t, dir, want...)
		})
	}
}

// wholeLines reads the lines that are records. A writer that was killed in a write leaves part of a line,
// which the next has closed.
func wholeLines(t *testing.T, path string) []any {
	t.Helper()
	var records []any
	data := get(t, path)
	start := 0
	for i := range len(data) {
		if data[i] != '\n' {
			continue
		}
		var v any
		if err := json.Unmarshal([]byte(data[start:i]), &v); err == nil {
			records = append(records, v)
		}
		start = i + 1
	}
	if start != len(data) {
		t.Errorf("the last line is torn: %q", data[start:])
	}
	return records
}
