package record

import (
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/stile-lock/stile/internal/vfs"
)

// openLines is one open file, shared by the Lines and the appends that still wait for its disk.
type openLines struct {
	vfs.AppendFile
	info vfs.Info // as opened
	uses atomic.Int32

	// Of the appends through this file, numbered in the order of their writes.
	mu      sync.Mutex
	again   *sync.Cond // a sync has ended
	written int64      // the last one's number
	synced  int64      // all up to this number are on disk
	syncing bool
	named   bool // so is the file's name
	failed  error
}

func newOpenLines(f vfs.AppendFile, info vfs.Info) *openLines {
	o := &openLines{AppendFile: f, info: info}
	o.again = sync.NewCond(&o.mu)
	o.uses.Store(1)
	return o
}

// done gives up one use; the last closes the file.
func (f *openLines) done() error {
	if f.uses.Add(-1) == 0 {
		return f.Close()
	}
	return nil
}

// wrote numbers an append whose write is done.
func (f *openLines) wrote() int64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.written++
	return f.written
}

// sync returns when the numbered append is on disk. Of the callers at one time one asks the system,
// for all that is written by then; besides sparing calls, that gives its error to each of them: the
// system itself tells only one of those that share an open file, once. After an error nothing through
// this file is known to be on disk any more.
func (f *openLines) sync(number int64, folder func() error) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	for f.synced < number && f.failed == nil {
		if f.syncing {
			f.again.Wait()
			continue
		}
		f.syncing = true
		upTo, named := f.written, f.named
		f.mu.Unlock()
		err := f.SyncData()
		if err == nil && !named {
			// Whoever made the file, its name must be on disk too.
			err = folder()
		}
		f.mu.Lock()
		f.syncing = false
		if err != nil {
			f.failed = err
		} else {
			f.synced, f.named = upTo, true
		}
		f.again.Broadcast()
	}
	if f.synced < number {
		return fmt.Errorf("%w: %w", ErrNotDurable, f.failed)
	}
	return nil
}

// broken says whether a sync has failed, after which a new descriptor is needed to hear of the next.
func (f *openLines) broken() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.failed != nil
}
