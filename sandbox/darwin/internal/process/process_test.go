//go:build darwin || linux

package process

import (
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/sandbox-exec/sandbox-exec/sandbox"
)

// A script stands in for the system's tool: it runs the profile, which is a script
// too here, and turns into what it was given. So these tests run on Linux too.
const fakeTool = `#!/bin/sh
[ "$1" = -f ] || exit 64
profile=$2
shift 2
while [ "$1" = -D ]; do export "$2"; shift 2; done
. "$profile"
exec "$@"
`

type run struct {
	*Process
	out string // the program's stdout and stderr
	dir string
}

// plan returns a plan under which profile is run before the program.
func plan(t *testing.T, profile string) (Plan, string) {
	t.Helper()
	dir, err := os.MkdirTemp("/var/tmp", "sandbox-exec-test-*")
	if err == nil {
		t.Cleanup(func() { os.RemoveAll(dir) })
		dir, err = filepath.EvalSymlinks(dir)
	}
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{"tool": fakeTool, "profile": profile} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return Plan{tool: filepath.Join(dir, "tool"), Profile: filepath.Join(dir, "profile"), Self: self}, dir
}

func command(dir, script string) *exec.Cmd {
	return &exec.Cmd{Path: "/bin/sh", Args: []string{"sh", "-c", script}, Env: []string{"PATH=/usr/bin:/bin"}, Dir: dir}
}

// begin starts a script and fails if that does not run.
func begin(t *testing.T, script string, change func(*Plan, *exec.Cmd)) *run {
	t.Helper()
	p, dir := plan(t, "")
	cmd := command(dir, script)
	r := &run{out: filepath.Join(dir, "out"), dir: dir}
	out, err := os.OpenFile(r.out, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	cmd.Stdout, cmd.Stderr = out, out
	if change != nil {
		change(&p, cmd)
	}
	if r.Process, err = Start(context.Background(), cmd, p); err != nil {
		t.Fatal(err)
	}
	return r
}

func (r *run) wait(t *testing.T) (sandbox.Exit, string) {
	t.Helper()
	exit, err := r.Wait()
	if err != nil {
		t.Error(err)
	}
	out, err := os.ReadFile(r.out)
	if err != nil {
		t.Fatal(err)
	}
	return exit, string(out)
}

// awaitFile waits for a file with something in it.
func awaitFile(t *testing.T, path string) string {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); time.Sleep(5 * time.Millisecond) {
		if b, err := os.ReadFile(path); err == nil && len(b) > 0 {
			return strings.TrimSpace(string(b))
		}
	}
	t.Fatalf("%s did not appear", path)
	return ""
}

func alive(pid string) bool {
	p, ok := find(pid)
	return ok && !p.zombie
}

// find looks a process up in the system's list.
func find(pid string) (entry, bool) {
	table, err := processes()
	if err != nil {
		panic(err)
	}
	for _, p := range table {
		if strconv.Itoa(p.pid) == pid {
			return p, true
		}
	}
	return entry{}, false
}

// gone waits for the end of a process that somebody else collects.
func gone(t *testing.T, pid string) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); alive(pid); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("process %s lives on", pid)
		}
	}
}

func TestRun(t *testing.T) {
	t.Setenv("TEST_SECRET", "x")
	r := begin(t, `echo out; echo err >&2; printf '%s|' "$0" "$@"; echo "$A$TEST_SECRET"; pwd; exit 3`, func(p *Plan, cmd *exec.Cmd) {
		cmd.Args = append(cmd.Args, "zero", "one two", "\xff\n")
		cmd.Env = []string{"A=b c"}
	})
	exit, out := r.wait(t)
	want := "out\nerr\nzero|one two|\xff\n|b c\n" + r.dir + "\n"
	if exit.Status.ExitStatus() != 3 || exit.Lost || out != want {
		t.Errorf("%+v, output %q, want %q", exit, out, want)
	}
}

func TestStdinIsPassed(t *testing.T) {
	read, write, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer read.Close()
	io.WriteString(write, "typed")
	write.Close()
	r := begin(t, "cat", func(_ *Plan, cmd *exec.Cmd) { cmd.Stdin = read })
	if exit, out := r.wait(t); out != "typed" || exit.Status != 0 {
		t.Errorf("%+v, %q", exit, out)
	}
	// Without one there is nothing to read.
	if exit, out := begin(t, "cat", nil).wait(t); out != "" || exit.Status != 0 {
		t.Errorf("without stdin: %+v, %q", exit, out)
	}
}

// openFDs prints which descriptors are open, without opening one.
const openFDs = `i=0; while [ $i -lt 64 ]; do [ -e /dev/fd/$i ] && printf '%s ' $i; i=$((i+1)); done`

func TestDescriptors(t *testing.T) {
	// As an embedding program may: not close-on-exec.
	leak, err := syscall.Open("/etc/passwd", syscall.O_RDONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer syscall.Close(leak)
	var extra []*os.File
	for _, text := range []string{"three", "", "five"} {
		if text == "" {
			extra = append(extra, nil)
			continue
		}
		f, err := os.CreateTemp("/var/tmp", "sandbox-exec-test-*")
		if err != nil {
			t.Fatal(err)
		}
		os.Remove(f.Name())
		defer f.Close()
		io.WriteString(f, text)
		f.Seek(0, io.SeekStart)
		extra = append(extra, f)
	}
	r := begin(t, `cat <&3; cat <&5; echo; `+openFDs,
		func(_ *Plan, cmd *exec.Cmd) { cmd.ExtraFiles = extra })
	if _, out := r.wait(t); out != "threefive\n0 1 2 3 5 " {
		t.Errorf("got %q", out)
	}
}

func TestNoExtraDescriptors(t *testing.T) {
	r := begin(t, openFDs, nil)
	if _, out := r.wait(t); out != "0 1 2 " {
		t.Errorf("got %q", out)
	}
}

func TestSession(t *testing.T) {
	own, ok := find(strconv.Itoa(os.Getpid()))
	if !ok {
		t.Fatal("this process is in no list")
	}
	for _, terminal := range []bool{false, true} {
		r := begin(t, `echo on > ready; sleep 300`, func(p *Plan, _ *exec.Cmd) { p.Terminal = terminal })
		awaitFile(t, r.dir+"/ready")
		got, _ := find(strconv.Itoa(r.program))
		helper, _ := find(strconv.Itoa(r.pid))
		group, session := r.program, r.program
		if terminal {
			group, session = own.group, own.session
		}
		if got.group != group || got.session != session {
			t.Errorf("terminal %v: %+v, want group %d and session %d", terminal, got, group, session)
		}
		if helper.group != r.pid || helper.session != own.session {
			t.Errorf("the helper is %+v, want a group of its own", helper)
		}
		r.Kill()
		r.wait(t)
	}
}

func TestLimits(t *testing.T) {
	r := begin(t, "ulimit -n; ulimit -Hn; ulimit -f; ulimit -c", func(p *Plan, _ *exec.Cmd) {
		p.Limits = sandbox.Limits{OpenFiles: 77, FileSize: 1 << 20}
	})
	// Shells count in blocks of 512 or 1024 bytes.
	if _, out := r.wait(t); out != "77\n77\n2048\n0\n" && out != "77\n77\n1024\n0\n" {
		t.Errorf("got %q", out)
	}
	var now syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &now); err != nil {
		t.Fatal(err)
	}
	// What is asked for above the hard limit is the hard limit.
	r = begin(t, "ulimit -n", func(p *Plan, _ *exec.Cmd) { p.Limits = sandbox.Limits{OpenFiles: 1 << 40} })
	if _, out := r.wait(t); strings.TrimSpace(out) != strconv.FormatUint(now.Max, 10) {
		t.Errorf("got %q, want %d", out, now.Max)
	}
}

func TestSignals(t *testing.T) {
	r := begin(t, `trap 'echo got; exit 7' TERM; echo on > ready; while :; do sleep 0.01; done`, nil)
	awaitFile(t, r.dir+"/ready")
	if err := r.Signal(syscall.SIGTERM); err != nil {
		t.Error(err)
	}
	exit, out := r.wait(t)
	if out != "got\n" || exit.Status.ExitStatus() != 7 {
		t.Errorf("%q, %+v", out, exit)
	}
	if err := r.Signal(syscall.SIGTERM); err != os.ErrProcessDone {
		t.Errorf("after the end: %v", err)
	}
	r = begin(t, `echo on > ready; kill -USR1 $$`, nil)
	if exit, _ := r.wait(t); !exit.Status.Signaled() || exit.Status.Signal() != syscall.SIGUSR1 {
		t.Errorf("a signal of its own: %+v", exit)
	}
}

func TestSignalAll(t *testing.T) {
	for _, terminal := range []bool{false, true} {
		r := begin(t, `(trap 'echo child >> got; exit' TERM; echo on > ready; while :; do sleep 0.01; done) &
			trap 'wait; echo parent >> got; exit' TERM; wait`, func(p *Plan, _ *exec.Cmd) { p.Terminal = terminal })
		awaitFile(t, r.dir+"/ready")
		if err := r.SignalAll(syscall.SIGTERM); err != nil {
			t.Error(err)
		}
		r.wait(t)
		if got := awaitFile(t, r.dir+"/got"); got != "child\nparent" {
			t.Errorf("terminal %v: %q", terminal, got)
		}
	}
}

const setsid = `perl -e 'use POSIX; POSIX::setsid(); exec @ARGV' `

// What the program leaves behind ends with it, in whatever group or session.
func TestNothingIsLeft(t *testing.T) {
	for name, script := range map[string]string{
		"background":  `sleep 300 & echo $! > pid`,
		"own session": setsid + `sh -c 'echo $$ > pid; exec sleep 300' & while ! [ -s pid ]; do sleep 0.01; done; sleep 0.1`,
		// The middle process lives long enough to be seen.
		"double fork": setsid + `sh -c 'sleep 300 & echo $! > pid; sleep 0.2'`,
		"deaf":        `(trap "" TERM HUP INT; echo on > on; exec sleep 300) & echo $! > pid`,
	} {
		for _, terminal := range []bool{false, true} {
			script := script
			if terminal {
				// In the caller's group nothing but its parent tells whose a
				// process is: it must be seen with it.
				script += "; sleep 0.2"
			}
			r := begin(t, script, func(p *Plan, _ *exec.Cmd) { p.Terminal = terminal })
			exit, out := r.wait(t)
			pid := awaitFile(t, r.dir+"/pid")
			if alive(pid) || exit.Status != 0 {
				t.Errorf("%s, terminal %v: process %s lives: %v; %+v, %q", name, terminal, pid, alive(pid), exit, out)
			}
		}
	}
}

func TestKill(t *testing.T) {
	r := begin(t, `sleep 300 & echo $! > pid; sleep 300`, nil)
	pid := awaitFile(t, r.dir+"/pid")
	if err := r.Kill(); err != nil {
		t.Error(err)
	}
	exit, _ := r.wait(t)
	if !exit.Status.Signaled() || exit.Status.Signal() != syscall.SIGKILL || exit.Lost {
		t.Errorf("%+v", exit)
	}
	if alive(pid) {
		t.Error("its child lives")
	}
}

func TestStops(t *testing.T) {
	r := begin(t, `kill -STOP $$; exit 4`, nil)
	select {
	case sig := <-r.Stopped():
		t.Fatalf("%v before anybody waits", sig)
	default:
	}
	end := make(chan sandbox.Exit)
	go func() { exit, _ := r.Wait(); end <- exit }()
	select {
	case sig := <-r.Stopped():
		if sig != syscall.SIGSTOP {
			t.Errorf("stopped by %v", sig)
		}
	case <-time.After(time.Minute):
		t.Fatal("no stop was told")
	}
	r.Signal(syscall.SIGCONT)
	if exit := <-end; exit.Status.ExitStatus() != 4 {
		t.Errorf("%+v", exit)
	}
}

// A helper that is killed takes nothing with it that would live on.
func TestLostHelper(t *testing.T) {
	r := begin(t, `sleep 300 & echo $! > pid; sleep 300`, nil)
	pid := awaitFile(t, r.dir+"/pid")
	r.killHelper()
	exit, err := r.Wait()
	if !exit.Lost || err != nil {
		t.Errorf("%+v, %v", exit, err)
	}
	gone(t, pid)
	gone(t, strconv.Itoa(r.program))
}

// The end of the parent is the end of the tree. A closed socket is all that the
// helper sees of it.
func TestLostParent(t *testing.T) {
	r := begin(t, `trap "" TERM; sleep 300 & echo $! > pid; sleep 300`, nil)
	pid := awaitFile(t, r.dir+"/pid")
	r.sock.Close()
	gone(t, strconv.Itoa(r.program))
	gone(t, pid)
	r.reap()
}

func TestWatch(t *testing.T) {
	r := begin(t, `sleep 300 & sleep 300 & sleep 300 & sleep 300`, func(p *Plan, _ *exec.Cmd) { p.Limits.PIDs = 3 })
	exit, _ := r.wait(t)
	if !exit.PIDsMax || exit.OOM || !exit.Status.Signaled() || exit.Usage.PIDsPeak < 4 || exit.Usage.PIDsLimit != 3 {
		t.Errorf("processes: %+v", exit)
	}
	// A shell's variable of 64 MiB.
	r = begin(t, `x=$(head -c 67108864 /dev/zero | tr '\0' x); sleep 300`, func(p *Plan, _ *exec.Cmd) { p.Limits.Memory = 48 << 20 })
	exit, _ = r.wait(t)
	if !exit.OOM || exit.PIDsMax || exit.Usage.MemoryPeak < 48<<20 {
		t.Errorf("memory: %+v", exit)
	}
}

func TestUsage(t *testing.T) {
	r := begin(t, `i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done`, nil)
	exit, _ := r.wait(t)
	if exit.Usage.CPU <= 0 || exit.Usage.Wall <= 0 || exit.Usage.MemoryPeak < 1<<20 {
		t.Errorf("%+v", exit.Usage)
	}
}

// notRun starts a program that would leave a file, and returns why it did not.
func notRun(t *testing.T, profile string, change func(*Plan, *exec.Cmd)) error {
	t.Helper()
	p, dir := plan(t, profile)
	cleaned := 0
	p.Clean = func() error { cleaned++; return nil }
	cmd := command(dir, "echo ran > ran")
	if change != nil {
		change(&p, cmd)
	}
	r, err := Start(context.Background(), cmd, p)
	if err == nil {
		r.Kill()
		r.Wait()
		t.Fatal("it was run")
	}
	if _, statErr := os.Stat(dir + "/ran"); statErr == nil {
		t.Error("it ran")
	}
	if cleaned != 1 {
		t.Errorf("cleaned %d times", cleaned)
	}
	return err
}

func TestChecks(t *testing.T) {
	p, dir := plan(t, "")
	for name, text := range map[string]string{"file": "x", "full/file": "x"} {
		os.MkdirAll(filepath.Dir(dir+"/"+name), 0o700)
		os.WriteFile(dir+"/"+name, []byte(text), 0o600)
	}
	good := []Check{
		{"read it", Read, dir + "/file", 0},
		{"read what is not there", Read, dir + "/none", syscall.ENOENT},
		{"make one", Create, dir + "/new", 0},
		{"make one that is there", Create, dir + "/file", syscall.EEXIST},
		{"connect", Connect, "127.0.0.1:1", syscall.ECONNREFUSED},
	}
	p.Checks = good
	cmd := command(dir, "exit 5")
	r, err := Start(context.Background(), cmd, p)
	if err != nil {
		t.Fatal(err)
	}
	if exit, err := r.Wait(); err != nil || exit.Status.ExitStatus() != 5 {
		t.Errorf("%+v, %v", exit, err)
	}
	if _, err := os.Stat(dir + "/new"); err == nil {
		t.Error("a check left its file")
	}
	for _, c := range good {
		if c.Want == 0 {
			c.Want = syscall.EPERM
		} else {
			c.Want = 0
		}
		err := notRun(t, "", func(p *Plan, _ *exec.Cmd) { p.Checks = []Check{c} })
		var setup *sandbox.SetupError
		if !errors.As(err, &setup) || setup.Layer != sandbox.LayerSeatbelt || setup.Step != c.What {
			t.Errorf("%s, the other way round: %v", c.What, err)
		}
	}
}

func TestNotRun(t *testing.T) {
	var setup *sandbox.SetupError
	var unsupported *sandbox.UnsupportedError
	var program *sandbox.ExecError

	err := notRun(t, "echo 'sandbox-exec: sandbox_apply: Operation not permitted' >&2; exit 71", nil)
	if !errors.As(err, &unsupported) || !errors.Is(err, errors.ErrUnsupported) || !strings.Contains(unsupported.Hint, "outside") {
		t.Errorf("in a sandbox: %v", err)
	}
	err = notRun(t, "echo 'sandbox-exec: 3:1: unbound variable: foo' >&2; exit 65", nil)
	if !errors.As(err, &setup) || setup.Step != "apply the profile" || !strings.Contains(err.Error(), "unbound variable: foo") {
		t.Errorf("a profile that does not compile: %v", err)
	}
	err = notRun(t, "kill -ABRT $$", nil)
	if !errors.As(err, &setup) || !strings.Contains(err.Error(), "signal 6") {
		t.Errorf("the loader died: %v", err)
	}
	err = notRun(t, "echo \"sandbox-exec: execvp() of '/x' failed: Operation not permitted\" >&2; exit 71", nil)
	if !errors.As(err, &setup) || setup.Step != "execute the helper inside" {
		t.Errorf("the binary is hidden: %v", err)
	}
	err = notRun(t, "exec 3>&-; sleep 300", nil)
	if !errors.As(err, &setup) {
		t.Errorf("a tool that hangs: %v", err)
	}
	err = notRun(t, "", func(p *Plan, _ *exec.Cmd) { p.tool = "/nonexistent/tool" })
	if !errors.As(err, &unsupported) {
		t.Errorf("no tool: %v", err)
	}
	err = notRun(t, "", func(_ *Plan, cmd *exec.Cmd) { cmd.Path = "/nonexistent/program" })
	if !errors.As(err, &program) || program.Path != "/nonexistent/program" || !errors.Is(err, os.ErrNotExist) {
		t.Errorf("no program: %v", err)
	}
	err = notRun(t, "", func(p *Plan, _ *exec.Cmd) { p.Self = "/nonexistent/self" })
	if !errors.As(err, &setup) {
		t.Errorf("no binary of ours: %v", err)
	}
	err = notRun(t, "", func(_ *Plan, cmd *exec.Cmd) { cmd.Dir = "/nonexistent" })
	if err == nil || !strings.Contains(err.Error(), "/nonexistent") {
		t.Errorf("no directory: %v", err)
	}
	err = notRun(t, "", func(_ *Plan, cmd *exec.Cmd) { cmd.Stdin = strings.NewReader("") })
	if !errors.As(err, &setup) {
		t.Errorf("a stream that is no file: %v", err)
	}
}

// The tool's words are not the program's output, and its parameters reach it.
func TestToolsWords(t *testing.T) {
	p, dir := plan(t, `echo warning >&2; echo "$KEY" > key`)
	p.Params = []string{"KEY=a b"}
	out, err := os.Create(dir + "/err")
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	cmd := command(dir, "echo mine >&2")
	cmd.Stderr = out
	r, err := Start(context.Background(), cmd, p)
	if err != nil {
		t.Fatal(err)
	}
	r.Wait()
	if got := awaitFile(t, dir+"/err"); got != "mine" {
		t.Errorf("stderr %q", got)
	}
	if got := awaitFile(t, dir+"/key"); got != "a b" {
		t.Errorf("parameter %q", got)
	}
}

func TestCancelledStart(t *testing.T) {
	p, dir := plan(t, "echo $$ > pid; sleep 300")
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		for {
			if b, err := os.ReadFile(dir + "/pid"); err == nil && len(b) > 0 {
				cancel()
				return
			}
			time.Sleep(5 * time.Millisecond)
		}
	}()
	if _, err := Start(ctx, command(dir, "echo ran > ran"), p); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	gone(t, awaitFile(t, dir+"/pid"))
	if _, err := Start(ctx, command(dir, "echo ran > ran"), p); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled before: %v", err)
	}
}

// A caller that was started to ignore SIGHUP (nohup) has the program ignore it.
func TestNohup(t *testing.T) {
	if os.Getenv("TEST_NOHUP") == "" {
		self, err := os.Executable()
		if err != nil {
			t.Fatal(err)
		}
		cmd := exec.Command("/bin/sh", "-c", `trap "" HUP; exec "$0" -test.run '^TestNohup$' -test.v`, self)
		cmd.Env = append(os.Environ(), "TEST_NOHUP=1")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("%v\n%s", err, out)
		}
		return
	}
	r := begin(t, `kill -HUP $$; echo lives; kill -INT $$`, nil)
	if exit, out := r.wait(t); out != "lives\n" || exit.Status.Signal() != syscall.SIGINT {
		t.Errorf("%q, %+v", out, exit)
	}
}
