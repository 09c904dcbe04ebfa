// Package robustness holds tests with real processes, real filesystems and
// real peers: they are killed, stopped and mixed, and what must never happen
// is looked for afterwards. It has no code of its own.
package robustness
