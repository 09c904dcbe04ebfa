// Package robustness holds the tests that need more than one process or more than this system: children
// that are killed or stopped, real file systems, and the Windows build under Wine. It has no code of its
// own; each test says by a skip what it lacks, and `make test` installs what it can.
package robustness
