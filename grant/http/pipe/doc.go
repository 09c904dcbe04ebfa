// Package pipe carries a granthttp store's requests through a child process, "stiled client": so the tool reaches a
// service without having net/http linked.
//
// It guarantees that an answer belongs to its request: a child answers one request at a time, and one whose request was
// given up is ended. The server's address and the token are the child's to find, in its environment: they go through no
// pipe and no argument.
//
// It does not guarantee that a request was not sent when the child died: that is an error which says nothing, and the
// store makes grant.ErrUnknown of it. It reads no clock.
package pipe
