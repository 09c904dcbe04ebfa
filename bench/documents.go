package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"

	gofrs "github.com/gofrs/flock"
	"github.com/rogpeppe/go-internal/lockedfile"

	"github.com/stile-lock/stile/kernlock"
	"github.com/stile-lock/stile/lockfile"
	"github.com/stile-lock/stile/record"
)

// row is one record of a document. The scripts in peers/ make the same.
type row struct {
	Worker int    `json:"worker"`
	Seq    int    `json:"seq"`
	At     string `json:"at"`
	Task   string `json:"task"`
	Status string `json:"status"`
}

func newRow(worker, seq int) row {
	return row{worker, seq, "2026-01-02T03:04:05.678Z", "a record of two hundred bytes, the size of a line in the other workload: what somebody was asked to do, in plain words", "open"}
}

// docOpener gives the function that adds a row to the document at path. It
// says false, and adds nothing, when there are limit rows already.
type docOpener func(path string, limit int, page *sharedPage) (func(row) (bool, error), error)

// appended decodes a document, adds a row and encodes it again.
func appended(data []byte, limit int, r row) (out []byte, more bool, err error) {
	var rows []row
	if err := json.Unmarshal(data, &rows); err != nil {
		return nil, false, err
	}
	if len(rows) >= limit {
		return data, false, nil
	}
	out, err = json.Marshal(append(rows, r))
	return out, true, err
}

var (
	plainLock     = kernlock.Options{NoRecord: true, Timeout: foreverish}
	underLockFile = record.UpdateOptions{
		NoSync: true, Lock: record.LockFile(lockfile.Options{NoSync: true, Timeout: foreverish}),
	}
)

// openAppend does not decode the document, so it cannot count the rows: they
// are counted in the page, in the hold. At the end each worker may have one
// too many under way.
func openAppend(o record.UpdateOptions) docOpener {
	return func(path string, limit int, page *sharedPage) (func(row) (bool, error), error) {
		if o.Lock == nil {
			o.Lock = record.KernelLock(plainLock)
		}
		o.AfterWrite = func(context.Context, record.Hold) error {
			page.store(wordCounter, page.load(wordCounter)+1)
			return nil
		}
		return func(r row) (bool, error) {
			if page.load(wordCounter) >= int64(limit) {
				return false, nil
			}
			data, err := json.Marshal(r)
			if err == nil {
				err = record.Append(context.Background(), path, data, o)
			}
			return err == nil, err
		}, nil
	}
}

func openLockFileJSON(path string, limit int, _ *sharedPage) (func(row) (bool, error), error) {
	return func(r row) (more bool, err error) {
		h, err := lockfile.Acquire(context.Background(), path, lockfile.Options{NoSync: true, Timeout: foreverish})
		if err != nil {
			return false, err
		}
		defer func() {
			if rerr := h.Release(); err == nil {
				err = rerr
			}
		}()
		data, err := h.Read()
		if err != nil {
			return false, err
		}
		out, more, err := appended(data, limit, r)
		if err == nil && more {
			err = h.Commit(out)
		}
		return more, err
	}, nil
}

func openGofrsJSON(path string, limit int, _ *sharedPage) (func(row) (bool, error), error) {
	return gofrsJSON(path, limit, func(from, to string) error { return os.Rename(from, to) })
}

// openGofrsJSONSync does what a careful program does besides: it syncs the new file and the folder.
func openGofrsJSONSync(path string, limit int, _ *sharedPage) (func(row) (bool, error), error) {
	return gofrsJSON(path, limit, func(from, to string) error {
		err := syncPath(from)
		if err == nil {
			err = os.Rename(from, to)
		}
		if err == nil {
			err = syncPath(filepath.Dir(to))
		}
		return err
	})
}

func syncPath(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

func gofrsJSON(path string, limit int, rename func(from, to string) error) (func(row) (bool, error), error) {
	f := gofrs.New(path + ".lock")
	temp := fmt.Sprintf("%s.new-%d", path, os.Getpid())
	return func(r row) (more bool, err error) {
		if err := f.Lock(); err != nil {
			return false, err
		}
		defer func() {
			if uerr := f.Unlock(); err == nil {
				err = uerr
			}
		}()
		data, err := os.ReadFile(path)
		if err != nil {
			return false, err
		}
		out, more, err := appended(data, limit, r)
		if err != nil || !more {
			return false, err
		}
		if err := os.WriteFile(temp, out, 0o600); err != nil {
			return false, err
		}
		return true, rename(temp, path)
	}, nil
}

func openTransform(path string, limit int, _ *sharedPage) (func(row) (bool, error), error) {
	return func(r row) (more bool, err error) {
		err = lockedfile.Transform(path, func(data []byte) (out []byte, err error) {
			out, more, err = appended(data, limit, r)
			return out, err
		})
		return more, err
	}, nil
}

// workDoc adds rows until the document has n of them (job doc) or n rows
// (job doc-once).
func workDoc(j job, open docOpener, page *sharedPage, ready func(), say func(string, int64)) error {
	limit, once := j.n, j.name == "doc-once"
	if once {
		limit = math.MaxInt
	}
	add, err := open(j.path, limit, page)
	if err != nil {
		return err
	}
	ready()
	if !once {
		for page.load(wordGate) == 0 {
			nap(100_000)
		}
		for gate := page.load(wordGate); mono() < gate; {
		}
	}
	start, done := mono(), 0
	for !once || done < j.n {
		more, err := add(newRow(j.id, done))
		if err != nil {
			return err
		}
		if !more {
			break
		}
		done++
	}
	end := mono()
	say("done", int64(done))
	say("ns", end-start)
	say("ended", end)
	return nil
}
