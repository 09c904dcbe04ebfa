package dispatch

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"time"

	"github.com/stile-lock/stile/internal/commit"
	"github.com/stile-lock/stile/internal/display"
	"github.com/stile-lock/stile/internal/estate"
	"github.com/stile-lock/stile/internal/jsontext"
	"github.com/stile-lock/stile/internal/seam"
	"github.com/stile-lock/stile/internal/sweep"
	"github.com/stile-lock/stile/internal/vfs"
)

const (
	boardVersion = 1
	maxBoard     = 64 << 20
)

// board is an agent's board in the hands of one call. Its folder may be missing when it is only read.
type board struct {
	agent  *agent
	folder *estate.Folder // nil: there is none
	path   string
	seams  *seam.Set // its files are the folder's

	info vfs.Info // of the file that text was read from
	text []byte   // nil: there is no board

	// known is what parts found last, and of which text: a long board takes a while to go through, and a
	// change asks before the log is written and after.
	known struct {
		text  []byte
		items []jsontext.Span
		whole jsontext.Span
	}
}

func (a *agent) openBoard() (*board, error) {
	b := &board{agent: a, path: filepath.Join(a.folder.Path, boardFolder, boardName)}
	if err := b.enter(false); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	return b, nil
}

// enter opens the board's folder, if it is not open yet.
func (b *board) enter(create bool) error {
	if b.folder != nil {
		return nil
	}
	f, err := b.agent.folder.Sub(boardFolder, create)
	if err != nil {
		return err
	}
	b.folder, b.seams = f, filesIn(b.agent.given, f)
	return nil
}

func (b *board) close() error {
	if b.folder == nil {
		return nil
	}
	return b.folder.Close()
}

// look reads the board and checks that it is one; a long one not to its last byte.
func (b *board) look() error {
	if err := b.read(); err != nil || b.text == nil {
		return err
	}
	_, _, err := b.parts(false)
	return err
}

// items reads the board and what is on it.
func (b *board) items() ([]placed, error) {
	if err := b.read(); err != nil || b.text == nil {
		return nil, err
	}
	return b.parse()
}

// read reads the board, unless it is the one that was read before.
func (b *board) read() error {
	if b.folder == nil {
		return nil
	}
	f, err := b.seams.FS.Open(b.path)
	if errors.Is(err, fs.ErrNotExist) {
		b.text, b.info = nil, vfs.Info{}
		return nil
	}
	if err != nil {
		return fmt.Errorf("read the board of %s: %w", b.agent.shown(), err)
	}
	defer f.Close() // a failed close of what was only read loses nothing
	info, err := f.Stat()
	switch {
	case err != nil:
		return fmt.Errorf("read the board of %s: %w", b.agent.shown(), err)
	case !info.Mode.IsRegular():
		return b.bad(0, "it is no plain file")
	case b.text != nil && same(info, b.info):
		return nil
	}
	if info.Size > maxBoard { // seen before it is read: it costs nothing
		return b.bad(maxBoard, "it has more than %d MiB", maxBoard>>20)
	}
	text, whole, err := vfs.ReadSized(f, info.Size, maxBoard)
	switch {
	case err != nil:
		return fmt.Errorf("read the board of %s: %w", b.agent.shown(), err)
	case !whole:
		return b.bad(maxBoard, "it has more than %d MiB", maxBoard>>20)
	}
	b.text, b.info = text, info
	if b.text == nil {
		b.text = []byte{}
	}
	return nil
}

// same tells whether a file is the one that was looked at before, unchanged.
func same(a, b vfs.Info) bool {
	return a.Size == b.Size && a.ModTime.Equal(b.ModTime) && a.Ino == b.Ino
}

func (b *board) bad(offset int64, format string, args ...any) *FileError {
	e := &FileError{Path: b.path, Offset: offset, Reason: fmt.Sprintf(format, args...), kind: ErrBoard}
	if b.text != nil {
		e.Line = 1 + bytes.Count(b.text[:min(offset, int64(len(b.text)))], []byte("\n"))
	}
	return e
}

// put brings the item of a dispatch up to date, or adds it.
func (b *board) put(r Record, fence func() error, now time.Time) error {
	return b.change(fence, func() error { return b.setItem(r, now) })
}

// errBoardChanged: somebody wrote the board without the lock, such as an editor.
var errBoardChanged = errors.New("the board was changed meanwhile, without the lock")

// change replaces the board with what edit makes of b.text, while fence is nil. A board that is changed
// without the lock between its reading and its replacement is read again, a few times.
func (b *board) change(fence func() error, edit func() error) error {
	if err := b.enter(true); err != nil {
		return err
	}
	if err := sweep.Dir(b.seams, b.path); err != nil && !errors.Is(err, fs.ErrPermission) {
		return err
	}
	for try := 0; ; try++ {
		if err := b.read(); err != nil {
			return err
		}
		was, info := b.text, b.info
		if err := edit(); err != nil {
			return err
		}
		if b.text == nil || was != nil && bytes.Equal(b.text, was) {
			return nil
		}
		text := b.text
		t := commit.Target{Seams: b.seams, Path: b.path, Sync: true, Fence: func() error {
			if err := fence(); err != nil {
				return err
			}
			return b.fresh(was == nil, info)
		}}
		err := t.Write(func(w io.Writer) error { return vfs.WriteAll(w, text) })
		b.text, b.info = nil, vfs.Info{}
		if errors.Is(err, errBoardChanged) && try < 5 {
			continue
		}
		if err != nil {
			return fmt.Errorf("write the board of %s: %w", b.agent.shown(), err)
		}
		return nil
	}
}

func (b *board) fresh(missing bool, info vfs.Info) error {
	is, err := b.seams.FS.Lstat(b.path)
	switch {
	case errors.Is(err, fs.ErrNotExist) && missing:
		return nil
	case err == nil && !missing && same(is, info):
		return nil
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return err
	}
	return errBoardChanged
}

// valid checks what a scan for the parts does not. Of a long board it is left to Check: the time that it
// takes would be most of what opening a dispatch takes.
func (b *board) valid(always bool) error {
	const long = 256 << 10
	text := b.text
	switch {
	case len(bytes.TrimSpace(text)) == 0:
		return b.bad(0, "it is empty, and should be a JSON object")
	case bytes.HasPrefix(text, []byte("\xef\xbb\xbf")):
		return b.bad(0, "it begins with a byte order mark, which JSON has no place for")
	case len(text) > long && !always:
		return nil
	}
	var whole json.RawMessage
	err := json.Unmarshal(text, &whole)
	var syntax *json.SyntaxError
	if errors.As(err, &syntax) {
		return b.bad(max(syntax.Offset-1, 0), "it is no JSON: %s", display.Text(err.Error()))
	}
	return err
}
