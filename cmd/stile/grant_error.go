package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/stile-lock/stile/grant"
	"github.com/stile-lock/stile/grant/local"
	"github.com/stile-lock/stile/grant/session"
	"github.com/stile-lock/stile/internal/display"
	"github.com/stile-lock/stile/register"
)

// refusalObject is what a refusal was judged on, in the JSON of an error.
type refusalObject struct {
	Container string      `json:"container"`
	Op        grant.Op    `json:"op"`
	Rev       int64       `json:"rev"`
	State     grant.State `json:"state"`
	Grant     int64       `json:"grant"`
	Holder    *holderJSON `json:"holder"`
	Expiry    grant.Time  `json:"expiry"`
	Yours     int64       `json:"yours"`
	Ended     *endJSON    `json:"ended"`
	Turn      *turnJSON   `json:"turn"`
	Next      string      `json:"next"`
	// Quarantine is the document that has a refused landing; only of those.
	Quarantine grant.Digest `json:"quarantine,omitempty"`
}

type holderJSON struct {
	Agent   string       `json:"agent"`
	Session grant.Digest `json:"session"`
}

type endJSON struct {
	How      grant.How  `json:"how"`
	By       string     `json:"by"`
	At       grant.Time `json:"at"`
	Rev      int64      `json:"rev"`
	Reason   string     `json:"reason"`
	Operator bool       `json:"operator"`
}

type turnJSON struct {
	Petition int64      `json:"petition"`
	Place    int        `json:"place"`
	Open     bool       `json:"open"`
	From     grant.Time `json:"from"`
}

func holderOf(h *grant.Holder) *holderJSON {
	if h == nil {
		return nil
	}
	return &holderJSON{display.Text(h.Agent), h.Session}
}

func turnOf(t *grant.Turn) *turnJSON {
	if t == nil || t.Petition == 0 {
		return nil
	}
	return &turnJSON{t.Petition, t.Place, t.Open, t.From}
}

func refusalOf(r *grant.Refusal, next string) *refusalObject {
	o := &refusalObject{
		Container: display.Text(r.Container), Op: r.Op, Rev: r.Rev, State: r.State, Grant: r.Grant, Holder: holderOf(r.Holder),
		Expiry: r.Expiry, Yours: r.Yours, Turn: turnOf(r.Turn), Next: next,
	}
	if e := r.Ended; e != nil {
		o.Ended = &endJSON{e.How, display.Text(e.By.Name), e.At, e.Rev, display.Text(e.Reason), e.By.Role == grant.RoleOperator}
	}
	return o
}

// refusalExit is the exit code of a grant's own error in commands that run a command. In all others it is 2.
func refusalExit(code grant.Code) int {
	switch code {
	case grant.CodeBadInput, grant.CodeReasonRequired, grant.CodeOpIDReused:
		return exitUsage
	case grant.CodeLockMissing:
		return exitNoFolder
	case grant.CodeBadPage, grant.CodeNewer, grant.CodeRollback:
		return exitBadFile
	case grant.CodeExhausted, grant.CodeLimit:
		return exitResources
	case grant.CodeConflict, grant.CodeUnknown:
		return exitIO
	case grant.CodeExpired, grant.CodeFenced, grant.CodeNotHolder, grant.CodePastCap:
		return exitLost
	}
	return exitHeld
}

// classifyGrant names errors of grants; nil for others. Whatever a command was refused for keeps its code.
func classifyGrant(err error) *failure {
	switch {
	case errors.Is(err, local.ErrBadSession):
		return &failure{exit: exitBadFile, code: "bad_session", hint: "without it the grant ends at its expiry", err: err, refused: true}
	case errors.Is(err, local.ErrNoState):
		return &failure{exit: exitNoSpace, code: "no_state_folder", hint: "sessions are kept in $XDG_STATE_HOME/stile, by default ~/.local/state/stile", err: err}
	}
	code := grant.CodeOf(err)
	if code == "" {
		return nil
	}
	f := &failure{exit: refusalExit(code), code: string(code), err: err, refused: true}
	switch code {
	case grant.CodeUnknown:
		f.hint = "nobody knows whether it was done: give the same command again, and it is found or done"
	case grant.CodeConflict:
		f.hint = "nothing was changed: look again, and repeat it"
	case grant.CodeNewer:
		f.hint = "use the stile that wrote it; nothing was changed"
	case grant.CodeLockMissing:
		f.hint = "'stile grant status' lists the containers that there are"
	case grant.CodeLandingRuns:
		f.hint = "wait until it has ended, and ask again; 'stile status' shows who holds the container's fence"
	}
	return f
}

// fail reports how a grant command ended.
func (f *grantFlags) fail(err error) int {
	fl := f.classify(err)
	if f.json {
		printJSON(stdout, f.errorObject(fl))
	}
	if stdout.toldOf(err, f.json) || !f.json {
		f.print(os.Stderr, fl)
	}
	return exitOfOthers(fl)
}

// classify is classify with a refusal's own words.
func (f *grantFlags) classify(err error) *failure {
	fl := classify(err)
	var r *grant.Refusal
	if errors.As(err, &r) {
		f.complete(r)
		fl.hint = f.command(r)
		if r.Hint != "" {
			fl.hint += " (" + r.Hint + ")"
		}
		return fl
	}
	var block *local.BlockError
	switch {
	case fl.code == "no_space", fl.code == "quota_exceeded":
		fl.hint = "free some space, and repeat it; nothing was changed"
	case fl.code == "read_only_filesystem":
		fl.hint = "the estate, and the folder for sessions, must be on filesystems that can be written; nothing was changed"
	case fl.code == "no_such_folder" && fl.hint == hintNoFolder:
		fl.hint = "the folder for sessions, $XDG_STATE_HOME or ~/.local/state, must be one that can be made and written"
	case errors.As(err, &block):
		fl.hint = block.Hint + " (an operator's: what cannot be read is set aside, and kept)"
	case fl.code == string(grant.CodeRollback):
		fl.hint = f.flagged("stile grant restore " + shown(f.name) + " --reason WHY")
	case fl.code == string(grant.CodeLockMissing) && f.name != "":
		fl.hint = f.flagged("stile grant create "+shown(f.name)) + " (if it never was; 'stile grant status' lists those that are)"
	}
	return fl
}

// complete gives a refusal that was made before the page was read what is known of the container.
func (f *grantFlags) complete(r *grant.Refusal) {
	if r.Rev != 0 || f.name == "" {
		return
	}
	c, err := f.open()
	if err != nil {
		return
	}
	if head, err := c.Store.Head(context.Background(), f.name); err == nil {
		now := session.Refuse(head, r.Op, r.Code, r.Cause, r.Next, r.Hint)
		now.Turn, now.Yours, now.Ended = r.Turn, r.Yours, r.Ended
		*r = *now
	}
}

// command is the next one that helps, as it can be typed.
func (f *grantFlags) command(r *grant.Refusal) string {
	verb, _, _ := strings.Cut(r.Next, " ")
	if _, known := findVerb(verb); !known || r.Next == "" {
		if r.Container == "" {
			return "stile grant status"
		}
		return f.flagged("stile grant status " + shown(r.Container))
	}
	return f.flagged("stile " + r.Next)
}

// flagged adds what this command was given to find its estate and its agent.
func (f *grantFlags) flagged(command string) string {
	if strings.HasSuffix(command, "--help") {
		return command
	}
	if f.estate != "" {
		command += " --estate " + display.ShellWord(f.estate)
	}
	sub, own := strings.CutPrefix(command, "stile grant ")
	if !own {
		return command // registers are read by anybody
	}
	sub, _, _ = strings.Cut(sub, " ")
	switch sub {
	case "status", "history":
	case "clear", "restore":
		if f.operator != "" {
			command += " --operator " + display.ShellWord(f.operator)
		}
	default:
		if f.agent != "" {
			command += " --agent " + display.ShellWord(f.agent)
		}
	}
	return command
}

// message is what happened, without the next command, which has a line of its own.
func message(fl *failure) string {
	var r *grant.Refusal
	if fl.code == lostCode || !errors.As(fl.err, &r) {
		return fl.Error()
	}
	what := string(r.Op)
	if what == "" {
		what = "grant"
	}
	return fmt.Sprintf("%s refused: %s: %s", strings.TrimSpace(what+" "+r.Container), r.Code, r.Cause)
}

func (f *grantFlags) print(w io.Writer, fl *failure) {
	fmt.Fprintf(w, "stile: %s\n", display.Text(message(fl)))
	var r *grant.Refusal
	if errors.As(fl.err, &r) && r.Rev > 0 {
		fmt.Fprintf(w, "  now: %s\n", display.Text(holdsText(r.State, r.Grant, r.Holder, r.Expiry)))
	}
	if r != nil && r.Ended != nil && !strings.Contains(r.Cause, "revision") {
		fmt.Fprintf(w, "  yours: %s\n", display.Text(endText(r.Ended)))
	}
	var refused *register.RefusedError
	if errors.As(fl.err, &refused) {
		if refused.Err != nil {
			fmt.Fprintf(w, "  not kept: %s\n", display.Text(refused.Err.Error()))
		} else {
			fmt.Fprintf(w, "  kept in quarantine as %s; nothing of it reached the register\n", refused.Kept.Name)
			fmt.Fprintf(w, "  to have it back: stile register refused %s %s --export DIR\n", shown(f.name), refused.Kept.Short())
		}
	}
	if fl.hint != "" {
		fmt.Fprintf(w, "  hint: %s\n", display.Text(fl.hint))
	}
}

// endText says how a grant ended that the page no longer tells of.
func endText(e *grant.End) string {
	text := fmt.Sprintf("grant %d of %s, %s", e.Grant, e.Holder.Agent, strings.ReplaceAll(string(e.How), "_", " "))
	if e.How != grant.HowReleased {
		text += " by " + e.By.Name
	}
	text += fmt.Sprintf(" at revision %d, %s", e.Rev, clock(e.At.Std()))
	if e.Reason != "" {
		text += " (" + e.Reason + ")"
	}
	return text
}

func (f *grantFlags) errorObject(fl *failure) *errorObject {
	o := newErrorObject(fl)
	var r *grant.Refusal
	if errors.As(fl.err, &r) {
		o.Message = display.Text(message(fl))
		o.Refusal = refusalOf(r, f.command(r))
		var refused *register.RefusedError
		if errors.As(fl.err, &refused) {
			o.Refusal.Quarantine = refused.Kept.Name
			if refused.Err != nil {
				o.Message += "; not kept: " + display.Text(refused.Err.Error())
			}
		}
	}
	return o
}
