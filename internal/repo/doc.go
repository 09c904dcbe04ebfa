// Package repo holds the tests of the repository itself: which package may import which, what the tool may
// link, that every package and every link in the documents is what it claims to be. It has no code of its
// own. Each check is a function over plain data, and is first shown something that it must refuse.
package repo
