package local

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"strconv"

	"github.com/stile-lock/stile/grant"
)

// witnessLine is a witness on disk.
type witnessLine struct {
	V         int           `json:"v"`
	Container string        `json:"container"`
	Witness   grant.Witness `json:"witness"`
	// Sum is the CRC-32C of what is before it, in eight hex digits: half of one line on half of another can be
	// good JSON. Lines that were written before there were sums have none.
	Sum string `json:"sum,omitempty"`
}

// sumTail is the end of a line with a sum.
const sumTail = `,"sum":"%08x"}`

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// lineOf is a line with its end.
func lineOf(container string, w grant.Witness) ([]byte, error) {
	line, err := json.Marshal(witnessLine{V: 1, Container: container, Witness: w})
	if err != nil {
		return nil, err
	}
	line = line[:len(line)-1]
	return fmt.Appendf(line, sumTail+"\n", crc32.Checksum(line, castagnoli)), nil
}

// whole tells whether the line is as it was written.
func (w witnessLine) whole(line []byte) bool {
	end := len(line) - len(fmt.Sprintf(sumTail, 0))
	return w.Sum == "" || end > 0 && w.Sum == fmt.Sprintf("%08x", crc32.Checksum(line[:end], castagnoli))
}

// parseWitness reads a line without its end.
func parseWitness(line []byte, container string) (grant.Witness, error) {
	if w, ok := scanWitness(line, container); ok {
		return w, nil
	}
	var w witnessLine
	dec := json.NewDecoder(bytes.NewReader(line))
	dec.DisallowUnknownFields()
	err := dec.Decode(&w)
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return grant.Witness{}, errCutShort
	}
	if err != nil {
		return grant.Witness{}, errors.New("it is no witness")
	}
	switch x := w.Witness; {
	case w.V != 1:
		return grant.Witness{}, grant.ErrNewer
	case !w.whole(line):
		return grant.Witness{}, errors.New("a line is damaged")
	case w.Container != container || x.Epoch < 1 || x.Rev < 1 || x.Grant < 0 || x.Next < 0 || x.Register.Seq < 0:
		return grant.Witness{}, errors.New("it is no witness of this container")
	}
	return w.Witness, nil
}

// scanWitness reads a line that is byte for byte as lineOf makes it, in a tenth of the time: whoever comes to a page
// after seven others has all of their lines to read. Anything else about a line is for parseWitness to find.
func scanWitness(line []byte, container string) (grant.Witness, bool) {
	var w grant.Witness
	s := scanner{line, true}
	s.literal(`{"v":1,"container":"`)
	s.literal(container) // a name has nothing to escape
	s.literal(`","witness":{"epoch":`)
	w.Epoch = s.number()
	s.literal(`,"grant":`)
	w.Grant = s.number()
	s.literal(`,"hash":"`)
	w.Hash = s.digest()
	s.literal(`","next":`)
	w.Next = s.number()
	s.literal(`,"rev":`)
	w.Rev = s.number()
	s.literal(`,"register":{"head":"`)
	w.Register.Head = s.digest()
	s.literal(`","seq":`)
	w.Register.Seq = s.number()
	s.literal(`}}`)
	summed := line[:len(line)-len(s.rest)]
	s.literal(`,"sum":"`)
	var sum [4]byte
	binary.BigEndian.PutUint32(sum[:], crc32.Checksum(summed, castagnoli))
	s.literal(hex.EncodeToString(sum[:]))
	s.literal(`"}`)
	return w, s.ok && len(s.rest) == 0 && w.Epoch > 0 && w.Rev > 0
}

type scanner struct {
	rest []byte
	ok   bool // all was as expected so far
}

func (s *scanner) literal(text string) {
	if !s.ok || len(s.rest) < len(text) || string(s.rest[:len(text)]) != text {
		s.ok = false
		return
	}
	s.rest = s.rest[len(text):]
}

// take cuts off the bytes that belong.
func (s *scanner) take(belongs func(byte) bool) string {
	n := 0
	for n < len(s.rest) && belongs(s.rest[n]) {
		n++
	}
	taken := string(s.rest[:n])
	s.rest = s.rest[n:]
	return taken
}

// number reads a number that is not negative, without leading zeros.
func (s *scanner) number() int64 {
	digits := s.take(func(c byte) bool { return c >= '0' && c <= '9' })
	n, err := strconv.ParseInt(digits, 10, 64)
	if err != nil || len(digits) > 1 && digits[0] == '0' {
		s.ok = false
	}
	return n
}

// digest reads what may be a digest or nothing. Whether it is one, nobody asks of a witness.
func (s *scanner) digest() grant.Digest {
	return grant.Digest(s.take(func(c byte) bool { return c >= '0' && c <= '9' || c >= 'a' && c <= 'f' }))
}
