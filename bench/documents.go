package main

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"

	gofrs "github.com/gofrs/flock"
	_ "github.com/mattn/go-sqlite3" // the peer of appended lines
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
		return true, os.Rename(temp, path)
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

// linesOpener gives the function that adds a line to the file at path.
type linesOpener func(path string) (func(line []byte) error, error)

func openLines(o record.LineOptions) linesOpener {
	return func(path string) (func([]byte) error, error) {
		l, err := record.OpenLines(path, o)
		if err != nil {
			return nil, err
		}
		return func(line []byte) error { return l.Append(context.Background(), line) }, nil
	}
}

// sqliteAt is the database that stands for the file of lines at path.
func sqliteAt(path, synchronous string) (*sql.DB, error) {
	db, err := sql.Open("sqlite3", "file:"+path+".db?_journal_mode=WAL&_busy_timeout=60000&_txlock=immediate&_synchronous="+synchronous)
	if err != nil {
		return nil, err
	}
	db.SetMaxOpenConns(1)
	_, err = db.Exec("CREATE TABLE IF NOT EXISTS lines (line TEXT)")
	return db, err
}

func openSQLite(synchronous string) linesOpener {
	return func(path string) (func([]byte) error, error) {
		db, err := sqliteAt(path, synchronous)
		if err != nil {
			return nil, err
		}
		insert, err := db.Prepare("INSERT INTO lines VALUES (?)")
		if err != nil {
			return nil, err
		}
		return func(line []byte) error {
			_, err := insert.Exec(string(line))
			return err
		}, nil
	}
}

// countLines counts what the contestant has put away.
func countLines(who, path string) (int, error) {
	if c, _ := findContestant(who); c.id == "sqlite-normal" || c.id == "sqlite-full" {
		db, err := sqliteAt(path, "NORMAL")
		if err != nil {
			return 0, err
		}
		defer db.Close()
		var n int
		err = db.QueryRow("SELECT count(*) FROM lines").Scan(&n)
		return n, err
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return 0, err
	}
	const lineBytes = 200
	if len(data)%lineBytes != 0 {
		return 0, fmt.Errorf("%s: %d bytes are no whole lines", filepath.Base(path), len(data))
	}
	for i := lineBytes - 1; i < len(data); i += lineBytes {
		if data[i] != '\n' {
			return 0, fmt.Errorf("%s: line %d is torn", filepath.Base(path), i/lineBytes+1)
		}
	}
	return len(data) / lineBytes, nil
}

// workLines adds lines from the gate's opening to the stop, and counts those
// of the window that is common to all: its last nine tenths.
func workLines(j job, open linesOpener, page *sharedPage, ready func(), say func(string, int64)) error {
	add, err := open(j.path)
	if err != nil {
		return err
	}
	ready()
	for page.load(wordGate) == 0 {
		nap(100_000)
	}
	gate, stop := page.load(wordGate), page.load(wordStop)
	for mono() < gate {
	}
	done, in := 0, 0
	for from := gate + (stop-gate)/10; ; done++ {
		now := mono()
		if now >= stop {
			break
		}
		if err := add(fmt.Appendf(nil, `{"worker":%d,"seq":%d,"text":"%*s"}`, j.id, done, linePad(j.id, done), "")); err != nil {
			return err
		}
		if end := mono(); end >= from && end < stop {
			in++
		}
	}
	say("done", int64(done))
	say("in", int64(in))
	return nil
}

// linePad brings every line to 199 bytes and its newline.
func linePad(id, seq int) int {
	return 199 - len(fmt.Sprintf(`{"worker":%d,"seq":%d,"text":""}`, id, seq))
}
