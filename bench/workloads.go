package main

import (
	"slices"
)

// workload is one kind of work that every contestant does.
type workload struct {
	id    string
	title string
	what  string   // for the reader of the results
	bases []string // contestants whose first metric the others' is divided by
	run   func(*bench)
}

var workloads = []workload{
	{
		"cycle", "Uncontended cycle",
		"One process takes and releases a free lock, again and again: the median of 40 batches of a round. The processor time is of all of them.",
		[]string{"gofrs", "c-floor"}, (*bench).cycle,
	},
	{
		"handoff", "Handoff between two processes",
		"From just before the holder's release call to the return of the waiter's lock call in another process, which has waited 1 to 3 ms. Both stamps are CLOCK_MONOTONIC, through a mapped file.",
		[]string{"flock-go", "c-flock"}, (*bench).handoff,
	},
	{
		"wait", "A waiter of 5 s",
		"Processor time from before the lock call to its return (getrusage; for commands the scheduler's count between 0.3 s after the start and the release), and resident memory while waiting. All wait at once, each for a file of its own.",
		[]string{"flock-go"}, (*bench).wait,
	},
	{
		"contend", "Contending processes",
		"All go through one lock as fast as they can. The hold is nothing, or a nanosleep of 1 ms (about 1.06 ms with the timer's slack). Rates count the passages that ended in one window common to all; a wait that began in the window counts whole. \"of alone\" is the rate against one process of the same contestant alone, just before and just after, in the same round.",
		[]string{"gofrs", "flock-go"}, (*bench).contend,
	},
	{
		"run", "Run a command, whole process",
		"From posix_spawn to reaped, of the tool and of the command /bin/true under it.",
		[]string{"flock(1)"}, (*bench).runCommand,
	},
	{
		"kill", "Next holder after SIGKILL",
		"From the kill call on the holder to the return of the waiter's lock call.",
		[]string{"flock-go"}, (*bench).kill,
	},
	{
		"file-cycle", "Lock file: uncontended cycle",
		"One process takes and releases a free lock file without Sync, in a folder of its own and in one with 1,000 other files: the median of 40 batches of a round. `gofrs` takes a kernel lock, for scale.",
		[]string{"c-lockfile", "proper-lockfile"}, (*bench).fileCycle,
	},
	{
		"file-contend", "Lock file: contending processes",
		"As in \"Contending processes\", hold 0.",
		[]string{"proper-lockfile"}, (*bench).fileContend,
	},
	{
		"file-handoff", "Lock file: handoff between two processes",
		"As in \"Handoff between two processes\".",
		[]string{"gofrs"}, (*bench).fileHandoff,
	},
	{
		"file-kill", "Lock file: next holder after SIGKILL",
		"As in \"Next holder after SIGKILL\".",
		[]string{"gofrs"}, (*bench).fileKill,
	},
	{
		"file-waiters", "Lock file: 200 waiting processes",
		"Processor time of 200 processes that wait for one held lock, over 5 s, after 2 s of settling; then the holder is killed, and all go through, one after the other.",
		nil, (*bench).fileWaiters,
	},
	{
		"document", "A document of many writers",
		"8 processes add records of about 200 bytes to one JSON array until it has 2,000, without fsync. Every record that a worker reports must be there once.",
		[]string{"gofrs+json"}, (*bench).document,
	},
	{
		"append", "Append to a large document",
		"One process adds a record to a JSON array that has so many records.",
		[]string{"gofrs+json", "c-copy"}, (*bench).appendOnce,
	},
	{
		"dispatch", "Open a dispatch, whole process",
		"From posix_spawn to reaped, with 10,000 dispatches in the log and on the board, synced. `c-dispatch` does the same reads, writes, renames and fsyncs and knows nothing of JSON; `stile run` runs /bin/true and stands for what the tool's start takes. The goal is against the sum of the two.",
		[]string{"c-dispatch"}, (*bench).openDispatch,
	},
	{
		"lines", "Append a line",
		"Lines of 200 bytes; counted over one window that is common to all processes. Every line must be there, whole.",
		[]string{"sqlite-normal", "sqlite-full"}, (*bench).lines,
	},
	{
		"grant-command", "Grant: one command",
		"A heartbeat on an idle container, the store opened anew each time, page and folder synced.",
		nil, (*bench).grantCommand,
	},
	{
		"grant-contend", "Grant: contending processes",
		"A passage is lock and unlock: one after the other acquires, lands and releases, since no grant is released without a landing. That is three revisions, each two fsyncs before it is answered; `grant+empty` stores a manifest besides, two more. Nobody petitions: who waits stands in line on this host (`LineUp`) until it has released. `lockfile`, not synced, for scale. etcd's own Mutex gave 83 passages a second to 8 clients on such a machine.",
		nil, (*bench).grantContend,
	},
	{
		"grant-status", "Grant: status of an estate",
		"List the containers and read the head of each, by its hint, in one process. The pages before the last are names only.",
		nil, (*bench).grantStatus,
	},
	{
		"register-land", "Register: a small landing",
		"A landing of 1 KiB, and in turn with it a heartbeat on the same grant; the store opened anew each time, all synced.",
		nil, (*bench).registerLand,
	},
	{
		"register-large", "Register: a large landing",
		"A landing of 1 GiB of a file that was just written, synced; and `sha256sum`, `cp` and `sync` in sequence on it.",
		nil, (*bench).registerLarge,
	},
	{
		"register-log", "Register: a long log",
		"Go through all landings of a grant, the store opened anew, each page checked by its hash.",
		nil, (*bench).registerLog,
	},
}

const us = 1e3 // ns

func (b *bench) cycle() {
	n := b.pick(20000, 5000)
	who := []string{
		"kernlock", "kernlock+record", "kernlock-once", "kernlock+record-once",
		"gofrs", "lockedfile", "flock-go", "flock-go-kept", "c-flock", "c-floor", "c-floor+record",
	}
	b.rounds(b.pick(15, 5), who, func(id string) error { return b.cycleOnce("cycle", "", id, n) })
}

func (b *bench) cycleOnce(workload, kase, id string, n int) error {
	j, err := b.fresh("cycle", id)
	if err != nil {
		return err
	}
	defer b.discard(j)
	j.n = n
	w, err := b.startReady(j)
	if err != nil {
		return err
	}
	got, err := w.finish()
	if err != nil {
		return err
	}
	b.book.add(workload, kase, id, "time", "µs", got["ns"]/float64(n)/us)
	b.book.add(workload, kase, id, "cpu", "µs", got["cpu"]/float64(n)/us)
	b.book.add(workload, kase, id, "allocations", "", got["allocs"]/float64(n))
	return nil
}

// rounds runs do for each contestant in turn, n times over. The first to go
// changes from round to round. A contestant that fails is named and left out
// of the later rounds.
func (b *bench) rounds(n int, who []string, do func(id string) error) {
	out := map[string]bool{}
	for r := range n {
		for i := range who {
			id := who[(i+r)%len(who)]
			if out[id] || !b.can(id) {
				continue
			}
			if err := do(id); err != nil {
				out[id] = true
				b.book.broken("%s: %v", id, err)
				b.logf("  %s: %v", id, err)
			}
		}
	}
}

func (b *bench) handoff() {
	b.handoffs("handoff", []string{
		"kernlock", "kernlock+record", "gofrs", "gofrs-ctx", "lockedfile", "flock-go", "flock-go-kept", "c-flock",
	})
}

func (b *bench) handoffs(workload string, who []string) {
	n := b.pick(200, 60)
	b.rounds(b.pick(7, 3), who, func(id string) error {
		j, err := b.fresh("hand-over", id)
		if err != nil {
			return err
		}
		defer b.discard(j)
		j.n, j.room = n, n
		giver, err := b.startReady(j)
		if err != nil {
			return err
		}
		j.name, j.log = "take-over", j.page+".log"
		taker, err := b.startReady(j)
		if err != nil {
			giver.kill()
			return err
		}
		if _, err = taker.finish(); err != nil {
			giver.kill()
			return err
		}
		if _, err = giver.finish(); err != nil {
			return err
		}
		log, err := openLog(j.log, j.room)
		if err != nil {
			return err
		}
		defer log.close()
		hs, err := log.read()
		if err != nil {
			return err
		}
		var took []float64
		for _, h := range hs {
			if h.enter < h.ask {
				b.book.broken(workload+": %s: the waiter held before the holder let go", id)
			}
			took = append(took, float64(h.enter-h.ask))
		}
		slices.Sort(took)
		b.book.add(workload, "", id, "p50", "µs", percentile(took, 50)/us)
		b.book.add(workload, "", id, "p99", "µs", percentile(took, 99)/us)
		b.book.add(workload, "", id, "max", "µs", percentile(took, 100)/us)
		return nil
	})
}
