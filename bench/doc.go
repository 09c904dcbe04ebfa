// Command bench measures stile and its peers on the same work, in one run.
//
// Every workload runs its contestants in turn, several rounds, so that what
// else the machine does falls on all of them alike. A figure is the median of
// the rounds with their minimum and maximum; a ratio is taken round by round,
// and its median shown. Each workload also proves that the lock held: hold
// intervals never overlap and a shared counter loses no step.
//
// Nothing here is a test with a limit: a missed goal is printed as missed.
// README.md says what each workload does and what each contestant asks of the
// kernel.
package main
