// Package lockfile lets one writer at a time through to a file, with a lock file beside it, so that
// every commit can be fenced and every holder can be seen and cleared by an operator.
//
//	hold, err := lockfile.Acquire(ctx, path, lockfile.Options{})
//	if err != nil {
//		return err // names the holder and the command that clears it
//	}
//	defer hold.Release()
//	old, err := hold.Read()
//	…
//	err = hold.Commit(changed)
//
// What it guarantees, for all processes of one host on a local file system, with hard links or
// without, on every path that does not use Unlock with Force:
//
//  1. No record is ever lost. Commit re-reads the lock immediately before its rename; if the lock no
//     longer carries this hold's token nothing is committed, and the error matches ErrLost.
//  2. A live holder never loses its lock to an automatic step. The one automatic break is of a lock
//     whose holder is provably dead. Age is never a reason, and no clock decides a break or a sweep.
//
// The price is a block where death cannot be proven: a holder on another host, an empty or unreadable
// lock. Acquire then fails with a *HeldError when its time is up, and an operator decides.
//
// What it does not guarantee: anything on a folder that two hosts write; and, after a forced unlock of
// a holder that still runs, that holder's commit inside its own fence-to-rename window, which may land
// over a newer one.
//
// Only waiting reads the clock (the monotonic one); the age in messages compares the lock's times with
// this host's wall clock, and decides nothing.
//
// The rules, the names beside the lock and the steps are those of the specification of the write lock
// (docs/format.md has the bytes). Reading the source: acquire.go and publish.go take the lock, break.go
// clears a dead holder's, move.go is how any lock leaves its name, hold.go is what a holder does.
package lockfile
