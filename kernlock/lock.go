package kernlock

import "context"

// Handle names one target for any number of holds. Its methods may be called
// from any number of goroutines; two holds at once exclude each other as two
// processes do.
type Handle struct{}

// Lock is one hold of a lock.
type Lock struct{}

// Open makes target canonical and checks the options. It neither creates nor
// opens the lock file.
func Open(target string, opts Options) (*Handle, error) { panic("todo") }

// Acquire takes the lock, waiting as the policy says.
func (h *Handle) Acquire(ctx context.Context) (*Lock, error) { panic("todo") }

// TryAcquire takes the lock if it is free, without waiting.
func (h *Handle) TryAcquire() (*Lock, *Duplicate, error) { panic("todo") }

// Close ends the handle. Holds that are still open stay valid.
func (h *Handle) Close() error { panic("todo") }

// Target is the canonical path of what is guarded.
func (h *Handle) Target() string { panic("todo") }

// LockPath is the path of the lock file.
func (h *Handle) LockPath() string { panic("todo") }

// LockID is the first 16 hex digits of the SHA-256 of Target.
func (h *Handle) LockID() string { panic("todo") }

// Acquire is Open, Acquire and, at the Release, Close.
func Acquire(ctx context.Context, target string, opts Options) (*Lock, error) { panic("todo") }

// TryAcquire is Open, TryAcquire and, at the Release, Close.
func TryAcquire(target string, opts Options) (*Lock, *Duplicate, error) { panic("todo") }

// Fence reports whether this hold still guards the target: nil, or an error
// that matches ErrLost. Call it just before a commit.
func (l *Lock) Fence() error { panic("todo") }

// Context ends when the lock is released or the context given to Acquire
// ends. An Acquire of the same lock through it is refused with ErrReentrant.
func (l *Lock) Context() context.Context { panic("todo") }

// Release lets go.
func (l *Lock) Release() error { panic("todo") }

// Warning is why the holder record could not be written, or nil.
func (l *Lock) Warning() error { panic("todo") }

// Target is the canonical path of what is guarded.
func (l *Lock) Target() string { panic("todo") }

// LockPath is the path of the lock file.
func (l *Lock) LockPath() string { panic("todo") }

// LockID is the first 16 hex digits of the SHA-256 of Target.
func (l *Lock) LockID() string { panic("todo") }

// Inherit makes processes that are started from now on inherit the lock
// (its descriptor is no longer close-on-exec), so that it outlives this
// process for as long as one of them runs. Release then lets go by closing
// alone and writes released_at only when nothing else holds the lock still;
// otherwise it returns a *StillHeldError. On Windows it is ErrUnsupported.
func (l *Lock) Inherit() error { panic("todo") }

// Descriptor is the lock's file descriptor number, for exec without a fork.
func (l *Lock) Descriptor() uintptr { panic("todo") }

// Status says what is known of target's lock, without taking it. Of opts
// only Exact counts.
func Status(target string, opts Options) (*Report, error) { panic("todo") }

// Survey calls visit for every kernel lock found in dir and the folders
// below it, in path order: files named *.lock that hold a record, are empty,
// or are held in the kernel. An entry that cannot be read is visited with
// its error and a Report with LockPath alone. Links are not followed.
func Survey(ctx context.Context, dir string, visit func(*Report, error) error) error { panic("todo") }

// Incidents reads the incident rows beside target's lock. Of opts only Exact
// counts. No file is no rows.
func Incidents(target string, opts Options) (*IncidentLog, error) { panic("todo") }
