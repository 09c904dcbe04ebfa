package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// place is a folder to measure in, and what the tables call it.
type place struct {
	name string
	dir  string
}

// places are the bench's folder, the other kind of ext4 and, unless that is the same as the first, memory.
func (b *bench) places() []place {
	all := []place{{onDisk, b.dir}}
	if b.other.dir != "" && !b.brief {
		all = append(all, b.other)
	}
	if strings.HasPrefix(b.mem, "/dev/shm") {
		all = append(all, place{inMemory, b.mem})
	} else {
		b.book.missing("tmpfs: no /dev/shm")
	}
	return all
}

// crowded makes a folder with so many other files.
func crowded(parent string, others int) (string, error) {
	dir, err := os.MkdirTemp(parent, "folder-")
	for i := range others {
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, "other"+strconv.Itoa(i)+".json"), nil, 0o600)
		}
	}
	return dir, err
}

func (b *bench) fileCycle() {
	for _, p := range b.places() {
		// Two folders take turns: one is compared with the other. The large one has few rounds, since whoever lists it
		// takes tens of milliseconds for a cycle, and an image none: to fill it takes longer than to measure.
		b.fileCycles(p, b.pick(4, 1), 10, 1000)
		if p.name == inMemory || p.name == onDisk && !b.quick {
			b.fileCycles(p, b.pick(2, 1), 100_000)
		}
	}
}

func (b *bench) fileCycles(p place, rounds int, folders ...int) {
	dirs := map[int]string{}
	for _, others := range folders {
		dir, err := crowded(p.dir, others)
		if err != nil {
			b.book.broken("file-cycle: %v", err)
			return
		}
		defer os.RemoveAll(dir)
		dirs[others] = dir
	}
	b.rounds(rounds, []string{"lockfile", "c-lockfile", "proper-lockfile", "gofrs"}, func(id string) error {
		for _, others := range folders {
			n := b.pick(2000, 1000)
			switch {
			case others > 10_000 && (id == "lockfile" || id == "c-lockfile"):
				n = batches
			case others > 100:
				n /= 4
			}
			kase := fmt.Sprintf("%s, %d other files", p.name, others)
			if err := b.at(dirs[others]).cycleOnce("file-cycle", kase, id, n); err != nil {
				return err
			}
		}
		return nil
	})
}

func (b *bench) fileContend() {
	who := []string{"lockfile", "proper-lockfile", "gofrs"}
	long := time.Duration(b.pick(1000, 500)) * time.Millisecond
	short := time.Duration(b.pick(400, 200)) * time.Millisecond
	for _, p := range b.places() {
		there := b.at(p.dir)
		there.rounds(b.pick(3, 1), who, func(id string) error {
			before, err := there.crowd(id, 1, 0, short)
			if err != nil {
				return err
			}
			var crowds []crowdResult
			for _, n := range []int{2, 8} {
				got, err := there.crowd(id, n, 0, long)
				if err != nil {
					return err
				}
				crowds = append(crowds, got)
			}
			after, err := there.crowd(id, 1, 0, short)
			if err != nil {
				return err
			}
			for i, n := range []int{2, 8} {
				got, kase := crowds[i], fmt.Sprintf("%d processes, %s", n, p.name)
				b.book.add("file-contend", kase, id, "rate", "/s", got.rate)
				b.book.add("file-contend", kase, id, "of alone", "", got.rate/((before.rate+after.rate)/2))
				b.book.add("file-contend", kase, id, "slowest/fastest", "", got.evenness)
				b.book.add("file-contend", kase, id, "wait p50", "ms", got.p50)
				b.book.add("file-contend", kase, id, "p99", "ms", got.p99)
				b.book.add("file-contend", kase, id, "max", "ms", got.max)
				b.book.add("file-contend", kase, id, "cpu a cycle", "µs", got.cpu)
				if got.lost+got.overlaps > 0 {
					b.book.broken("file-contend: %s: %s: %d steps lost, %d holds overlapped", id, kase, got.lost, got.overlaps)
				}
			}
			return nil
		})
	}
}

func (b *bench) fileHandoff() { b.handoffs("file-handoff", []string{"lockfile", "gofrs", "gofrs-ctx"}) }

func (b *bench) fileKill() { b.kills("file-kill", []string{"lockfile", "gofrs"}) }
