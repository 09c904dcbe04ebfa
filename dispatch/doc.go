// Package dispatch keeps the record of every dispatch of work to an agent, and the board that people and
// agents read, in an estate that many processes share.
//
// # What it guarantees
//
// Each agent has a log, agents/NAME/spawn-log.json, guarded by the lock file beside it. A dispatch that
// OpenDispatch reported is in the log, once, whatever else writes there or is killed meanwhile; one that
// CloseDispatch reported is closed, and nothing else in the log is another byte. The agent's board,
// agents/NAME/board/board.json, is changed in the same hold, fenced again: a board is behind its log when a
// writer died or lost its lock between the two, and Check says so, and Repair mends it. What else stands in
// a log or a board, put there by other tools or by hand, is kept byte for byte.
//
// Reading takes no lock and changes nothing; a reader sees each file whole, as some writer left it.
//
// # What it does not
//
// It does not guard a log or a board against programs that write without the lock. Log and board are two
// files: between the two renames a reader may see the log alone. After a forced unlock of a holder that
// still runs, what package lockfile says of that case holds here too, for the board as for the log.
//
// # Clocks
//
// The times in records and items are this host's, for people; nothing is decided by them. Check calls a
// lock held for more than a minute a problem, by its age. Waiting is measured on the monotonic clock.
package dispatch
