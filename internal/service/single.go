package service

import (
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/stile-lock/stile/internal/display"
	"github.com/stile-lock/stile/kernlock"
)

// TakenError says that a server serves the estate already.
type TakenError struct {
	Estate  string
	PID     int64 // 0 when it is not known
	Address string
	Since   time.Time
}

func (e *TakenError) Error() string {
	who := "another server"
	if e.PID != 0 {
		who = fmt.Sprintf("process %d at %s, since %s,", e.PID, display.Text(e.Address), e.Since.UTC().Format(time.RFC3339))
	}
	return fmt.Sprintf("%s serves the estate %s already", who, display.Text(e.Estate))
}

// Only makes this process the estate's one server, until release or its end, however that comes: the kernel holds the
// lock. address is what the next one is told.
func Only(estate, address string) (release func() error, err error) {
	dir := filepath.Join(estate, "service")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("serve the estate: %w", err)
	}
	lock, held, err := kernlock.TryAcquire(filepath.Join(dir, "server"), kernlock.Options{
		Policy: kernlock.SingleFlight, Agent: "stiled", Operation: address,
	})
	if err != nil {
		return nil, fmt.Errorf("serve the estate: %w", err)
	}
	if held != nil {
		taken := &TakenError{Estate: estate}
		if h := held.Holder; h != nil {
			taken.PID, taken.Address, taken.Since = h.PID, h.Operation, h.AcquiredAt
		}
		return nil, taken
	}
	return lock.Release, nil
}
