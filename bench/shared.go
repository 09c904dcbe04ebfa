package main

import (
	"fmt"
	"os"
	"sync/atomic"
	"unsafe"

	"golang.org/x/sys/unix"
)

// The words of the page that the processes of one run share. c/floor.c, the
// scripts and the program in peers/ have the same numbers.
const (
	wordGate    = 0  // when all start; 0 while the gate is shut
	wordStop    = 1  // when all stop
	wordCounter = 2  // stepped under the lock alone, and with plain loads and stores
	wordTurn    = 3  // handoff: the round that the holder has opened
	wordAsking  = 4  // handoff: the round in which the waiter is about to wait
	wordFreed   = 5  // handoff: when the holder began to let go
	wordGot     = 6  // handoff: when the waiter held
	wordSlots   = 64 // two words a worker, by its id: when it asked, when it held
	slots       = (pageBytes/8 - wordSlots) / 2
	pageBytes   = 4096
)

// sharedPage is a mapped file: what one process stores, the others load.
type sharedPage struct{ mem []byte }

func openPage(path string) (*sharedPage, error) {
	mem, err := mapFile(path, pageBytes)
	return &sharedPage{mem}, err
}

func (p *sharedPage) word(i int) *int64    { return (*int64)(unsafe.Pointer(&p.mem[8*i])) }
func (p *sharedPage) load(i int) int64     { return atomic.LoadInt64(p.word(i)) }
func (p *sharedPage) store(i int, v int64) { atomic.StoreInt64(p.word(i), v) }
func (p *sharedPage) close()               { _ = unix.Munmap(p.mem) }

func (p *sharedPage) asked(id int) int64   { return p.load(wordSlots + 2*id) }
func (p *sharedPage) entered(id int) int64 { return p.load(wordSlots + 2*id + 1) }
func (p *sharedPage) clear(id int) {
	p.store(wordSlots+2*id, 0)
	p.store(wordSlots+2*id+1, 0)
}

func (p *sharedPage) await(i int, v, every int64) {
	for p.load(i) != v {
		nap(every)
	}
}

// holdLog is one worker's passages: a count, then three stamps each.
type holdLog struct {
	mem  []byte
	n    int
	room int
}

const holdBytes = 24

func openLog(path string, room int) (*holdLog, error) {
	mem, err := mapFile(path, 8+room*holdBytes)
	return &holdLog{mem: mem, room: room}, err
}

func (l *holdLog) add(h hold) {
	if l.n < l.room {
		*(*hold)(unsafe.Pointer(&l.mem[8+l.n*holdBytes])) = h
	}
	l.n++
	*(*int64)(unsafe.Pointer(&l.mem[0])) = int64(l.n)
}

func (l *holdLog) read() ([]hold, error) {
	n := int(*(*int64)(unsafe.Pointer(&l.mem[0])))
	if n > l.room {
		return nil, fmt.Errorf("a worker passed %d times, and its log has room for %d", n, l.room)
	}
	out := make([]hold, n)
	for i := range out {
		out[i] = *(*hold)(unsafe.Pointer(&l.mem[8+i*holdBytes]))
	}
	return out, nil
}

func (l *holdLog) close() { _ = unix.Munmap(l.mem) }

func mapFile(path string, size int) ([]byte, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if st, err := f.Stat(); err != nil {
		return nil, err
	} else if st.Size() < int64(size) {
		if err := f.Truncate(int64(size)); err != nil {
			return nil, err
		}
	}
	mem, err := unix.Mmap(int(f.Fd()), 0, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		return nil, fmt.Errorf("map %s: %w", path, err)
	}
	return mem, nil
}
