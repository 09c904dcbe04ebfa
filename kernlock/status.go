package kernlock

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"strings"
	"time"

	"github.com/stile-lock/stile/internal/display"
)

// Status says what is known of target's lock. It takes no lock, makes no
// file and mends nothing. Of opts only Exact counts. A damaged record, or no
// lock file at all, is a Report and no error.
func Status(target string, opts Options) (*Report, error) {
	n, err := resolve(target, opts.Exact)
	if err != nil {
		return nil, err
	}
	return status(&n, lookKernel())
}

func status(n *names, view *kernelView) (*Report, error) {
	r := &Report{
		Target: n.target, LockPath: n.lock, LockID: n.id,
		Content: ContentAbsent, Kernel: KernelFree, HolderState: HolderUnproven,
		Holders: []Process{}, Liveness: Absent, AgeSeconds: -1,
	}
	r.Incidents = countIncidents(n)
	c, rec, err := readSettled(func() ([]byte, error) { return readHolder(n) })
	if errors.Is(err, fs.ErrNotExist) {
		return r, nil
	}
	if err != nil {
		return nil, err
	}
	s := sighting{content: c, record: rec, facts: view.facts(n.lock)}
	s.judge(n.lock)
	r.Content, r.Holder, r.Liveness = c, rec, s.live
	r.Kernel, r.Shared, r.Waiters = s.facts.state, s.facts.shared, s.facts.waiters
	if s.facts.state != KernelFree {
		r.HolderState = s.state
	} else if rec != nil {
		r.HolderState = Previous
	}
	for _, pid := range s.facts.pids {
		r.Holders = append(r.Holders, Process{PID: pid, Name: processName(pid)})
	}
	if rec != nil {
		r.AgeSeconds = max(0, time.Since(rec.AcquiredAt).Seconds())
	}
	return r, nil
}

// Survey calls visit for every kernel lock in dir and the folders below it,
// in path order: files named *.lock that hold a record or are empty, and
// others that are held. What cannot be read is visited with its error and a
// Report that has LockPath alone. Links are not followed. An error that visit
// returns ends the survey and is returned.
func Survey(ctx context.Context, dir string, visit func(*Report, error) error) error {
	root, err := canonical(dir)
	if err != nil {
		return err
	}
	view := lookKernel()
	return filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if err != nil {
			err = fmt.Errorf("read folder %s: %w", display.Text(path), withoutPath(err))
			if path == root {
				return err
			}
			return visit(&Report{LockPath: path}, err)
		}
		name := d.Name()
		if !d.Type().IsRegular() || !strings.HasSuffix(name, lockSuffix) || name == lockSuffix {
			return nil
		}
		n, err := resolve(path, true)
		if err != nil {
			return visit(&Report{LockPath: path}, err)
		}
		r, err := status(&n, view)
		switch {
		case err != nil:
			return visit(&Report{LockPath: path}, err)
		case r.Content == ContentOther, r.Content == ContentAbsent:
			return nil // not a kernel lock, or gone since
		case r.Content == ContentForeign && r.Kernel != KernelHeld:
			return nil
		}
		return visit(r, nil)
	})
}

// Incidents reads the rows beside target's lock, oldest first. Of opts only
// Exact counts. No file is no rows.
func Incidents(target string, opts Options) (*IncidentLog, error) {
	n, err := resolve(target, opts.Exact)
	if err != nil {
		return nil, err
	}
	log := &IncidentLog{Target: n.target, LockID: n.id, Path: n.incidents(), Rows: []Incident{}}
	for _, path := range []string{n.incidents() + rotatedSuffix, n.incidents()} {
		err := eachLine(path, func(line []byte) {
			if in, err := decodeIncident(line); err == nil {
				log.Rows = append(log.Rows, *in)
			} else {
				log.Skipped++
			}
		})
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("read incidents %s: %w", display.Text(path), err)
		}
	}
	return log, nil
}

func countIncidents(n *names) int {
	count := 0
	for _, path := range []string{n.incidents() + rotatedSuffix, n.incidents()} {
		err := eachLine(path, func([]byte) { count++ })
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return -1
		}
	}
	return count
}

// maxRow bounds a line that is looked at, maxRead a file: a file that grew
// for another reason than ours is not read to its end.
const (
	maxRow  = 64 << 10
	maxRead = 16 << 20
)

// eachLine calls f for every line of a plain file that is not blank. A longer
// line than maxRow comes cut.
func eachLine(path string, f func([]byte)) error {
	file, err := openPlain(path)
	if err != nil {
		return err
	}
	defer func() { _ = file.Close() }()
	r := bufio.NewReaderSize(io.LimitReader(file, maxRead), maxRow)
	for {
		line, err := r.ReadSlice('\n')
		if len(bytes.TrimSpace(line)) > 0 {
			f(line)
		}
		for errors.Is(err, bufio.ErrBufferFull) {
			_, err = r.ReadSlice('\n') // the rest of a line that is too long
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}
