// Package local keeps the containers of an estate in its folder: one file for each revision of a page, and
// beside them the objects that pages name. It is the Store of one machine.
//
//	store, err := local.Open(estate, local.Options{})
//	rev, replayed, err := store.Do(ctx, grant.Request{Command: …})
//
// What it guarantees, for all processes of one host on a local file system, with hard links or without:
//
//  1. Swap is a compare-and-swap. A page is published by the exclusive creation of the one name that follows
//     its base, and no such name ever goes away again: so whoever comes with an older base, however late,
//     finds it taken. A restore takes that same name, and ends with it whatever was under way.
//  2. A Swap that reports success is on the disk, and so is all that it stands on. When that cannot be told
//     (a sync failed after the page was there) it says grant.ErrUnknown, and no later read in this process
//     vouches for the page until the sync has succeeded.
//  3. What cannot be read is a *BlockError that names the file and the one command that helps. It is never
//     skipped, and nothing is removed but by that command, which keeps the bytes.
//  4. Objects are whole or absent; reading one to its end checks its hash.
//
// A crash leaves at most an unpublished file, which goes when its writer is provably dead. Without hard links
// a writer that dies while it writes a page leaves a torn one, a block.
//
// What it does not guarantee: anything on a folder that two hosts write; anything against who may write the
// folder, except that a page which was changed, went missing or came back older is noticed: by its hash, by
// the place that it should have, and by the witness that each user keeps outside the estate.
//
// Whose clock it trusts: the host's wall clock gives the stamps (Now). It decides no swap; what it decides is
// said in package grant.
//
// Reading the source: layout.go has the names, head.go finds the last of them, swap.go and nolinks.go publish
// the next, do.go is a command from end to end, session.go and witness.go are what lies outside the estate.
package local
