//go:build linux

package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/sandbox-exec/sandbox-exec/policy"
	"golang.org/x/sys/unix"
)

// terminal is a pseudo terminal with a sandbox-exec on it.
type terminal struct {
	t      *testing.T
	master *os.File
	cmd    *exec.Cmd
	seen   bytes.Buffer
}

// onTerminal starts sandbox-exec in dir. What is typed before it starts is
// there when it asks.
func onTerminal(t *testing.T, dir, typed string, args ...string) *terminal {
	t.Helper()
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		t.Skip(err)
	}
	t.Cleanup(func() { master.Close() })
	// Not by Fd, which would end the deadlines for reads.
	raw, err := master.SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	raw.Control(func(fd uintptr) {
		if err = unix.IoctlSetPointerInt(int(fd), unix.TIOCSPTLCK, 0); err == nil {
			n, err = unix.IoctlGetInt(int(fd), unix.TIOCGPTN)
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	slave, err := os.OpenFile(fmt.Sprint("/dev/pts/", n), os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer slave.Close()
	if _, err := master.WriteString(typed); err != nil {
		t.Fatal(err)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := &exec.Cmd{
		Path: self, Args: append([]string{"sandbox-exec"}, args...), Dir: dir,
		Env:   append(os.Environ(), "HOME="+filepath.Dir(dir)),
		Stdin: slave, Stdout: slave, Stderr: slave,
		SysProcAttr: &syscall.SysProcAttr{Setsid: true, Setctty: true},
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	return &terminal{t: t, master: master, cmd: cmd}
}

// expect reads until text is seen.
func (tm *terminal) expect(text string) {
	tm.t.Helper()
	tm.master.SetReadDeadline(time.Now().Add(20 * time.Second))
	buf := make([]byte, 4096)
	for !strings.Contains(tm.seen.String(), text) {
		n, err := tm.master.Read(buf)
		tm.seen.Write(buf[:n])
		if err != nil {
			tm.cmd.Process.Kill()
			tm.t.Fatalf("%v, waiting for %q; seen so far:\n%s", err, text, tm.seen.String())
		}
	}
}

func (tm *terminal) typeText(text string) { tm.master.WriteString(text) }

// ending is the exit status, or 128 and the signal, as a shell says it.
func (tm *terminal) ending() int {
	tm.t.Helper()
	tm.master.SetReadDeadline(time.Time{})
	read := make(chan struct{})
	go func() {
		defer close(read)
		buf := make([]byte, 4096)
		for {
			n, err := tm.master.Read(buf)
			tm.seen.Write(buf[:n])
			if err != nil { // EIO when nobody has the other side open
				return
			}
		}
	}()
	tm.cmd.Wait()
	select {
	case <-read:
	case <-time.After(20 * time.Second):
		tm.t.Error("something still has the terminal")
	}
	status := tm.cmd.ProcessState.Sys().(syscall.WaitStatus)
	if status.Signaled() {
		return 128 + int(status.Signal())
	}
	return status.ExitStatus()
}

func workspace(t *testing.T) string {
	t.Helper()
	home, err := os.MkdirTemp("/var/tmp", "sandbox-exec-test-*")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(home) })
	ws := filepath.Join(home, "ws")
	if err := os.MkdirAll(filepath.Join(ws, "src"), 0o755); err != nil {
		t.Fatal(err)
	}
	return ws
}

func TestPrompt(t *testing.T) {
	for _, tt := range []struct {
		keys string
		want int
		runs bool
	}{
		{"y\n", 0, true},
		{"YES\n", 0, true},
		{"\n", exitRefused, false},
		{"n\n", exitRefused, false},
		{"yes please\n", exitRefused, false},
		{"s\n", exitRefused, false}, // is not offered for danger
		{"p\n", exitRefused, false},
		{"\x1b[A\xff\x00y\n", exitRefused, false},
		{"n run the unit tests\n", exitRefused, false},
		{"\x04", exitRefused, false}, // end of file
		{"\x03", 128 + int(syscall.SIGINT), false},
	} {
		t.Run(fmt.Sprintf("%q", tt.keys), func(t *testing.T) {
			ws := workspace(t)
			tm := onTerminal(t, ws, "", "-c", "rm -rf src")
			tm.expect("[y/N] ")
			if seen := tm.seen.String(); !strings.Contains(seen, "    rm -rf src\r\n") || !strings.Contains(seen, ws) {
				t.Errorf("the question does not show the command and where it runs:\n%s", seen)
			}
			tm.typeText(tt.keys)
			got := tm.ending()
			if tt.keys[0] == 'n' && len(tt.keys) > 2 && !strings.Contains(tm.seen.String(), "the answer was no: run the unit tests") {
				t.Errorf("the reason is not told:\n%s", tm.seen.String())
			}
			if strings.Contains(tm.seen.String(), "run it again") {
				t.Errorf("whoever has answered is told to ask:\n%s", tm.seen.String())
			}
			_, err := os.Stat(filepath.Join(ws, "src"))
			if ran := err != nil; got != tt.want || ran != tt.runs {
				t.Errorf("ended with %d, want %d; ran %v", got, tt.want, ran)
			}
		})
	}
}

// A terminal that goes away is a no, and a window that changes its size changes
// nothing.
func TestPromptOnATerminalThatChanges(t *testing.T) {
	ws := workspace(t)
	tm := onTerminal(t, ws, "", "-c", "rm -rf src")
	tm.expect("[y/N] ")
	tm.master.Close() // the kernel sends SIGHUP to the session's leader
	if err := tm.cmd.Wait(); err == nil {
		t.Error("ended with 0")
	}
	if _, err := os.Stat(filepath.Join(ws, "src")); err != nil {
		t.Error(err)
	}

	tm = onTerminal(t, ws, "", "-c", "rm -rf src")
	tm.expect("[y/N] ")
	raw, err := tm.master.SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	for _, size := range []unix.Winsize{{Row: 2, Col: 10}, {Row: 50, Col: 200}} {
		raw.Control(func(fd uintptr) { err = unix.IoctlSetWinsize(int(fd), unix.TIOCSWINSZ, &size) })
		if err != nil {
			t.Fatal(err)
		}
	}
	tm.typeText("y\n")
	if got := tm.ending(); got != 0 {
		t.Errorf("ended with %d:\n%s", got, tm.seen.String())
	}
	if _, err := os.Stat(filepath.Join(ws, "src")); err == nil {
		t.Error("not run")
	}
}

// The whole command is shown, however long, and what is risky in it is marked.
func TestLaidOut(t *testing.T) {
	target := func(from, to int, detail string) policy.Target {
		return policy.Target{Span: [2]int{from, to}, Verdict: policy.Ask, Detail: detail}
	}
	for _, tt := range []struct {
		text    string
		targets []policy.Target
		width   int
		want    string
	}{
		{"", nil, 20, "\n"},
		{"ls; rm x", []policy.Target{target(4, 8, "removes")}, 80, "ls; rm x\n    ~~~~ removes\n"},
		{"a\nrm b\n", []policy.Target{target(2, 6, "removes"), target(2, 6, "and more"), target(0, 1, "first")}, 80, "a\n~ first\nrm b\n~~~~ removes; and more\n"},
		{"0123456789abcdef", []policy.Target{target(8, 12, "why")}, 10, "0123456789\n        ~~\nabcdef\n~~ why\n"},
		{"echo '\x1b[2K' \u4e16; rm x", []policy.Target{target(17, 21, "removes")}, 80, "echo '\\x1b[2K' \u4e16; rm x\n                   ~~~~ removes\n"},
		{"a\r\n\n\tb", nil, 80, "a\\r\n\n\\tb\n"},
		{"x", []policy.Target{target(0, 9, "beyond")}, 80, "x\n"},
	} {
		got := strings.Join(laidOut(tt.text, tt.targets, tt.width), "\n") + "\n"
		if got != tt.want {
			t.Errorf("%q:\n%s\nwant\n%s", tt.text, got, tt.want)
		}
	}
	long := strings.Repeat("word ", 10000)
	if got := strings.Join(laidOut(long, nil, 76), ""); got != long {
		t.Error("a long command is cut")
	}
}

// What was typed before the question is no answer to it.
func TestPromptForgetsWhatWasTyped(t *testing.T) {
	ws := workspace(t)
	tm := onTerminal(t, ws, "y\ny\n", "-c", "rm -rf src")
	tm.expect("[y/N] ")
	tm.typeText("n\n")
	if got := tm.ending(); got != exitRefused {
		t.Errorf("ended with %d", got)
	}
}

// A command cannot move the cursor in the question about it.
func TestPromptEscapes(t *testing.T) {
	ws := workspace(t)
	tm := onTerminal(t, ws, "", "-c", "rm -rf src # \x1b[2K\x1b[1A harmless \u202e")
	tm.expect("[y/N] ")
	if seen := tm.seen.String(); strings.ContainsAny(seen, "\x1b\u202e") {
		t.Errorf("%q", seen)
	}
	tm.typeText("n\n")
	tm.ending()
}

// ^C reaches the command once, from the terminal, and not again from us.
func TestInterruptOnATerminal(t *testing.T) {
	ws := workspace(t)
	// The program must be where the sandbox shows it.
	self, err := os.ReadFile("/proc/self/exe")
	if err == nil {
		err = os.WriteFile(filepath.Join(ws, "interrupts"), self, 0o755)
	}
	if err != nil {
		t.Fatal(err)
	}
	tm := onTerminal(t, ws, "", "--", "./interrupts")
	tm.expect("ready")
	tm.typeText("\x03")
	tm.expect("end")
	if seen := tm.seen.String(); !strings.Contains(seen, "1 interrupts") {
		t.Errorf("not one interrupt:\n%s", seen)
	}
	if got := tm.ending(); got != 0 {
		t.Errorf("ended with %d", got)
	}

	tm = onTerminal(t, ws, "", "-c", "echo ready; exec sleep 30")
	tm.expect("ready")
	tm.typeText("\x03")
	if got := tm.ending(); got != 128+int(syscall.SIGINT) {
		t.Errorf("ended with %d", got)
	}
}

// A yes does not open the network, and the question says so.
func TestPromptTellsOfTheNetwork(t *testing.T) {
	for _, tt := range []struct {
		args []string
		want bool
	}{
		{[]string{"--", "git", "push"}, true},
		{[]string{"--net", "host", "--", "git", "push"}, false},
		{[]string{"-c", "rm -rf src"}, false},
	} {
		tm := onTerminal(t, workspace(t), "", tt.args...)
		tm.expect("[y/N] ")
		if got := strings.Contains(tm.seen.String(), "The network stays off"); got != tt.want {
			t.Errorf("%q: told %v, want %v:\n%s", tt.args, got, tt.want, tm.seen.String())
		}
		tm.typeText("n\n")
		tm.ending()
	}
}

// A task is asked about at the terminal of who starts it, and ^C there ends it.
func TestPromptForATask(t *testing.T) {
	for _, tt := range []struct {
		keys string
		args []string
		want int
		runs bool
	}{
		{"y\n", []string{"task", "start"}, 0, true},
		{"n\n", []string{"task", "start"}, exitRefused, false},
		{"\x03", []string{"task", "start"}, 128 + int(syscall.SIGINT), false},
		{"y\n", []string{"--on-timeout", "background"}, 0, true},
	} {
		ws := workspace(t)
		tm := onTerminal(t, ws, "", append(tt.args, "-c", "rm -rf src")...)
		tm.expect("[y/N] ")
		tm.typeText(tt.keys)
		if got := tm.ending(); got != tt.want {
			t.Errorf("%q %q: ended with %d, want %d:\n%s", tt.args, tt.keys, got, tt.want, tm.seen.String())
		}
		if tt.runs {
			for range 1000 {
				if _, err := os.Stat(filepath.Join(ws, "src")); err != nil {
					break
				}
				time.Sleep(10 * time.Millisecond)
			}
		}
		if _, err := os.Stat(filepath.Join(ws, "src")); (err != nil) != tt.runs {
			t.Errorf("%q %q: ran %v", tt.args, tt.keys, err != nil)
		}
	}
}

// ^C in the foreground ends a command that could have gone on.
func TestInterruptBeforeTheBackground(t *testing.T) {
	tm := onTerminal(t, workspace(t), "", "--on-timeout", "background", "-c", "echo ready; exec sleep 600")
	tm.expect("ready")
	tm.typeText("\x03")
	if got := tm.ending(); got != 128+int(syscall.SIGINT) {
		t.Errorf("ended with %d:\n%s", got, tm.seen.String())
	}
}
