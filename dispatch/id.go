package dispatch

import (
	"fmt"
	"io"

	"github.com/stile-lock/stile/internal/seam"
)

// crockford is the alphabet of ULIDs: digits and letters that are not taken for each other.
const crockford = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"

// newID draws a ULID: 48 bits of milliseconds since 1970, then 80 random bits, in 26 characters. It sorts
// by time; what keeps two apart, whoever draws them and when, is the random part alone.
func newID(s *seam.Set) (string, error) {
	var b [16]byte
	ms := uint64(s.Clock.Now().UnixMilli())
	for i := range 6 {
		b[i] = byte(ms >> (40 - 8*i))
	}
	if _, err := io.ReadFull(s.Rand, b[6:]); err != nil {
		return "", fmt.Errorf("draw an id: %w", err)
	}
	// 128 bits are 25 characters of five and one of three, which comes first.
	var text [26]byte
	for i := range text {
		last := 5*(25-i) + 5 // the character's bits end so far from the end of the 128
		text[i] = crockford[bits(b, 128-last)]
	}
	return string(text[:]), nil
}

// bits gives the five bits from the one numbered first on; those before the first of all are zero.
func bits(b [16]byte, first int) (v byte) {
	for i := first; i < first+5; i++ {
		v <<= 1
		if i >= 0 {
			v |= b[i/8] >> (7 - i%8) & 1
		}
	}
	return v
}
