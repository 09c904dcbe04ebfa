package main

import (
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	_ "github.com/mattn/go-sqlite3" // a peer of appended lines: the C library
	"go.etcd.io/bbolt"
	_ "modernc.org/sqlite" // the same, translated to Go
)

// sqliteAt is the database that stands for the file of lines at path. The contestant's name says which driver and
// what is synced.
func sqliteAt(who, path string) (*sql.DB, error) {
	synchronous := "FULL"
	if strings.HasPrefix(who, "sqlite-normal") {
		synchronous = "NORMAL"
	}
	driver, options := "sqlite3", "_journal_mode=WAL&_busy_timeout=60000&_synchronous="+synchronous
	if strings.HasSuffix(who, "-modernc") {
		driver, options = "sqlite", "_pragma=busy_timeout(60000)&_pragma=journal_mode(WAL)&_pragma=synchronous("+synchronous+")"
	}
	db, err := sql.Open(driver, "file:"+path+".db?_txlock=immediate&"+options)
	if err != nil {
		return nil, err
	}
	db.SetMaxOpenConns(1)
	_, err = db.Exec("CREATE TABLE IF NOT EXISTS lines (line TEXT)")
	return db, err
}

func openSQLite(who string) linesOpener {
	return func(path string) (func([]byte) error, error) {
		db, err := sqliteAt(who, path)
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

var boltLines = []byte("lines")

func boltAt(path string, noSync bool) (*bbolt.DB, error) {
	return bbolt.Open(path+".bolt", 0o600, &bbolt.Options{NoSync: noSync, NoGrowSync: noSync})
}

func boltAdd(db *bbolt.DB, line []byte) error {
	return db.Update(func(tx *bbolt.Tx) error {
		b, err := tx.CreateBucketIfNotExists(boltLines)
		if err != nil {
			return err
		}
		n, err := b.NextSequence()
		if err != nil {
			return err
		}
		b.FillPercent = 1 // the keys rise
		return b.Put(fmt.Appendf(nil, "%016d", n), line)
	})
}

// openBolt keeps the file open when one process writes alone. An open file keeps every other process out, so many
// writers must open it for each line.
func openBolt(kept, noSync bool) linesOpener {
	return func(path string) (func([]byte) error, error) {
		if kept {
			db, err := boltAt(path, noSync)
			return func(line []byte) error { return boltAdd(db, line) }, err
		}
		return func(line []byte) error {
			db, err := boltAt(path, noSync)
			if err != nil {
				return err
			}
			return errors.Join(boltAdd(db, line), db.Close())
		}, nil
	}
}

// countLines counts what the contestant has put away.
func countLines(who, path string) (n int, err error) {
	switch {
	case strings.HasPrefix(who, "sqlite"):
		db, err := sqliteAt(who, path)
		if err != nil {
			return 0, err
		}
		defer db.Close()
		err = db.QueryRow("SELECT count(*) FROM lines").Scan(&n)
		return n, err
	case strings.HasPrefix(who, "bbolt"):
		db, err := boltAt(path, true)
		if err != nil {
			return 0, err
		}
		defer db.Close()
		err = db.View(func(tx *bbolt.Tx) error {
			if b := tx.Bucket(boltLines); b != nil {
				n = b.Stats().KeyN
			}
			return nil
		})
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
