package pipe

import (
	"bufio"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// Both ways a message is a head, which is a frame of JSON, and a body, which is frames up to an empty one. A frame is its
// length in four bytes, the high one first, and so many bytes. A body that its sender could not read to the end
// is cut off by a frame of the length broken.
const (
	maxFrame = 1 << 20
	chunk    = 64 << 10
	broken   = 0xffffffff
)

var errBroken = errors.New("the other side could not give the whole of it")

func writeFrame(w io.Writer, data []byte) error {
	var size [4]byte
	binary.BigEndian.PutUint32(size[:], uint32(len(data))) // at most maxFrame
	if _, err := w.Write(size[:]); err != nil {
		return err
	}
	_, err := w.Write(data)
	return err
}

// readSize reads a frame's length; ok is false for one that is broken.
func readSize(r io.Reader) (n int, ok bool, err error) {
	var size [4]byte
	if _, err := io.ReadFull(r, size[:]); err != nil {
		return 0, false, err
	}
	u := binary.BigEndian.Uint32(size[:])
	switch {
	case u == broken:
		return 0, false, nil
	case u > maxFrame:
		return 0, false, fmt.Errorf("a frame of %d bytes", u)
	}
	return int(u), true, nil
}

// writeHead sends the head of a message.
func writeHead(w io.Writer, v any) error {
	data, err := json.Marshal(v)
	if err != nil {
		return err
	}
	if len(data) > maxFrame {
		return fmt.Errorf("a head of %d bytes", len(data))
	}
	return writeFrame(w, data)
}

// readHead reads one; io.EOF when there is none any more.
func readHead(r io.Reader, v any) error {
	n, ok, err := readSize(r)
	if err != nil {
		return err
	}
	if !ok {
		return errBroken
	}
	data := make([]byte, n)
	if _, err := io.ReadFull(r, data); err != nil {
		return fmt.Errorf("a head is cut short: %w", err)
	}
	return json.Unmarshal(data, v)
}

// writeBody sends all that r has. An error of r's is told to the other side, and returned as from; one of w's as err.
func writeBody(w *bufio.Writer, r io.Reader) (from, err error) {
	buf := make([]byte, chunk)
	for r != nil {
		n, rerr := r.Read(buf)
		if n > 0 {
			if err := writeFrame(w, buf[:n]); err != nil {
				return nil, err
			}
		}
		if errors.Is(rerr, io.EOF) {
			break
		}
		if rerr != nil {
			var size [4]byte
			binary.BigEndian.PutUint32(size[:], broken)
			_, err := w.Write(size[:])
			return rerr, errors.Join(err, w.Flush())
		}
		// What is there already must not wait for what is not.
		if err := w.Flush(); err != nil {
			return nil, err
		}
	}
	if err := writeFrame(w, nil); err != nil {
		return nil, err
	}
	return nil, w.Flush()
}

// bodyReader reads a message's body.
type bodyReader struct {
	r    io.Reader
	left int
	err  error // when all was read: io.EOF, or what went wrong
}

func (b *bodyReader) Read(p []byte) (int, error) {
	if b.err != nil {
		return 0, b.err
	}
	if b.left == 0 {
		n, ok, err := readSize(b.r)
		switch {
		case err != nil:
			b.err = unexpected(err)
		case !ok:
			b.err = errBroken
		case n == 0:
			b.err = io.EOF
		}
		if b.err != nil {
			return 0, b.err
		}
		b.left = n
	}
	n, err := b.r.Read(p[:min(len(p), b.left)])
	b.left -= n
	if err != nil {
		b.err = unexpected(err)
		return n, b.err
	}
	return n, nil
}

func unexpected(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}
