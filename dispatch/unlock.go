package dispatch

import (
	"context"
	"errors"

	"github.com/stile-lock/stile/lockfile"
)

// Unlock removes the lock of an agent's log on an operator's behalf, as lockfile.Unlock does; show is called
// with the lock first. An agent without a folder has no lock.
func (e *Estate) Unlock(ctx context.Context, agent string, force bool, show func(lockfile.State)) (done lockfile.Unlocked, err error) {
	a, err := e.agent(agent, false)
	if err != nil {
		return lockfile.Unlocked{}, err
	}
	defer func() { err = errors.Join(err, a.close()) }()
	return lockfile.Unlock(ctx, a.log, lockfile.UnlockOptions{Force: force, Show: show, UnlockHint: a.unlock(), Seams: a.seams})
}

// Lock reads the lock of an agent's log. It changes nothing.
func (e *Estate) Lock(agent string) (st lockfile.State, err error) {
	a, err := e.agent(agent, false)
	if err != nil {
		return lockfile.State{}, err
	}
	defer func() { err = errors.Join(err, a.close()) }()
	return a.status()
}

func (a *agent) status() (lockfile.State, error) { return lockfile.Status(a.log, a.lockOptions()) }
