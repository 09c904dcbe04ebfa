// Package granthttp is a grant.Store that works through a service (cmd/stiled): the same store over HTTP, and what
// both sides of it share: the bodies of commands, the names of headers, and how errors travel.
//
// It guarantees what grant.Store promises, since the service's own store does the reading and swapping; an answer
// that is lost on the way is grant.ErrUnknown, never success and never a refusal. Commands (Do) are evaluated by the
// service: by its clock, behind its fence, and with its look at the estate's other containers. A session's secret
// leaves the client only in the commands that need it, and is on no page.
//
// It does not guarantee that the service can be reached, nor that the way to it is private: that is TLS's, or the
// loopback's. Swap and Restore need an operator's token: who can write pages is the estate's operator.
//
// Sessions and witnesses lie in the user's own state folder, as those of an estate on disk do. The clock that is
// trusted is the service's.
//
// The package links no net/http. A Transport carries the requests: package direct by net/http in this process,
// package pipe by a child process that has it linked.
package granthttp
