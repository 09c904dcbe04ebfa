package record

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/stile-lock/stile/internal/seam"
	"github.com/stile-lock/stile/internal/vfs"
)

// Append adds one record, any JSON value, to the end of the JSON array in the file at path, under its
// lock, by copying the file and renaming the copy over it. A missing file is made, with the record as
// its one element. The file keeps its style: where each element begins a line of its own, the record
// becomes such a line, indented alike. An empty array becomes one of a record a line.
//
// The file is not decoded when its first byte is "[" and its last element is one whole line: only that
// line is read, at most 256 KiB of it. Otherwise the whole file is checked. Damage before the last
// line is therefore not always found, and is left as it is; damage that is found is a *FormatError,
// and changes nothing.
//
// Rec may be laid out in any way; it is written on one line. A string in it that is not UTF-8 is
// refused, since most readers would then refuse the whole file.
//
// Of the options, Create and IfChanged mean nothing here.
func Append(ctx context.Context, path string, rec []byte, o UpdateOptions) error {
	line, err := oneLine(rec)
	if err != nil {
		return err
	}
	o.Create, o.IfChanged = true, false
	u, err := begin(path, o)
	if err != nil {
		return err
	}
	return u.run(ctx, func(h Hold) error {
		err := u.commit(ctx, h, func(w io.Writer) error { return u.appendQuickly(w, line) })
		if errors.Is(err, errLook) {
			err = u.appendChecked(ctx, h, line)
		}
		return err
	})
}

// oneLine brings a record into the form in which it is written.
func oneLine(rec []byte) ([]byte, error) {
	if offset, err := checkJSON(rec); err != nil {
		return nil, badRecord(rec, offset, "no JSON value: %v", err)
	}
	if i := firstInvalid(rec); i >= 0 {
		return nil, badRecord(rec, int64(i), "not UTF-8")
	}
	var b bytes.Buffer
	b.Grow(len(rec))
	err := json.Compact(&b, rec)
	return b.Bytes(), err
}

// firstInvalid is where data stops being UTF-8, or -1.
func firstInvalid(data []byte) int {
	if utf8.Valid(data) {
		return -1
	}
	i := 0
	for {
		r, n := utf8.DecodeRune(data[i:])
		if r == utf8.RuneError && n <= 1 {
			return i
		}
		i += n
	}
}

// checkJSON says where data stops being one JSON value.
func checkJSON(data []byte) (offset int64, err error) {
	var whole json.RawMessage
	err = json.Unmarshal(data, &whole)
	var syntax *json.SyntaxError
	if errors.As(err, &syntax) {
		// It counts the offending byte. At the end there is none: then it says so, or names the blank
		// that it has put there to end a number or a word.
		offset = syntax.Offset
		atEnd := err.Error() == "unexpected end of JSON input" ||
			offset == int64(len(data)) && strings.HasPrefix(err.Error(), "invalid character ' '") && !bytes.HasSuffix(data, []byte(" "))
		if !atEnd {
			offset--
		}
	}
	return offset, err
}

// errLook: the end of the file alone does not say how it goes on.
var errLook = errors.New("the whole file must be looked at")

const (
	// tailSize is the longest end of the file that is looked at, and so bounds the last line.
	tailSize  = 256 << 10
	chunkSize = 128 << 10 // small, so that what is read is still in the processor's cache when it is written
)

// buffers are what files are copied through. A fresh one would be paid for page by page.
var buffers = sync.Pool{New: func() any { return new([tailSize + 1]byte) }}

// appendQuickly copies the file and adds the record by what the file's end says. It fails with errLook
// when that is not enough.
func (u *update) appendQuickly(w io.Writer, line []byte) error {
	f, err := u.open()
	if err != nil {
		return err
	}
	defer u.finish(f)
	if f.missing {
		u.s.At(seam.HoldRead)
		return vfs.WriteAll(w, concat([]byte("[\n  "), line, []byte("\n]\n")))
	}
	buf := buffers.Get().(*[tailSize + 1]byte)
	defer buffers.Put(buf)
	tail, at, err := copyButTail(w, f, f.size, buf[:])
	if err != nil {
		return err
	}
	u.s.At(seam.HoldRead)
	p, ok := quickPlace(tail, at)
	if !ok {
		return errLook
	}
	return p.write(w, tail, line)
}

// copyButTail copies a file of the given size but for its end, which it returns, in buf, with its offset in
// the file. It fails with errLook, before anything is copied, when the file does not begin with "["; and
// when the file turns out to have another size: then somebody writes to it without the lock.
func copyButTail(w io.Writer, r io.Reader, size int64, buf []byte) (tail []byte, at int64, err error) {
	for first := true; at < size-tailSize; first = false {
		n, err := r.Read(buf[:min(size-tailSize-at, chunkSize)])
		if first && n > 0 && buf[0] != '[' || errors.Is(err, io.EOF) {
			return nil, 0, errLook
		}
		if err == nil {
			err = vfs.WriteAll(w, buf[:n])
		}
		if err != nil {
			return nil, 0, err
		}
		at += int64(n)
	}
	n := 0
	for at+int64(n) <= size {
		m, err := r.Read(buf[n:])
		n += m
		switch {
		case at == 0 && n > 0 && buf[0] != '[':
			return nil, 0, errLook
		case errors.Is(err, io.EOF):
			if at+int64(n) < size {
				return nil, 0, errLook
			}
			return buf[:n], at, nil
		case err != nil:
			return nil, 0, err
		}
	}
	return nil, 0, errLook
}

// appendChecked reads the whole file, and adds the record if it is a JSON array.
func (u *update) appendChecked(ctx context.Context, h Hold, line []byte) error {
	u.seen = sight{} // it is read anew
	data, _, err := u.read()
	if err != nil {
		return err
	}
	p, err := checkedPlace(u.path, data)
	if err != nil {
		return err
	}
	return u.commit(ctx, h, func(w io.Writer) error { return p.write(w, data, line) })
}

func concat(parts ...[]byte) []byte { return bytes.Join(parts, nil) }
