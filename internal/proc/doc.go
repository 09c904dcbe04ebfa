// Package proc says who this process is, in words another process can check, and whether a process
// that wrote such words is provably dead.
//
// It guarantees that Dead is said only on positive evidence, in the sense of the table at Judge: the
// system's own answer that the process does not exist, a corpse that nobody has collected, another
// process under the same number, or a restart since. Missing, unreadable or contradictory evidence
// gives Unknown or Alive, and callers treat both as "in the way".
//
// It does not guarantee that a dead process is ever recognised: a reader that cannot see enough blocks
// instead. Nor can it see through two machines that share one host name when the record carries no
// proc member, nor follow a process that was checkpointed and restored: that one has a new start time.
// A verdict holds for the moment of the call. Dead is final; Alive may be over when it is read.
//
// The evidence it trusts: the kernel's answers to a probe, to uname and to statfs; /proc when it is a
// real procfs; and the record itself, since whoever can write the record could delete it as well. It
// trusts no clock: start times are compared for equality only, never with the time of day.
package proc
