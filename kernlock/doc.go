// Package kernlock lets one writer at a time through to a file, with the
// kernel as the authority: flock(2) on Unix, a locked byte on Windows.
//
// # What it guarantees
//
// While a Lock is held and its Fence is nil, no other process and no other
// goroutine holds a lock of the same target, whichever name of the target it
// used and whether it came through this package, flock(1), Python's
// fcntl.flock or anything else that takes flock(2) on <target>.lock. When the
// holder dies, by whatever signal, the kernel frees the lock. A wait always
// ends: in a Lock, or in an error that says who is in the way.
//
// # What it does not
//
// The lock is advisory: a program that does not ask is not stopped. It is for
// one machine: on a network or FUSE filesystem another machine, or another
// mount of the folder, may not be excluded (stile doctor tells). The holder
// record, the incidents and all that Status says are for people; nothing in
// this package decides who holds by reading them. A lock file is never
// deleted, by anyone: a waiter on a deleted file and a newcomer on a new one
// would not exclude each other, and although both notice (the newcomer's
// check after locking, the holder's Fence), the exclusion is gone meanwhile.
//
// # Clocks
//
// Waits are measured on the monotonic clock. Times in records and incidents
// are this host's wall clock; they are shown and decide nothing.
//
// The rules are those of docs/guarantees.md; bytes on disk are in
// docs/format.md.
package kernlock
