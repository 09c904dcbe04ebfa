// Package explore runs the shipped lock file code under every schedule of a small world: a few
// processes and one folder, with hard links or without, where every file operation, every question
// whether a process lives and every wait is a gate, at which any other process may go first and, once,
// this one may be killed. When all are through or dead a clean writer must be through at once, or be
// blocked by what the specification says blocks, until that is cleared as it says. Tests only.
//
// What is checked in every schedule is in check.go and finish.go. Without force nothing may break. With
// force, what breaks must come under a residual that the specification names; each is counted.
//
// # How it searches
//
// A state is the folder, who is dead, and for each process its history: the results of all its steps.
// Processes share nothing else, and the code is deterministic when its clock, its random source and its
// judgement of who is dead are given, so equal histories mean an equal stack and equal variables. The
// search is over states, each looked at once. The code itself runs once for each distinct history of
// one process: a program stopped at its gate is given the next result, or, when it has gone another way
// meanwhile, is run again with all its results so far. It must then take the same steps; otherwise the
// search stops with a panic. All this is in a testing/synctest bubble, and gates are channels: code that
// blocks anywhere but at a gate is reported as a deadlock.
//
// # What it leaves out, and why that is sound
//
// Where a process stands at a step that is independent of everything others can do before it is taken,
// only that step is looked at. This is a persistent set of one; there are no cycles, because histories
// only grow, so nothing is put off for ever. Such steps are
//
//   - closing, syncing, and asking for the text of what is no link;
//   - reading or describing a file that no other live process has open for writing: files are written by
//     their makers only, through the one handle that made them;
//   - writing a file that nobody else has open and that has only names of its maker's own. Others could
//     get at it by such a name, but that is itself a violation here (NameTaken), so the assumption is
//     checked;
//   - opening a name of one's own making, for the same reason;
//   - asking about a process whose life cannot change any more.
//
// Kills are not looked at in front of such a step. The process may be killed before its next other
// step instead; what differs is the content of files that nobody reads, and handles that are closed by
// the death. The dead and, in worlds without force, those that are through count in a state only with
// what others can still learn of them.
//
// A waiter goes on when the lock, the claims that it saw, or the life of somebody that it asked about
// differ from what it saw, at most three times in one acquisition. When nobody else can go on, its time is up,
// and that must be because of a block that may be. Writers that are fenced out begin again at most twice.
//
// Worlds of three and four are searched up to a number of preemptions: switches away from a process that
// could have gone on. A state that was reached with fewer is not searched again.
//
// # Reading the source
//
// op.go, files.go and actor.go are a process and its gate; history.go runs the code; disk.go, state.go
// and explorer.go are the search; marks.go, check.go and finish.go the checks; faults.go the planted
// bugs; schedule.go what is kept in testdata/schedules. To save schedules anew: go test -save.
package explore
