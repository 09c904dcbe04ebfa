//go:build unix && !aix && !solaris

package kernlock

import (
	"bytes"
	"fmt"
	"time"

	"github.com/stile-lock/stile/internal/display"
)

// keepSize is how long a former record may be and still be covered with
// blanks; a longer one is cut, which costs more than all the rest.
const keepSize = 1 << 10

// sign writes the holder record into the lock file, if that is ours to
// write. Failure is a warning: the lock is held.
func (l *Lock) sign() {
	l.acquired = time.Now()
	var buf [keepSize]byte
	old, err := l.f.read(buf[:])
	if err != nil {
		l.warn(err)
		return
	}
	if !bytes.Equal(old, l.f.last) && !l.mayWrite(old) {
		l.warning = fmt.Errorf("lock %s: holder not recorded: %s holds something else, which is left alone",
			display.Text(l.h.names.target), display.Text(l.h.names.lock))
		return
	}
	size, least := int64(len(old)), len(old)
	if len(old) == keepSize {
		size, least = 1<<62, 0 // there may be more: cut it
	}
	l.f.last = l.h.enc.append(l.f.last[:0], l.acquired, time.Time{}, least)
	if err := l.f.write(l.f.last, size); err != nil {
		l.warn(err)
		return
	}
	l.signed = true
}

func (l *Lock) warn(err error) {
	l.f.last = l.f.last[:0]
	l.warning = fmt.Errorf("lock %s: holder not recorded: %w", display.Text(l.h.names.target), err)
}

// mayWrite looks again at what begins with head: it may have become somebody
// else's since the lock file was opened.
func (l *Lock) mayWrite(head []byte) bool {
	if len(head) == 0 || isPlainRecord(head) {
		return true
	}
	if len(head) == keepSize {
		var err error
		if head, err = l.f.read(make([]byte, maxRecord)); err != nil {
			return false
		}
	}
	l.f.content, _, _ = classify(head)
	return l.f.ours()
}

// isPlainRecord says of a file's beginning that it is a holder record, or was
// one, without the cost of reading it as one; false proves nothing.
func isPlainRecord(b []byte) bool { return hasRecordMark(b) && bytes.Contains(b, holderMark) }

// signOff writes released_at into this hold's record, through f, if the file
// still holds that. The guarded program may have written its own data there;
// and of an inherited lock another can have come and gone since our close.
func (l *Lock) signOff(f *lockFile) {
	var buf [keepSize]byte
	if b, err := f.read(buf[:]); err != nil || !bytes.Equal(b, l.f.last) {
		l.f.last = l.f.last[:0]
		return
	}
	l.f.last = l.h.enc.append(l.f.last[:0], l.acquired, time.Now(), len(l.f.last))
	if err := f.write(l.f.last, 0); err != nil {
		l.warn(err)
	}
}
