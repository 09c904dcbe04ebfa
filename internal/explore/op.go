package explore

import (
	"errors"
	"fmt"
	"io/fs"
	"syscall"

	"github.com/stile-lock/stile/internal/proc"
	"github.com/stile-lock/stile/internal/seam"
)

// kind is what an actor stops for.
type kind uint8

const (
	opCreate kind = iota
	opOpen
	opLink
	opRename
	opRemove
	opLstat
	opReadlink
	opList
	opSyncDir
	opRead
	opWrite
	opStat
	opChmod
	opChown
	opSync
	opClose
	opJudge // asks whether a process lives
	opSleep // waits for the lock
	opEnd   // has done what it was to do
)

var kindNames = [...]string{
	"create", "open", "link", "rename", "remove", "lstat", "readlink", "list", "syncdir",
	"read", "write", "stat", "chmod", "chown", "sync", "close", "judge", "sleep", "end",
}

func (k kind) String() string { return kindNames[k] }

// op is one step that an actor is about to take. It says everything that the step's effect depends on
// besides the world, and can be compared: code that takes another step after the same results is not
// deterministic, and cannot be explored.
type op struct {
	kind   kind
	name   string // in the one folder there is; of a file operation, the name it was opened by
	to     string // of a link or rename
	data   string // of a write; of a list, the prefix
	file   int    // of a file operation: which of the files this actor has opened
	n      int    // of a read, the size of the buffer; of an end, the records added so far
	mode   fs.FileMode
	holder proc.Holder // of a judge, without its Proc
	id     proc.ID     // of a judge, when it has one
	hasID  bool
}

// obs is what an actor learns from a step, and all that it learns of the world.
type obs struct {
	errno syscall.Errno
	file  int    // of an open or create, which file it is
	data  string // what was read, or the names listed, one a line
	mode  fs.FileMode
	size  int64
	judge proc.Judgement
	how   signal
}

// signal is what else an actor can be told.
type signal uint8

const (
	goOn   signal = iota
	late          // the wait is over because its time is up
	killed        // the process is gone: nothing it does has an effect any more
)

var errKilled = errors.New("process killed")

// local is what the scheduler knows of an actor's inside, besides the step it is about to take.
type local struct {
	step    seam.Step // the last named step
	token   string    // of the hold in hand
	ended   string    // tokens of holds that are over, joined
	outcome outcome   // of an opEnd
	fault   string    // what went wrong, for people
}

// outcome is how an actor's work came out, as it was told.
type outcome uint8

const (
	working outcome = iota
	done            // a success was reported
	blocked         // a *HeldError: somebody or something is in the way
	lost            // fenced out as often as it may try
	failed          // any other error
)

func (o outcome) String() string {
	return [...]string{"working", "done", "blocked", "lost", "failed"}[o]
}

// request is an actor at a gate.
type request struct {
	op    op
	local local
}

// port is an actor's end of its gate. The other end is an instance. Both use channels only, so that
// an actor at the gate is durably blocked in a testing/synctest bubble, and one that blocks anywhere
// else is a deadlock that the bubble reports.
type port struct {
	req   chan request
	res   chan obs
	local local
	dead  bool
}

func (p *port) do(o op) obs {
	if p.dead {
		return obs{how: killed}
	}
	p.req <- request{o, p.local}
	r := <-p.res
	if r.how == killed {
		p.dead = true
	}
	return r
}

// instance is one run of an actor's program, stopped at a gate.
type instance struct {
	port *port
	at   request
}

// start runs program to its first gate.
func start(program func(*port)) *instance {
	in := &instance{port: &port{req: make(chan request), res: make(chan obs)}}
	go program(in.port)
	in.at = <-in.port.req
	return in
}

// step gives the actor the result of the step it is at, and returns when it is at the next.
func (in *instance) step(r obs) {
	in.port.res <- r
	in.at = <-in.port.req
}

// stop ends the run. What the program still does has no effect, and it takes no more steps.
func (in *instance) stop() { in.port.res <- obs{how: killed} }

func (o op) String() string {
	switch o.kind {
	case opLink, opRename:
		return fmt.Sprintf("%s %s %s", o.kind, role(o.name), role(o.to))
	case opList:
		return "list " + role(o.data)
	case opJudge:
		return fmt.Sprintf("judge %d", o.holder.PID)
	case opSleep, opEnd, opSyncDir:
		return o.kind.String()
	}
	return fmt.Sprintf("%s %s", o.kind, role(o.name))
}
