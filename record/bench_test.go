package record

import (
	"bytes"
	"fmt"
	"path/filepath"
	"testing"

	"github.com/stile-lock/stile/kernlock"
)

// BenchmarkAppend adds records of about 200 bytes to arrays of so many; they grow by what is added.
func BenchmarkAppend(b *testing.B) {
	rec := fmt.Appendf(nil, `{"id":"0123456789abcdef","note":%q}`, bytes.Repeat([]byte("x"), 150))
	for _, n := range []int{10_000, 100_000} {
		for _, noSync := range []bool{true, false} {
			b.Run(fmt.Sprintf("n=%d/nosync=%v", n, noSync), func(b *testing.B) {
				path := filepath.Join(b.TempDir(), "f")
				text := concat([]byte("[\n  "), bytes.Join(slicesOf(rec, n), []byte(",\n  ")), []byte("\n]\n"))
				o := UpdateOptions{NoSync: noSync}
				if err := Update(b.Context(), path, func([]byte) ([]byte, error) { return text, nil }, UpdateOptions{Create: true}); err != nil {
					b.Fatal(err)
				}
				for b.Loop() {
					if err := Append(b.Context(), path, rec, o); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}

func slicesOf(rec []byte, n int) [][]byte {
	all := make([][]byte, n)
	for i := range all {
		all[i] = rec
	}
	return all
}

// BenchmarkLines adds lines of 200 bytes through one Lines.
func BenchmarkLines(b *testing.B) {
	line := bytes.Repeat([]byte("x"), 199)
	for name, o := range map[string]LineOptions{
		"plain":    {Lock: kernlock.Options{NoRecord: true}},
		"recorded": {},
		"sync":     {Lock: kernlock.Options{NoRecord: true}, Sync: true},
	} {
		b.Run(name, func(b *testing.B) {
			l, err := OpenLines(filepath.Join(b.TempDir(), "f"), o)
			if err != nil {
				b.Fatal(err)
			}
			defer l.Close()
			for b.Loop() {
				if err := l.Append(b.Context(), line); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
