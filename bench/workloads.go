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
		[]string{"kernlock", "gofrs", "c-floor"}, (*bench).cycle,
	},
	{
		"handoff", "Handoff between two processes",
		"From just before the holder's release call to the return of the waiter's lock call in another process, which has waited 1 to 3 ms. Both stamps are CLOCK_MONOTONIC, through a mapped file.",
		[]string{"kernlock", "flock-go", "c-flock"}, (*bench).handoff,
	},
	{
		"wait", "A waiter of 5 s",
		"Processor time from before the lock call to its return (getrusage; for commands the scheduler's count between 0.3 s after the start and the release), and resident memory while waiting. All wait at once, each for a file of its own.",
		[]string{"flock-go"}, (*bench).wait,
	},
	{
		"contend", "Contending processes",
		"All go through one lock as fast as they can. The hold is nothing, or a nanosleep of 1 ms (about 1.06 ms with the timer's slack). Rates count the passages that ended in one window common to all; a wait that began in the window counts whole. \"of alone\" is the rate against one process of the same contestant alone, just before and just after, in the same round.",
		[]string{"kernlock", "gofrs", "flock-go"}, (*bench).contend,
	},
	{
		"run", "Run a command, whole process",
		"From posix_spawn to reaped, of the tool and of the command /bin/true under it.",
		[]string{"stile run", "flock(1)"}, (*bench).runCommand,
	},
	{
		"kill", "Next holder after SIGKILL",
		"From the kill call on the holder to the return of the waiter's lock call.",
		[]string{"kernlock", "flock-go"}, (*bench).kill,
	},
	{
		"file-cycle", "Lock file: uncontended cycle",
		"One process takes and releases a free lock file without Sync, in a folder with 10, 1,000 and 100,000 other files: the median of 40 batches of a round. `gofrs` takes a kernel lock, for scale.",
		[]string{"lockfile", "c-lockfile", "proper-lockfile"}, (*bench).fileCycle,
	},
	{
		"file-contend", "Lock file: contending processes",
		"As in \"Contending processes\", hold 0.",
		[]string{"lockfile", "proper-lockfile"}, (*bench).fileContend,
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
		"waiters", "10, 100 and 1,000 waiters on one lock",
		"Processes that come one after the other and wait for one held lock: the processor time of all of them, over some seconds, after some settling; by how many places one was served out of its order of arrival, as a part of all, at most and in the mean (one place is none); the largest resident memory. Then the holder is killed (`stile run`: its command ends), and all must go through, each once. The library's waiters are this program, with its drivers of databases in it; `stile run` is the tool as it ships.",
		nil, (*bench).waiters,
	},
	{
		"recover", "Next holder after SIGKILL, with eight waiters",
		"From the kill call on the holder to the stamp of the next one, while seven others go on waiting. Whoever holds besides the next one counts as a double holder. `proper-lockfile` takes a lock to be stale after 2 s and etcd ends a session after 2 s, the shortest that either has.",
		[]string{"kernlock", "c-flock"}, (*bench).recovery,
	},
	{
		"paused", "A holder that is stopped past every timeout",
		"The holder gets SIGSTOP for at most 5 s, another waits for its lock, writes, and lets go; then the first runs again and writes, between two lines of its program. 1 is yes. \"newer write lost\": the late write landed over the other's. Where nobody else could hold meanwhile, the late write is the holder's own good right. `lockfile, cleared`: an operator has taken the lock away by force. `grant`: a life of 1 s, and the write is a landing. etcd's lock guards a file here; what is in etcd itself could be fenced by `IsOwner`.",
		nil, (*bench).paused,
	},
	{
		"wrapped", "A killed wrapper whose command still runs",
		"A program takes the lock and runs a command under it; it gets SIGKILL, its command lives on. Does another's command start beside it (1 is yes), and how long after the end of the command does it start otherwise? `-o` keeps the lock from the command. `gofrs`, `lockedfile`, `filelock`, `proper-lockfile` and `etcd` are programs that hold their lock while they run a command with what their language offers.",
		nil, (*bench).wrapped,
	},
	{
		"document", "A document of many writers",
		"8 processes add records of about 200 bytes to one JSON array until it has 2,000 (the quick run: 500), without fsync. Every record that a worker reports must be there once.",
		[]string{"record.Append", "gofrs+json"}, (*bench).document,
	},
	{
		"append", "Append to a large document",
		"One process adds a record to a JSON array that has so many records.",
		[]string{"record.Append", "gofrs+json", "c-copy"}, (*bench).appendOnce,
	},
	{
		"dispatch", "Open a dispatch, whole process",
		"From posix_spawn to reaped, with 10,000 dispatches in the log and on the board, synced. `c-dispatch` does the same reads, writes, renames and fsyncs and knows nothing of JSON; `stile run` runs /bin/true and stands for what the tool's start takes. The goal is against the sum of the two.",
		[]string{"c-dispatch"}, (*bench).openDispatch,
	},
	{
		"lines", "Append a line",
		"Lines of 200 bytes; counted over one window that is common to all processes. Every line must be there, whole.",
		[]string{"record.Lines", "sqlite-normal", "sqlite-full"}, (*bench).lines,
	},
	{
		"grant-command", "Grant: one command",
		"A heartbeat on an idle container, the store opened anew each time, page and folder synced.",
		nil, (*bench).grantCommand,
	},
	{
		"grant-contend", "Grant: contending processes",
		"A passage is lock and unlock: one after the other acquires, lands and releases, since no grant is released without a landing. That is three revisions, each two fsyncs before it is answered; `grant+empty` stores a manifest besides, two more. Nobody petitions: who waits stands in line on this host (`LineUp`) until it has released. `lockfile`, not synced, for scale. `etcd`: lock and unlock of its Mutex, each client with a session of its own; the server syncs each change.",
		[]string{"grant", "etcd"}, (*bench).grantContend,
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
	n := b.pick(150, 60)
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
