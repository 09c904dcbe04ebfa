package record

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"sync"

	"github.com/stile-lock/stile/internal/display"
	"github.com/stile-lock/stile/internal/seam"
	"github.com/stile-lock/stile/internal/vfs"
	"github.com/stile-lock/stile/kernlock"
)

// LineOptions are the choices of AppendLine and OpenLines. The zero value waits as the policy mutation
// does and leaves the disk to the system.
type LineOptions struct {
	// Lock says how the kernel lock is taken. Its Shared and Exact are ignored. A program that adds
	// thousands of lines a second sets NoRecord: a hold lasts some microseconds, and its holder record
	// costs half as much again.
	Lock kernlock.Options
	// Sync makes Append return only when the lines are on disk. The disk is waited for after the lock
	// was let go, so that many writers wait for it together.
	Sync bool
	// CheckJSON refuses what is not one JSON value, in UTF-8, on each line.
	CheckJSON bool
	// Seams is for this module's own tests.
	Seams *seam.Set
}

// AppendLine adds one line to the file at path, under its kernel lock, and makes the file when there is
// none (0666 less the umask; its folder must exist). It is OpenLines, Append and Close.
func AppendLine(ctx context.Context, path string, line []byte, o LineOptions) error {
	l, err := OpenLines(path, o)
	if err != nil {
		return err
	}
	err = l.Append(ctx, line)
	return errors.Join(err, l.Close())
}

// Lines adds lines to one file, and keeps it and its lock file open for the next. Its methods may be
// called from any number of goroutines.
type Lines struct {
	o    LineOptions
	s    *seam.Set
	fsys vfs.Appender
	lock *kernlock.Handle
	path string

	mu     sync.Mutex
	file   *openLines // nil: not open
	closed bool
}

// OpenLines resolves path, once: when it is a symbolic link, lines go to the file it leads to now. It
// takes no lock and makes nothing; the file is made by the first line.
func OpenLines(path string, o LineOptions) (*Lines, error) {
	o.Lock.Shared, o.Lock.Exact = false, false
	l := &Lines{o: o, s: o.Seams.Or()}
	var ok bool
	if l.fsys, ok = l.s.FS.(vfs.Appender); !ok {
		return nil, fmt.Errorf("append to %s: %w", display.Text(path), errors.ErrUnsupported)
	}
	var err error
	if l.lock, err = kernlock.Open(path, o.Lock); err != nil {
		return nil, err
	}
	l.path = l.lock.Target()
	// Now, so that what cannot be added to leaves no lock file behind.
	if l.file, err = l.open(false); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, errors.Join(err, l.lock.Close())
	}
	return l, nil
}

// Path is the file that the lines go to, links resolved.
func (l *Lines) Path() string { return l.path }

// Close closes the files. It waits for no disk.
func (l *Lines) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return nil
	}
	l.closed = true
	err := l.lock.Close()
	if l.file != nil {
		err = errors.Join(err, l.file.done())
		l.file = nil
	}
	return err
}

// Append adds the lines, in this order and next to each other, in one write under the lock. A line may
// end in a newline, and has no other in it.
//
// A last line in the file that was left without its newline, by a writer that died or a full disk, is
// closed first, and never cut. When the lines do not all fit on the disk, none stays: on an error that
// does not match ErrCommitted nothing was added. (Where that cannot be undone, the error says so, and
// the next Append closes the part of a line that stays.)
//
// A file that was renamed away or replaced since the last Append, as log rotation and Update do, is
// noticed: the lines go to the file that the path names when the lock is held.
func (l *Lines) Append(ctx context.Context, lines ...[]byte) error {
	if len(lines) == 0 {
		return nil
	}
	text, err := l.seal(lines)
	if err != nil {
		return err
	}
	wait := kernelLock{l.o.Lock}.Timeout()
	for deadline := l.s.Clock.Now().Add(wait); ; {
		err := l.add(ctx, text)
		// A hold that was lost before the write has written nothing.
		if !isLost(err) || errors.Is(err, ErrCommitted) || !l.s.Clock.Now().Before(deadline) {
			return err
		}
	}
}

// add is one try, under one hold.
func (l *Lines) add(ctx context.Context, text []byte) error {
	lock, err := l.lock.Acquire(ctx)
	if errors.Is(err, kernlock.ErrClosed) {
		return fmt.Errorf("append to %s: %w", display.Text(l.path), ErrClosed)
	}
	if err != nil {
		return err
	}
	f, number, err := l.write(lock, text)
	if err != nil {
		return errors.Join(err, lock.Release())
	}
	err = lock.Release()
	if l.o.Sync {
		err = errors.Join(err, f.sync(number, l.syncFolder))
	}
	return committed(errors.Join(err, f.done()))
}

// seal joins the lines to one text, each with its newline. The text begins with one more newline, for
// a file whose last line has none.
func (l *Lines) seal(lines [][]byte) ([]byte, error) {
	size := 1
	for _, line := range lines {
		size += len(line) + 1
	}
	text := append(make([]byte, 0, size), '\n')
	for i, line := range lines {
		line = bytes.TrimSuffix(line, []byte("\n"))
		if at := bytes.IndexByte(line, '\n'); at >= 0 {
			return nil, badLine(i, at, "a newline within a line")
		}
		if l.o.CheckJSON {
			if at, err := checkJSON(line); err != nil {
				return nil, badLine(i, int(at), "no JSON value: %v", err)
			}
			if at := firstInvalid(line); at >= 0 {
				return nil, badLine(i, at, "not UTF-8")
			}
		}
		text = append(append(text, line...), '\n')
	}
	return text, nil
}

func badLine(i, at int, format string, args ...any) error {
	return &FormatError{Offset: int64(at), Line: i + 1, Column: at + 1, Reason: fmt.Sprintf(format, args...), kind: ErrRecord}
}

// write adds the text under the lock. The file that it returns is to be given back with done; the
// number is what its sync waits for.
func (l *Lines) write(lock *kernlock.Lock, text []byte) (*openLines, int64, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return nil, 0, fmt.Errorf("append to %s: %w", display.Text(l.path), ErrClosed)
	}
	size, err := l.present()
	if err != nil {
		return nil, 0, err
	}
	f := l.file
	torn := false
	if size > 0 {
		var last [1]byte
		if _, err := f.ReadAt(last[:], size-1); err != nil {
			return nil, 0, fmt.Errorf("look at the end of %s: %w", display.Text(l.path), err)
		}
		torn = last[0] != '\n'
	}
	if !torn {
		text = text[1:]
	}
	if err := lock.Fence(); err != nil {
		return nil, 0, err
	}
	if n, err := f.Write(text); err != nil || n < len(text) {
		return nil, 0, l.undo(size, n, err)
	}
	f.uses.Add(1)
	return f, f.wrote(), nil
}

// present makes l.file the file that the path names now, and returns its size.
func (l *Lines) present() (int64, error) {
	info, err := vfs.Glance(l.s.FS, l.path)
	if l.file != nil && err == nil && vfs.SameFile(info, l.file.info) && !l.file.broken() {
		return info.Size, nil
	}
	if l.file != nil {
		err := l.file.done()
		l.file = nil
		if err != nil {
			return 0, err
		}
	}
	for {
		f, err := l.open(false)
		if errors.Is(err, fs.ErrNotExist) {
			f, err = l.open(true)
			if errors.Is(err, fs.ErrExist) { // made by a writer that asks for no lock
				continue
			}
		}
		if err != nil {
			return 0, err
		}
		l.file = f
		return f.info.Size, nil
	}
}

// open opens the file, if it is a plain one.
func (l *Lines) open(create bool) (*openLines, error) {
	if !create {
		// Before it is opened: opening a device can do things.
		info, err := l.s.FS.Lstat(l.path)
		if err == nil && !info.Mode.IsRegular() {
			err = l.notRegular(info)
		}
		if err != nil {
			return nil, err
		}
	}
	f, err := l.fsys.OpenAppend(l.path, create, 0o666)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err == nil && !info.Mode.IsRegular() {
		err = l.notRegular(info)
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return newOpenLines(f, info), nil
}

func (l *Lines) notRegular(info vfs.Info) error {
	return fmt.Errorf("append to %s: %w but %s", display.Text(l.path), ErrNotRegular, kindOf(info.Mode))
}

// undo takes back what a failed write has left, n bytes behind size. If somebody who asks for no lock
// has written meanwhile, it cannot be taken back.
func (l *Lines) undo(size int64, n int, cause error) error {
	if cause == nil {
		cause = errShort
	}
	cause = fmt.Errorf("append to %s: %w", display.Text(l.path), cause)
	if n <= 0 {
		return cause
	}
	info, err := l.file.Stat()
	if err == nil && info.Size != size+int64(n) {
		err = errOthers
	}
	if err == nil {
		err = l.file.Truncate(size)
	}
	if err != nil {
		return fmt.Errorf("%w (and %d bytes of it stay, behind byte %d: %w)", cause, n, size, err)
	}
	return cause
}

var (
	errShort  = errors.New("the write was cut short")
	errOthers = errors.New("another program wrote to the file without its lock")
)

func (l *Lines) syncFolder() error {
	dir, _ := vfs.Split(l.path)
	return l.s.FS.SyncDir(dir)
}
