// Package estate finds, makes and opens estates: the folders that hold agents' logs and boards, and
// containers.
//
// It guarantees that what is done through an open estate is done in the folder that was found, whatever
// becomes of the way to it, and that no symbolic link below it is followed. An estate that was found, not
// named, belongs to the caller. A name that Agent accepts is one folder's on every system that stile names.
//
// It does not guard anything: the locks beside the files do. Whoever may write an estate is its operator.
// Owners are not looked at on Windows. It reads no clock.
package estate
