// Package record changes shared files, one writer at a time: Update and Rewrite replace a file's
// content, Append adds a record to a JSON array, AppendLine and Lines add lines.
//
// # What it guarantees
//
// Among writers that use the same lock, no change is lost and none lands twice: every change is made
// under a hold, and the hold's Fence is asked immediately before the change lands. A hold that was
// lost before that (an operator forced it away, or removed a kernel lock's file) changes nothing; the
// whole read-modify-write runs again under a fresh hold. A reader that opens a file which is replaced
// (Update, Rewrite, Append) sees the old content or the new, whole. A line that was reported as added
// is in the file, whole, and no line of another writer runs into it.
//
// A file that is not what it should be is an error that names the place found, and is not changed.
//
// # What it does not
//
// Writers that use no lock, or one another family's, exclude nobody. Which lock guards a file is the
// caller's choice and must be the same for every writer: a kernel lock unless Options say otherwise,
// a lock file with LockFile. Replacing a file gives it a new inode: hard links to it keep the old
// content, and extended attributes are not kept. A reader of a file to which lines are added may meet
// a line that is still being written: what follows the last newline is not a line yet.
//
// # Clocks
//
// Waits and the time in which lost holds are tried again are measured on the monotonic clock. Nothing
// else reads one.
package record
