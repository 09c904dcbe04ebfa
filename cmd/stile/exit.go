package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"

	"github.com/stile-lock/stile/dispatch"
	"github.com/stile-lock/stile/internal/estate"
	"github.com/stile-lock/stile/kernlock"
	"github.com/stile-lock/stile/lockfile"
	"github.com/stile-lock/stile/record"
	"github.com/stile-lock/stile/register"
)

// Exit codes of commands that run a command of the user's. They are those of
// sysexits.h where it has one, far from the codes that commands themselves
// like to use. docs/cli.md has the table.
const (
	exitUsage       = 64 // the arguments can never work
	exitBadFile     = 65 // a lock file or target that is not what it should be
	exitNoFolder    = 66 // the target's folder does not exist
	exitUnavailable = 69 // no locks on this filesystem; no such command
	exitResources   = 71 // out of descriptors, locks or processes
	exitNoSpace     = 73 // nothing can be created or written
	exitIO          = 74 // any other error of the system
	exitHeld        = 75 // held or timed out; -E changes it
	exitLost        = 76 // the lock was lost while the command ran
	exitPermission  = 77
)

// Exit codes of all other commands.
const (
	exitFailed  = 1
	exitProblem = 2
)

// failure is an error on its way to the user: its exit code for commands
// that run a command, its name in JSON, and what helps.
type failure struct {
	exit int
	code string
	hint string
	err  error
	// refused: by a grant's page. In commands that run no command that is 2, whatever the code.
	refused bool
}

func (f *failure) Error() string { return f.err.Error() }
func (f *failure) Unwrap() error { return f.err }

func usagef(format string, args ...any) error {
	return &failure{exit: exitUsage, code: "usage", hint: "--help shows the flags", err: fmt.Errorf(format, args...)}
}

func usageHint(hint, format string, args ...any) error {
	return &failure{exit: exitUsage, code: "usage", hint: hint, err: fmt.Errorf(format, args...)}
}

// classify maps any error to its exit code, its JSON code and its hint. An
// error that is nobody's is "io_error"; none but a held lock is ever "held".
func classify(err error) *failure {
	var f *failure
	if errors.As(err, &f) {
		return f
	}
	if f := classifyServer(err); f != nil {
		return f
	}
	var unrecorded *register.UnrecordedError
	if errors.As(err, &unrecorded) {
		return &failure{exit: exitIO, code: "unrecorded", hint: "to all others the command is in doubt, until --resolve says what became of it", err: err}
	}
	if f := classifyGrant(err); f != nil {
		return f
	}
	if f := classifyRegister(err); f != nil {
		return f
	}
	// The order matters: a timeout carries the reason that its incident was
	// not recorded, and a refused lock file the system's word for why.
	for _, k := range knownFailures() {
		if errors.Is(err, k.err) {
			return &failure{exit: k.exit, code: k.code, hint: k.hint, err: err}
		}
	}
	if f := classifySystem(err); f != nil {
		f.err = err
		return f
	}
	switch {
	case errors.Is(err, fs.ErrPermission):
		return &failure{exit: exitPermission, code: "permission_denied", hint: hintPermission, err: err}
	case errors.Is(err, fs.ErrNotExist):
		return &failure{exit: exitNoFolder, code: "no_such_folder", hint: hintNoFolder, err: err}
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return &failure{exit: exitHeld, code: "cancelled", err: err}
	}
	return &failure{exit: exitIO, code: "io_error", err: err}
}

const (
	hintNoFolder   = "create the folder first: stile never does, lest a mistyped path be locked in silence"
	hintPermission = "a lock file has the permissions of the file it guards; ask whoever owns the folder"
	hintNoSpace    = "free some space or choose another folder; the lock was not taken"
	hintReadOnly   = "the lock file must be created beside the target, on a filesystem that can be written"
)

// knownFailure is what the tool makes of an error.
type knownFailure struct {
	err  error
	exit int
	code string
	hint string
}

// knownFailures is made when something has failed: as a variable it would be made at each start.
func knownFailures() []knownFailure {
	return []knownFailure{
		{record.ErrNotDurable, exitIO, "not_durable", "the change is in the file; after a power cut it may be gone"},
		{kernlock.ErrTimeout, exitHeld, "lock_acquire_timeout", "see who holds it with 'stile status'; -w SECS waits longer; never delete the lock file"},
		{kernlock.ErrHeld, exitHeld, "duplicate", "without -n, run waits for its turn"},
		{kernlock.ErrReentrant, exitUsage, "reentrant", "the lock is held already: run the command without another 'stile run'"},
		{kernlock.ErrLost, exitLost, "lock_lost", "something removed or replaced the lock file while the command ran: check the target; lock files are never deleted by hand"},
		{record.ErrStale, exitLost, "file_changed", "a program that does not ask for the lock writes to the file, too"},
		{kernlock.ErrUnsupported, exitUnavailable, "unsupported_filesystem", "'stile doctor DIR' tests what a folder can do"},
		{kernlock.ErrOtherFamily, exitBadFile, "other_family", "it is a lock of another kind, that the program which made it works with; it was not touched"},
		{kernlock.ErrBadLockFile, exitBadFile, "bad_lock_file", "a lock file is a plain file with one name; look at what lies there, it was not touched"},
		{kernlock.ErrNameTooLong, exitUsage, "name_too_long", "choose a shorter file name: the lock's own name is longer still"},
		{record.ErrNoFile, exitNoFolder, "no_such_file", "check the name"},
		{record.ErrNotRegular, exitBadFile, "not_a_regular_file", "only plain files can be changed"},
		{record.ErrFormat, exitBadFile, "bad_format", "nothing was changed; mend the file at the place named"},
		{record.ErrRecord, exitBadFile, "bad_record", "mend it at the place named"},
		{lockfile.ErrLost, exitLost, "lock_lost", "an operator removed the lock by force; look at what was done meanwhile"},
		{dispatch.ErrLog, exitBadFile, "unreadable_log", "nothing was changed; mend the file at the place named"},
		{dispatch.ErrNewerBoard, exitBadFile, "newer_board", "use the stile that wrote it; nothing was changed"},
		{dispatch.ErrBoard, exitBadFile, "unreadable_board", "nothing was changed; mend the file at the place named, or move it away and run 'stile board repair --agent NAME'"},
		{dispatch.ErrNoDispatch, exitNoFolder, "no_such_dispatch", "'stile dispatch list' shows those that there are"},
		{dispatch.ErrDuplicate, exitBadFile, "duplicate_dispatch", "nothing was changed; give one of them another id in the log"},
		{dispatch.ErrClosed, exitBadFile, "already_closed", "nothing was changed; 'stile dispatch show' has what came of it"},
		{dispatch.ErrText, exitUsage, "bad_text", "texts are UTF-8, at most 64 KiB; put more into a file and name that"},
		{lockfile.ErrBusy, exitHeld, "lock_busy", "try again in a moment"},
		{lockfile.ErrHeld, exitHeld, "lock_held", ""}, // the message names the command that clears it
		{lockfile.ErrChanged, exitHeld, "lock_changed", "nothing was removed; see who holds it now with 'stile status'"},
		{lockfile.ErrKernelLock, exitBadFile, "kernel_lock", "it is free as soon as its holder ends; see who that is with 'stile status'"},
		{lockfile.ErrNotLockFile, exitBadFile, "bad_lock_file", "a lock file is a plain file with one name; look at what lies there, it was not touched"},
		{lockfile.ErrNameTooLong, exitUsage, "name_too_long", "choose a shorter file name: the lock's own name is longer still"},
		{estate.ErrNone, exitNoFolder, "no_estate", "'stile init' makes one; --estate DIR or STILE_ESTATE names one"},
		{estate.ErrMissing, exitNoFolder, "no_estate", "'stile init' with the same name makes it"},
		{estate.ErrTwo, exitBadFile, "two_estates", "name the one that is meant: --estate DIR, or STILE_ESTATE for all commands; nothing was changed"},
		{estate.ErrNotEstate, exitBadFile, "not_an_estate", "'stile init' makes it one; --estate DIR names another"},
		{estate.ErrForeign, exitBadFile, "foreign_estate", "if you trust whoever owns it, name it: --estate DIR, or STILE_ESTATE"},
		{estate.ErrNewer, exitBadFile, "newer_estate", "use the stile that wrote it; nothing was changed"},
		{estate.ErrLink, exitBadFile, "link", "nothing in an estate may be a symbolic link; look at what lies there, it was not followed"},
		{estate.ErrDamaged, exitBadFile, "damaged_estate", "look at what lies there; nothing was changed"},
		{estate.ErrName, exitUsage, "bad_name", "1 to 240 bytes, printable, as the name of one folder on every system: no / \\ < > : \" | ? *"},
		{estate.ErrTaken, exitUsage, "bad_name", "write it as it is there, or choose another"},
		{estate.ErrNoAgent, exitNoFolder, "no_such_agent", "'stile dispatch list' shows the agents that there are; 'stile dispatch open' makes one"},
		{kernlock.ErrUsage, exitUsage, "usage", "--help shows the flags"},
	}
}
