package main

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/stile-lock/stile/grant"
	"github.com/stile-lock/stile/grant/local"
	"github.com/stile-lock/stile/grant/session"
)

// lostCode is the JSON code of a grant that was lost under its command.
const lostCode = "grant_lost"

// lastGrace is how long a command has to end when its grant is gone already.
const lastGrace = 2 * time.Second

// mostRest is how long what a command has started may outlive it once both were told to end.
const mostRest = time.Minute

// hold runs the command under a grant, and ends the grant where that can be done.
func (g *grantRun) hold(x *local.Session, at grant.Revision) (int, error) {
	g.signals.ready()
	if n := g.signals.pending(); n != 0 {
		g.stays(at)
		return 0, &endedBySignal{n}
	}
	cmd := newGroupCommand(g.signals)
	k := &keeping{run: g, x: x, cmd: cmd, keeper: g.client.Keep(x, at), quit: make(chan struct{}), killed: make(chan struct{}), done: make(chan struct{})}
	go k.loop(at)
	code, err := cmd.run(g.path, g.argv, g.environment(x))
	k.awaitRest()
	lost := k.stop()
	switch {
	case err != nil:
		g.stays(at) // it did not start
		return 0, err
	case lost != nil:
		if head, ok := k.livesOn(); ok {
			g.stays(head)
		}
		return 0, lost
	}
	return code, g.finish(x, at, code)
}

// landings counts those of the page's grant.
func landings(p *grant.Page) int64 {
	if p.Landing == nil {
		return 0
	}
	return p.Landing.N
}

// finish releases a grant under which something has landed since it was at, if the command succeeded.
func (g *grantRun) finish(x *local.Session, at grant.Revision, code int) error {
	ctx := context.Background()
	head, err := g.client.Store.Head(ctx, g.name)
	if err != nil {
		return err
	}
	p := head.Page()
	if p.Holder == nil || p.Holder.Session != x.Secret.Hash() {
		return nil // it was released by the command
	}
	if code != 0 || landings(p) == landings(at.Page()) {
		g.stays(head)
		return nil
	}
	r, err := g.client.Release(ctx, x, "")
	if err != nil {
		// The command has succeeded, and its landing is in the register.
		g.event("release_failed", p, err, "the grant could not be released: %s", message(g.classify(err)))
		g.stays(head)
		return nil
	}
	p = r.Revision.Page()
	g.event("released", p, nil, "grant %d on %s is released; %s", p.Grant, g.name, nextText(p))
	return nil
}

// keeping extends the grant beside the command, and ends the command when that is no longer possible.
type keeping struct {
	run    *grantRun
	x      *local.Session
	cmd    *command
	keeper *session.Keeper
	quit   chan struct{}
	killed chan struct{} // closed when the command's group was
	once   sync.Once
	done   chan struct{}
	lost   error // read after done
}

// awaitRest gives what a command that was told to end has started the same time to end as the command itself.
func (k *keeping) awaitRest() {
	look := time.NewTicker(10 * time.Millisecond)
	defer look.Stop()
	most := time.NewTimer(mostRest)
	defer most.Stop()
	for k.cmd.left() {
		select {
		case <-k.killed:
			return
		case <-most.C:
			k.kill() // a heartbeat got through at the last moment, so that the grant does not end it
		case <-look.C:
		}
	}
}

// kill ends all that is left.
func (k *keeping) kill() {
	k.once.Do(func() {
		k.cmd.kill()
		close(k.killed)
	})
}

// lostError is the loss of a grant under its command.
type lostError struct {
	grant int64
	cause error
}

func (e *lostError) Error() string {
	if e.cause == nil {
		return fmt.Sprintf("grant %d could not be kept any longer, and its command was ended", e.grant)
	}
	return fmt.Sprintf("grant %d was lost, and its command ended: %s", e.grant, message(classify(e.cause)))
}

func (e *lostError) Unwrap() error { return e.cause }

// livesOn tells whether the grant goes on although its command was told to end: a heartbeat may have got
// through at the last moment.
func (k *keeping) livesOn() (grant.Revision, bool) {
	ctx := context.Background()
	head, err := k.run.client.Store.Head(ctx, k.run.name)
	if err != nil {
		return head, false
	}
	now, err := k.run.client.Store.Now(ctx)
	p := head.Page()
	return head, err == nil && p.Holder != nil && p.Holder.Session == k.x.Secret.Hash() && p.Expiry.Sub(now) > p.Params.Extension.Duration()/4
}

// stop ends the keeping, and says whether the grant was lost.
func (k *keeping) stop() error {
	close(k.quit)
	<-k.done
	if k.lost == nil {
		return nil
	}
	hint := k.run.flagged("stile grant petition " + shown(k.run.name))
	return &failure{exit: exitLost, code: lostCode, hint: hint + " (and land on the new head, with new ids, when it is granted)", err: k.lost}
}

func (k *keeping) loop(at grant.Revision) {
	defer close(k.done)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	heads := make(chan grant.Revision)
	go k.watch(ctx, at, heads)
	timer := time.NewTimer(k.keeper.Tick())
	defer timer.Stop()
	for {
		var notices []session.Notice
		select {
		case <-k.quit:
			return
		case head := <-heads:
			notices = k.keeper.Seen(head)
		case <-timer.C:
			notices = k.keeper.Step(ctx)
			timer.Reset(k.keeper.Tick())
		}
		for _, n := range notices {
			k.take(n)
		}
	}
}

// watch reads each new head: it may show that the grant has ended, which else the next heartbeat would.
func (k *keeping) watch(ctx context.Context, at grant.Revision, heads chan<- grant.Revision) {
	w, ok := k.run.client.Store.(grant.Watcher)
	for ok && ctx.Err() == nil {
		if err := w.Watch(ctx, k.run.name, at.Ref()); err != nil {
			return // the heartbeats tell
		}
		head, err := k.run.client.Store.Head(ctx, k.run.name)
		if err != nil || head.Ref() == at.Ref() {
			return
		}
		at = head
		select {
		case heads <- head:
		case <-ctx.Done():
		}
	}
}

// take does what a notice asks for.
func (k *keeping) take(n session.Notice) {
	g, until := k.run, clock(n.Expiry.Std())
	about := &grant.Page{Grant: k.x.Grant, Expiry: n.Expiry, Holder: &grant.Holder{Agent: k.x.Agent, Session: k.x.Secret.Hash()}}
	switch n.Kind {
	case session.Beat:
		if g.json {
			g.emit(&runEvent{Event: string(n.Kind)}, about)
		}
	case session.BeatFail:
		g.event(string(n.Kind), about, n.Err, "grant %d cannot be extended, and ends at %s unless that changes: %v", k.x.Grant, until, n.Err)
	case session.Capped:
		g.event(string(n.Kind), about, nil, "grant %d ends at %s, and cannot be extended further: land what there is before", k.x.Grant, until)
	case session.Stop:
		k.lost = &lostError{grant: k.x.Grant}
		g.event(string(n.Kind), about, nil, "grant %d ends at %s: its command is asked to end", k.x.Grant, until)
		k.cmd.terminate()
	case session.Kill:
		k.kill()
	case session.Lost:
		k.ended(about, n.Err)
	case session.Released:
		g.event(string(n.Kind), about, nil, "grant %d on %s was released", k.x.Grant, g.name)
	}
}

// ended ends a command whose grant has ended.
func (k *keeping) ended(about *grant.Page, cause error) {
	k.lost = &lostError{grant: k.x.Grant, cause: cause}
	k.run.event(string(session.Lost), about, cause, "grant %d has ended: its command is ended", k.x.Grant)
	k.cmd.terminate()
	grace := time.NewTimer(lastGrace)
	defer grace.Stop()
	select {
	case <-k.quit:
	case <-grace.C:
		k.kill()
	}
}
