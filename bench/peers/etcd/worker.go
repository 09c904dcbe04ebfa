package main

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"time"
	"unsafe"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/concurrency"
	"golang.org/x/sys/unix"
)

// The words of the mapped page; bench/shared.go has the same numbers.
const (
	wordGate    = 0
	wordStop    = 1
	wordCounter = 2
	wordTurn    = 3
	wordSlots   = 64
	pageBytes   = 4096
)

// shortLease is the least that a server with etcd's defaults grants, in seconds. It is for the jobs in which a holder
// dies or is stopped; the others have the default of 60.
const shortLease = 2

type worker struct {
	key   map[string]string
	page  []byte
	mutex *concurrency.Mutex
	path  string
}

func (w *worker) word(i int) *int64        { return (*int64)(unsafe.Pointer(&w.page[8*i])) }
func (w *worker) load(i int) int64         { return atomic.LoadInt64(w.word(i)) }
func (w *worker) number(name string) int64 { n, _ := strconv.ParseInt(w.key[name], 10, 64); return n }

func work(job string, args []string) error {
	w := &worker{key: map[string]string{}}
	for _, a := range args {
		k, v, _ := strings.Cut(a, "=")
		w.key[k] = v
	}
	w.path = w.key["path"]
	f, err := os.OpenFile(w.key["page"], os.O_RDWR|os.O_CREATE, 0o600)
	if err == nil {
		err = f.Truncate(pageBytes)
	}
	if err != nil {
		return err
	}
	if w.page, err = unix.Mmap(int(f.Fd()), 0, pageBytes, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED); err != nil {
		return err
	}
	client, err := clientv3.New(clientv3.Config{Endpoints: []string{w.key["server"]}, DialTimeout: 10 * time.Second})
	if err != nil {
		return err
	}
	defer client.Close()
	var lease []concurrency.SessionOption
	switch job {
	case "enter", "pause", "second", "wrap":
		lease = append(lease, concurrency.WithTTL(shortLease))
	}
	session, err := concurrency.NewSession(client, lease...)
	if err != nil {
		return err
	}
	defer session.Close()
	w.mutex = concurrency.NewMutex(session, "/bench/"+filepath.Base(w.path))
	do := map[string]func() error{
		"contend": w.contend, "enter": w.enter, "queue": w.queue, "pause": w.pause, "second": w.second, "wrap": w.wrap,
	}[job]
	if do == nil {
		return fmt.Errorf("no job %q", job)
	}
	fmt.Println("ready")
	return do()
}

func (w *worker) lock() error   { return w.mutex.Lock(context.Background()) }
func (w *worker) unlock() error { return w.mutex.Unlock(context.Background()) }

func (w *worker) contend() error {
	for w.load(wordGate) == 0 {
		time.Sleep(100 * time.Microsecond)
	}
	for gate := w.load(wordGate); mono() < gate; {
	}
	var log []int64
	c0 := cpu()
	for stop := w.load(wordStop); ; {
		ask := mono()
		if ask >= stop {
			break
		}
		enter, leave, err := w.pass(w.number("hold"))
		if err != nil {
			return err
		}
		log = append(log, ask, enter, leave)
	}
	fmt.Println("cpu", cpu()-c0)
	return w.keep(log)
}

// pass steps the counter under the lock with a plain load and a plain store.
func (w *worker) pass(hold int64) (enter, leave int64, err error) {
	if err := w.lock(); err != nil {
		return 0, 0, err
	}
	enter = mono()
	seen := *w.word(wordCounter)
	if hold > 0 {
		ts := unix.NsecToTimespec(hold)
		_ = unix.Nanosleep(&ts, nil)
	}
	*w.word(wordCounter) = seen + 1
	return enter, mono(), w.unlock()
}

// keep writes the stamps as bench/shared.go reads them.
func (w *worker) keep(log []int64) error {
	data := binary.LittleEndian.AppendUint64(nil, uint64(len(log)/3))
	for _, v := range log {
		data = binary.LittleEndian.AppendUint64(data, uint64(v))
	}
	f, err := os.OpenFile(w.key["log"], os.O_WRONLY|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	return errors.Join(err, f.Close())
}

func (w *worker) slot() int { return wordSlots + 2*int(w.number("id")) }

// entered locks, and says in the slot when it asked and when it held.
func (w *worker) entered() error {
	atomic.StoreInt64(w.word(w.slot()), mono())
	err := w.lock()
	if err == nil {
		atomic.StoreInt64(w.word(w.slot()+1), mono())
	}
	return err
}

// enter holds until it is killed.
func (w *worker) enter() error {
	err := w.entered()
	if err == nil {
		time.Sleep(3 * time.Minute)
	}
	return err
}

// queue passes once.
func (w *worker) queue() error {
	ask := mono()
	enter, leave, err := w.pass(0)
	if err != nil {
		return err
	}
	return w.keep([]int64{ask, enter, leave})
}

func (w *worker) write(text string) error {
	temp := fmt.Sprintf("%s.new-%d", w.path, os.Getpid())
	if err := os.WriteFile(temp, []byte(text), 0o600); err != nil {
		return err
	}
	return os.Rename(temp, w.path)
}

// pause holds, is stopped, and writes when it runs again.
func (w *worker) pause() error {
	if err := w.entered(); err != nil {
		return err
	}
	for w.load(wordTurn) == 0 {
		time.Sleep(time.Millisecond)
	}
	if w.write("late\n") != nil {
		fmt.Println("refused 1")
	}
	_ = w.unlock() // its lease may be gone
	return nil
}

func (w *worker) second() error {
	atomic.StoreInt64(w.word(w.slot()), mono())
	err := w.lock()
	if err == nil {
		err = w.write("second\n")
	}
	if err != nil {
		return err
	}
	atomic.StoreInt64(w.word(w.slot()+1), mono())
	return w.unlock()
}

// wrap holds while its command runs.
func (w *worker) wrap() error {
	err := w.lock()
	if err == nil {
		err = exec.Command("sh", "-c", w.key["command"]).Run()
	}
	return errors.Join(err, w.unlock())
}

func mono() int64 {
	var ts unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_MONOTONIC, &ts)
	return ts.Nano()
}

func cpu() int64 {
	var ru unix.Rusage
	_ = unix.Getrusage(unix.RUSAGE_SELF, &ru)
	return ru.Utime.Nano() + ru.Stime.Nano()
}
