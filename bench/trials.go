package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
)

// The jobs in which something goes wrong: a holder is killed or stopped, or the program that took the lock for another
// is gone. They speak through the page's slots.

func (p passage) enter(j job, page *sharedPage) error {
	page.store(wordSlots+2*j.id, mono())
	err := p.lock()
	if err == nil {
		page.store(wordSlots+2*j.id+1, mono())
	}
	return err
}

// workEnter holds until it is killed.
func workEnter(j job, p passage, page *sharedPage, ready func()) error {
	ready()
	if err := p.enter(j, page); err != nil {
		return err
	}
	nap(int64(tooLong))
	runtime.KeepAlive(p)
	return nil
}

// workQueue passes once. The bench starts one after the other, so they ask in that order: a gate for a thousand would keep
// the processors busy with looking at it.
func workQueue(j job, p passage, page *sharedPage, ready func()) error {
	log, err := openLog(j.log, 1)
	if err != nil {
		return err
	}
	defer log.close()
	counter := page.word(wordCounter)
	ready()
	ask := mono()
	if err := p.lock(); err != nil {
		return err
	}
	enter := mono()
	*counter++
	leave := mono()
	log.add(hold{ask, enter, leave})
	return p.unlock()
}

func (p passage) put(path, text string) error {
	if p.write != nil {
		return p.write(text)
	}
	temp := fmt.Sprintf("%s.new-%d", path, os.Getpid())
	if err := os.WriteFile(temp, []byte(text), 0o600); err != nil {
		return err
	}
	return os.Rename(temp, path)
}

// workPause holds, is stopped for a while, and writes when it runs again.
func workPause(j job, p passage, page *sharedPage, ready func(), say func(string, int64)) error {
	ready()
	if err := p.enter(j, page); err != nil {
		return err
	}
	if p.long != nil {
		p.long()
	}
	for page.load(wordTurn) == 0 {
		nap(1_000_000)
	}
	if err := p.put(j.path, "late\n"); err != nil {
		say("refused", 1)
	}
	_ = p.unlock() // an error when the lock is no longer this one's
	return nil
}

// workSecond is the next holder, and writes at once.
func workSecond(j job, p passage, page *sharedPage, ready func()) error {
	ready()
	page.store(wordSlots+2*j.id, mono())
	err := p.lock()
	if err == nil {
		err = p.put(j.path, "second\n")
	}
	if err != nil {
		return err
	}
	page.store(wordSlots+2*j.id+1, mono())
	return p.unlock()
}

// workWrap holds while its command runs, as os/exec runs one: the command inherits nothing.
func workWrap(j job, p passage, ready func()) error {
	err := p.lock()
	if err == nil {
		ready()
		err = exec.Command("sh", "-c", j.command).Run()
	}
	return errors.Join(err, p.unlock())
}

// workInside is the command of a wrapper: it stamps its coming and its going, and goes when it is told to.
func workInside(j job, page *sharedPage) error {
	page.store(wordSlots+2*j.id+1, mono())
	for until := mono() + int64(tooLong)/3; page.load(wordStop) == 0 && mono() < until; {
		nap(1_000_000)
	}
	page.store(wordSlots+2*j.id, mono())
	return nil
}
