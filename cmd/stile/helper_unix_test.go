//go:build unix

package main

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"syscall"

	"golang.org/x/sys/unix"
)

// systemHelper plays the commands that need a Unix system.
func systemHelper(args []string) bool {
	switch args[0] {
	case "signals":
		// Prints every signal it gets; ends at the end of its input, or at a
		// line "end".
		got := make(chan os.Signal, 64)
		signal.Notify(got, unix.SIGINT, unix.SIGQUIT, unix.SIGTERM, unix.SIGHUP, unix.SIGUSR1, unix.SIGUSR2)
		fmt.Println("ready")
		end := make(chan struct{})
		go func() {
			in := bufio.NewScanner(os.Stdin)
			for in.Scan() && in.Text() != "end" {
				continue
			}
			close(end)
		}()
		for {
			select {
			case s := <-got:
				fmt.Println("got", unix.SignalName(s.(syscall.Signal)))
			case <-end:
				fmt.Println("end")
				return true
			}
		}
	case "fd":
		// fd N: prints what can be read from descriptor N.
		var n int
		_, _ = fmt.Sscan(args[1], &n)
		b := make([]byte, 100)
		k, err := unix.Read(n, b)
		must(err)
		fmt.Print(string(b[:k]))
	case "peak":
		// peak CMD ARGS…: runs CMD and says on stderr how much memory it had at most, in the unit of
		// getrusage. Of a process that a test starts itself that would be the test's own: on Linux the
		// child begins as its parent.
		cmd := exec.Command(args[1], args[2:]...)
		cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
		must(cmd.Start())
		_ = cmd.Wait() // its code becomes ours
		fmt.Fprintln(os.Stderr, "peak", cmd.ProcessState.SysUsage().(*syscall.Rusage).Maxrss)
		os.Exit(cmd.ProcessState.ExitCode())
	case "editor":
		editor()
	default:
		return kernelHelper(args)
	}
	return true
}

// editor behaves as full-screen programs do: it takes the terminal's keys
// one by one, gives the terminal back when ^Z is pressed and takes it again
// when it is continued.
func editor() {
	saved, err := unix.IoctlGetTermios(0, ioctlGetTermios)
	must(err)
	raw := func() {
		t := *saved
		t.Lflag &^= unix.ICANON | unix.ECHO | unix.ISIG
		t.Cc[unix.VMIN], t.Cc[unix.VTIME] = 1, 0
		must(unix.IoctlSetTermios(0, ioctlSetTermios, &t))
		fmt.Print("\x1b[?1049heditor")
	}
	cooked := func() {
		fmt.Print("\x1b[?1049l")
		must(unix.IoctlSetTermios(0, ioctlSetTermios, saved))
	}
	continued := make(chan os.Signal, 1)
	raw()
	key := make([]byte, 1)
	for {
		if _, err := os.Stdin.Read(key); err != nil {
			must(err)
		}
		switch key[0] {
		case 'q':
			cooked()
			fmt.Println("bye")
			return
		case 0x1a:
			cooked()
			signal.Notify(continued, unix.SIGCONT)
			must(unix.Kill(0, unix.SIGTSTP))
			<-continued
			raw()
			fmt.Print("again")
		default:
			fmt.Printf("<%c>", key[0])
		}
	}
}
