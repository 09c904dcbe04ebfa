// Package register keeps what has landed in a container: whole trees of artifacts, by their content, each brought
// by one landing of a grant.
//
//	reg := register.Of(store, "atlas")
//	tree := &register.Tree{}
//	err := tree.AddDir("out")
//	receipt, err := reg.Land(ctx, register.Landing{Command: grant.Land{…}, Tree: tree})
//	var refused *register.RefusedError // the grant had ended: what it brought is kept, under refused.Name
//
// What it guarantees, on a grant.Store that keeps its word:
//
//  1. A landing is there whole or not at all. Its artifacts and its manifest are on the disk before the page names
//     it, and the page names it by one compare-and-swap: the one in package grant, and no other step.
//  2. What is refused for its grant (FENCED, NOT_HOLDER, EXPIRED) is kept whole with the refusal, and given back
//     byte for byte, until somebody discards it with a reason. Nothing of it ever counts as landed.
//  3. What is read is what landed: a damaged artifact is found as it is read, and named; an exported folder is
//     replaced by one that was checked whole.
//  4. The collection removes nothing that a landing, a refused one, a reproduction or a landing under way needs,
//     and nothing at all where the history is not whole.
//  5. A name is one and the same file on every system (CheckName), and no export leaves its folder.
//
// What it does not guarantee: that the files of a tree are of one moment (each is whole; one that changes while it
// is read is found, unless it keeps its size within one tick of the file system's clock); anything against who
// may write the store, except that what was changed there is found; owners, times, set-id bits, extended attributes
// and hard links, which do not land.
//
// Whose clock it trusts: none. Stamps are the pages' own.
package register
