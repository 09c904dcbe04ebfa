package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// atlas makes an estate with one container in a folder, and gives the folder.
func atlas(t *testing.T, flags ...string) string {
	t.Helper()
	dir := t.TempDir()
	t.Setenv("XDG_STATE_HOME", filepath.Join(dir, "state"))
	for _, name := range []string{agentVariable, operatorVariable, sessionVariable, estateVariable} {
		t.Setenv(name, "")
	}
	for _, args := range [][]string{{"init"}, append([]string{"grant", "create", "atlas", "--operator", "olga"}, flags...)} {
		if code, out := stileExit(t, dir, args...); code != 0 {
			t.Fatalf("%q: exit code %d: %s", args, code, out)
		}
	}
	return dir
}

func must0(t *testing.T, dir string, args ...string) {
	t.Helper()
	if code, out := stileExit(t, dir, args...); code != 0 {
		t.Fatalf("%q: exit code %d: %s", args, code, out)
	}
}

// prints is what a command that succeeds prints.
func prints(t *testing.T, dir string, args ...string) string {
	t.Helper()
	cmd := exec.Command("stile", args...)
	cmd.Dir = dir
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%q: %v", args, err)
	}
	return string(out)
}

// The command has the terminal: it can read from it, and all its streams are it.
func TestGrantRunHasTheTerminal(t *testing.T) {
	dir := atlas(t)
	x := onTerminal(t, dir, "stile", "grant", "run", "atlas", "--agent", "ada", "--", "sh", "-c",
		`set -- $(cat /proc/$$/stat); test $5 = $8 || echo "group $5, the terminal has $8"
		printf 'name? '; read name; echo "hello $name"; test -t 0 && test -t 1 && test -t 2`)
	x.expect(`until .*\r\nname\? `)
	x.types("Ann\n")
	x.expect("hello Ann\r\n")
	x.expect(`grant 1 on atlas stays with ada until `)
	x.exits(0)

	// And whoever started stile has it again.
	x = onTerminal(t, dir, "sh", "-c", `stile grant run atlas --agent bob -w 0 -- true; stile grant land atlas --empty none --agent ada
		stile grant release atlas --agent ada; stile grant run atlas --agent bob -- true; read name; echo "again $name"`)
	x.expect(`grant 2 on atlas stays with bob`)
	x.types("Ben\n")
	x.expect("again Ben\r\n")
	x.exits(0)
}

// hasTerminal tells whether a process is in the group that has its terminal.
func hasTerminal(t *testing.T, pid int) bool {
	t.Helper()
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		t.Fatal(err)
	}
	f := strings.Fields(string(b[strings.LastIndexByte(string(b), ')'):]))
	return f[3] == f[6] // after the name: state, parent, group, session, terminal, its group
}

// Keys reach the command once, and stile outlives them.
func TestGrantRunInterruptOnce(t *testing.T) {
	dir := atlas(t)
	onceEach(t, onTerminal(t, dir, "stile", "grant", "run", "atlas", "--agent", "ada", "--", "helper", "signals"))
}

// ^Z stops both, fg continues both, and the shell has its terminal whenever it should.
func TestGrantRunStopAndContinue(t *testing.T) {
	dir := atlas(t)
	x := shell(t, dir)
	x.types("stile grant run atlas --agent ada -- helper signals\n")
	x.expect("ready\r\n")
	wrapper := childOf(t, x.cmd.Process.Pid)
	command := children(wrapper)[0]
	for range 3 {
		x.types("\x1a")
		x.expect(`Stopped`)
		x.expect(`\$ `)
		if w, c := procState(wrapper), procState(command); w != 'T' || c != 'T' {
			t.Fatalf("states after ^Z: run %c, command %c", w, c)
		}
		x.types("fg\n")
		x.expect(`stile grant run atlas --agent ada -- helper signals\r\n`)
		until(t, "both go on", func() bool {
			return procState(wrapper) != 'T' && procState(command) != 'T' && hasTerminal(t, command)
		})
	}
	x.types("\x03")
	x.expect("got SIGINT\r\n")
	x.types("end\n")
	x.expect("\nend\r\n")
	x.expect(`stays with ada`)
	x.expect(`\$ `)
	x.types("echo code=$?\n")
	x.expect(`code=0\r\n`)
	ended(t, wrapper)
	ended(t, command)

	// One that does not read, and so never asks for the terminal, has it again all the same.
	must0(t, dir, "grant", "land", "atlas", "--empty", "none", "--agent", "ada")
	must0(t, dir, "grant", "release", "atlas", "--agent", "ada")
	x.types("stile grant run atlas --agent ada -- sleep 60\n")
	x.expect(`grant 2 on atlas until `)
	wrapper = childOf(t, x.cmd.Process.Pid)
	until(t, "the command runs", func() bool { return len(children(wrapper)) == 1 && name(children(wrapper)[0]) == "sleep" })
	command = children(wrapper)[0]
	x.types("\x1a")
	x.expect(`Stopped`)
	x.types("fg\n")
	until(t, "both go on", func() bool { return procState(wrapper) != 'T' && procState(command) != 'T' && hasTerminal(t, command) })
	x.types("\x03")
	x.expect(`grant 2 on atlas stays with ada`)
	x.types("exit 0\n")
	x.exits(0)
}

// In a pipeline the rest of it keeps the terminal, and the keys reach the command all the same.
func TestGrantRunInAPipeline(t *testing.T) {
	dir := atlas(t)
	x := shell(t, dir)
	x.types("stile grant run atlas --agent ada -- sh -c 'echo on; exec sleep 60' | { read line; echo \"read $line\"; read key </dev/tty; echo \"key $key\"; }; echo code=${PIPESTATUS[0]}\n")
	x.expect("read on\r\n")
	x.types("abc\n")
	x.expect("key abc\r\n")
	x.types("\x03")
	x.expect(`grant 1 on atlas stays with ada`)
	x.expect(`\$ `)
	x.types("exit 0\n") // without it, bash's own code depends on who of the pipeline was interrupted
	x.exits(0)
	if out := prints(t, dir, "grant", "status", "atlas", "--badge"); out != "held\n" {
		t.Error(out)
	}
}

// The line while waiting says place, holder and time, and goes when the turn has come.
func TestGrantRunWaitingLine(t *testing.T) {
	dir := atlas(t)
	must0(t, dir, "grant", "acquire", "atlas", "--agent", "ada")
	x := onTerminal(t, dir, "stile", "grant", "run", "atlas", "--agent", "bob", "--", "echo", "entered")
	x.expect(`\r(stile: waiting for atlas, place 1 of 1, grant 1 of ada until \d\d\d\d-\d\d-\d\d \d\d:\d\d:\d\d \w+)\x1b\[K`)
	must0(t, dir, "grant", "land", "atlas", "--empty", "none", "--agent", "ada")
	must0(t, dir, "grant", "release", "atlas", "--agent", "ada")
	x.expect(`\r\x1b\[Kstile: grant 2 on atlas until .*\r\nentered\r\n`)
	x.exits(0)

	// ^C ends the wait, and takes the petition along.
	x = onTerminal(t, dir, "stile", "grant", "run", "atlas", "--agent", "carl", "--", "echo", "entered")
	x.expect(`place 1 of 1, grant 2 of bob`)
	x.types("\x03")
	x.exits(130)
	if out := prints(t, dir, "grant", "status", "atlas", "--json"); !strings.Contains(out, `"queue":[]`) {
		t.Error(out)
	}
}
