package runner

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/sandbox-exec/sandbox-exec/policy"
	"github.com/sandbox-exec/sandbox-exec/profiles"
	"github.com/sandbox-exec/sandbox-exec/sandbox"
)

// fakeCommand is a command that a fake backend runs, in a directory and a home
// of its own.
func fakeCommand(t *testing.T, script string) (Command, *fakeBackend) {
	t.Helper()
	home := tempDir(t)
	t.Setenv("HOME", home)
	for _, name := range []string{"XDG_STATE_HOME", "XDG_CACHE_HOME", "XDG_CONFIG_HOME"} {
		t.Setenv(name, "")
	}
	b := &fakeBackend{}
	return Command{
		Script:  script,
		Dir:     mkdir(t, home, "ws"),
		Profile: &profiles.Profile{Mode: policy.ModeAllow, Ask: "prompt", Workspace: sandbox.ReadWrite},
		backend: b,
	}, b
}

func TestEndings(t *testing.T) {
	oom := func(e *sandbox.Exit) { e.OOM = true }
	pids := func(e *sandbox.Exit) { e.PIDsMax = true }
	lost := func(e *sandbox.Exit) { *e = sandbox.Exit{Lost: true} }
	for _, tt := range []struct {
		name   string
		script string
		set    func(*Command)
		exit   func(*sandbox.Exit)
		cause  Cause
		code   int
		signal syscall.Signal
	}{
		{"exits", "exit 0", nil, nil, Exited, 0, 0},
		{"fails", "exit 7", nil, nil, Exited, 7, 0},
		{"fails with the last status", "exit 255", nil, nil, Exited, 255, 0},
		{"dies of a signal", "kill -SEGV $$", nil, nil, Signalled, -1, syscall.SIGSEGV},
		{"times out", "exec sleep 60", func(c *Command) { c.Timeout = 50 * time.Millisecond }, nil, TimedOut, -1, syscall.SIGTERM},
		{"times out and ends in order", "trap 'exit 3' TERM; sleep 60 & wait", func(c *Command) { c.Timeout = 200 * time.Millisecond }, nil, TimedOut, 3, 0},
		{"times out and ignores SIGTERM", "trap '' TERM; while :; do sleep 0.05; done", func(c *Command) {
			c.Timeout, c.Grace = 50*time.Millisecond, 200*time.Millisecond
		}, nil, TimedOut, -1, syscall.SIGKILL},
		{"times out while stopped", "kill -STOP $$", func(c *Command) { c.Timeout, c.Grace = 100*time.Millisecond, 10*time.Second }, nil, TimedOut, -1, syscall.SIGTERM},
		{"writes too much", "while :; do echo 0123456789; done", func(c *Command) { c.OutputLimit = 1000 }, nil, OutputLimit, -1, syscall.SIGTERM},
		{"fails by the memory limit", "kill -KILL $$", nil, oom, OOM, -1, syscall.SIGKILL},
		{"fails because a child had too little memory", "exit 2", nil, oom, OOM, 2, 0},
		{"gets by in spite of the memory limit", "exit 0", nil, oom, Exited, 0, 0},
		{"fails by the process limit", "exit 1", nil, pids, PIDsLimit, 1, 0},
		{"loses its helper", "exit 0", nil, lost, HelperLost, -1, 0},
		{"times out, then loses its helper", "exec sleep 60", func(c *Command) { c.Timeout = 50 * time.Millisecond }, lost, TimedOut, -1, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c, b := fakeCommand(t, tt.script)
			b.exit = tt.exit
			c.Wrapper = true
			if tt.set != nil {
				tt.set(&c)
			}
			r, err := Run(t.Context(), c)
			if err != nil {
				t.Fatal(err)
			}
			if r.Cause != tt.cause || r.ExitCode != tt.code || r.Signal != tt.signal {
				t.Errorf("%s, exit %d, signal %d; want %s, %d, %d", r.Cause, r.ExitCode, r.Signal, tt.cause, tt.code, tt.signal)
			}
		})
	}
}

func TestCancel(t *testing.T) {
	c, _ := fakeCommand(t, "echo up; exec sleep 60")
	read, write, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer read.Close()
	c.Stdout = write
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		io.ReadFull(read, make([]byte, 3))
		cancel()
	}()
	r, err := Run(ctx, c)
	write.Close()
	if err != nil || r.Cause != Cancelled || r.Signal != syscall.SIGTERM {
		t.Errorf("%s, signal %d, %v", r.Cause, r.Signal, err)
	}

	ctx, cancel = context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	c.Stdout = nil
	r, err = Run(ctx, c)
	if err != nil || r.Cause != TimedOut {
		t.Errorf("a context's deadline: %s, %v", r.Cause, err)
	}

	// Before the start nothing runs.
	ctx, cancel = context.WithCancel(t.Context())
	cancel()
	if _, err := Run(ctx, c); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled before the start: %v", err)
	}
}

func TestOutputIsCaptured(t *testing.T) {
	c, _ := fakeCommand(t, `head -c 300000 /dev/zero; echo out; echo err >&2`)
	r, err := Run(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	out, errs := r.Output.Stdout, r.Output.Stderr
	if out.Bytes != 300004 || len(out.Tail) != TailSize || !bytes.HasSuffix(out.Tail, []byte("\x00out\n")) || !out.Truncated() {
		t.Errorf("stdout: %d bytes, tail of %d", out.Bytes, len(out.Tail))
	}
	if string(errs.Tail) != "err\n" || errs.Truncated() {
		t.Errorf("stderr: %q", errs.Tail)
	}
}

func TestOutputGoesToTheWriters(t *testing.T) {
	c, _ := fakeCommand(t, `echo a; echo b >&2; echo c`)
	var both bytes.Buffer
	c.Stdout, c.Stderr = &both, &both
	if _, err := Run(t.Context(), c); err != nil || both.String() != "a\nb\nc\n" {
		t.Errorf("one writer for both: %q, %v", both.String(), err)
	}

	c, _ = fakeCommand(t, `readlink /proc/self/fd/1; readlink /proc/self/fd/2 >&2`)
	file := write(t, "", c.Dir, "out")
	f, err := os.OpenFile(file, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	c.Stdout = f
	r, err := Run(t.Context(), c)
	got, _ := os.ReadFile(file)
	if err != nil || strings.TrimSpace(string(got)) != file || !strings.HasPrefix(string(r.Output.Stderr.Tail), "pipe:") {
		t.Errorf("a file is not handed on itself: %q, %q, %v", got, r.Output.Stderr.Tail, err)
	}
}

// The program must not find its pipes in non-blocking mode, in which Go opens
// them: few programs expect EAGAIN.
func TestPipesBlock(t *testing.T) {
	c, _ := fakeCommand(t, `cat /proc/self/fdinfo/0 /proc/self/fdinfo/1 /proc/self/fdinfo/2 | grep flags`)
	c.Stdin = strings.NewReader("")
	r, err := Run(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(r.Output.Stdout.Tail)) {
		var flags int
		if _, err := fmt.Sscanf(line, "flags: %o", &flags); err != nil || flags&syscall.O_NONBLOCK != 0 {
			t.Errorf("%q: %v", line, err)
		}
	}
}

func TestStdin(t *testing.T) {
	c, _ := fakeCommand(t, `cat; readlink /proc/self/fd/0`)
	r, err := Run(t.Context(), c)
	if err != nil || string(r.Output.Stdout.Tail) != "/dev/null\n" {
		t.Errorf("no stdin: %q, %v", r.Output.Stdout.Tail, err)
	}

	c, _ = fakeCommand(t, `cat`)
	text := strings.Repeat("\x00\xff\n", 100000)
	c.Stdin = strings.NewReader(text)
	var out bytes.Buffer
	c.Stdout = &out
	if _, err := Run(t.Context(), c); err != nil || out.String() != text {
		t.Errorf("a reader: %d bytes of %d, %v", out.Len(), len(text), err)
	}

	// A program that does not read must not hang on a reader that never ends.
	c, _ = fakeCommand(t, `exit 0`)
	endless, feed := io.Pipe()
	defer feed.Close()
	c.Stdin = endless
	if _, err := Run(t.Context(), c); err != nil {
		t.Error(err)
	}
}

func TestProcessThatOutlivesTheProgram(t *testing.T) {
	c, b := fakeCommand(t, `sleep 3 & echo end`)
	b.leaveTree = true
	start := time.Now()
	r, err := Run(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	if took := time.Since(start); took > 2*time.Second {
		t.Errorf("waited %v for it", took)
	}
	if string(r.Output.Stdout.Tail) != "end\n" || len(r.Notices) == 0 || r.Notices[len(r.Notices)-1].Kind != NoticeOutput {
		t.Errorf("%q, %v", r.Output.Stdout.Tail, r.Notices)
	}
}

func TestExtraFiles(t *testing.T) {
	c, _ := fakeCommand(t, `cat <&5`)
	f, err := os.Open(write(t, "five", c.Dir, "file"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	c.ExtraFiles = []*os.File{nil, nil, f}
	r, err := Run(t.Context(), c)
	if err != nil || string(r.Output.Stdout.Tail) != "five" {
		t.Errorf("%q, %v", r.Output.Stdout.Tail, err)
	}
}

func TestTaskPassesSignals(t *testing.T) {
	c, _ := fakeCommand(t, `trap 'exit 9' USR1; echo up; while :; do sleep 0.05; done`)
	read, write, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer read.Close()
	c.Stdout = write
	task, err := Start(t.Context(), c)
	write.Close()
	if err != nil {
		t.Fatal(err)
	}
	io.ReadFull(read, make([]byte, 3))
	if err := task.Signal(syscall.SIGUSR1); err != nil {
		t.Error(err)
	}
	if r := task.Wait(); r.ExitCode != 9 {
		t.Errorf("%s, exit %d", r.Cause, r.ExitCode)
	}
	if err := task.Signal(syscall.SIGUSR1); !errors.Is(err, os.ErrProcessDone) {
		t.Errorf("signal after the end: %v", err)
	}
}

func TestBadCommands(t *testing.T) {
	for name, set := range map[string]func(*Command){
		"nothing":                   func(c *Command) { c.Script = "" },
		"empty program":             func(c *Command) { c.Script, c.Args = "", []string{""} },
		"both":                      func(c *Command) { c.Args = []string{"ls"} },
		"NUL in the script":         func(c *Command) { c.Script = "ls\x00-l" },
		"NUL in an argument":        func(c *Command) { c.Script, c.Args = "", []string{"ls", "\x00"} },
		"NUL in a variable":         func(c *Command) { c.Env = []string{"A=\x00"} },
		"script of 10 MB":           func(c *Command) { c.Script = "echo " + strings.Repeat("a", 10<<20) },
		"negative timeout":          func(c *Command) { c.Timeout = -time.Second },
		"no timeout":                func(c *Command) { c.Timeout = NoTimeout },
		"timeout in the foreground": func(c *Command) { c.Timeout = 10 * time.Minute },
		"timeout in the background": func(c *Command) { c.Background, c.Timeout = true, 25*time.Hour },
		"merged and a writer":       func(c *Command) { c.Merge, c.Stderr = true, io.Discard },
		"odd origin":                func(c *Command) { c.Origin = "robot" },
		"odd variable":              func(c *Command) { c.ExtraEnv = []string{"=x"} },
		"negative grace":            func(c *Command) { c.Grace = -1 },
		"negative output limit":     func(c *Command) { c.OutputLimit = -2 },
		"timeout above the profile's": func(c *Command) {
			c.Profile.ToolCall.MaxTimeout = time.Minute
			c.Timeout = time.Hour
		},
		"missing workspace": func(c *Command) { c.Workspace = "/does/not/exist" },
	} {
		t.Run(name, func(t *testing.T) {
			c, b := fakeCommand(t, "echo x")
			set(&c)
			_, err := Run(t.Context(), c)
			var want *CommandError
			if !errors.As(err, &want) || b.starts != 0 {
				t.Errorf("%v (%d started), want a *CommandError", err, b.starts)
			}
			if err != nil && len(err.Error()) > 300 {
				t.Errorf("a message of %d bytes", len(err.Error()))
			}
		})
	}
}

func TestProgramIsFoundAsAShellFindsIt(t *testing.T) {
	dir := tempDir(t)
	bin := mkdir(t, dir, "bin")
	first := mkdir(t, dir, "first")
	write(t, "", first, "tool")
	tool := write(t, "#!/bin/sh\n", bin, "tool")
	here := write(t, "#!/bin/sh\n", dir, "here")
	plain := write(t, "", bin, "plain")
	mkdir(t, bin, "folder")
	for _, f := range []string{tool, here} {
		os.Chmod(f, 0o755)
	}
	_ = plain
	env := []string{"PATH=/nowhere", "PATH=" + first + ":" + bin}
	for _, tt := range []struct {
		name string
		env  []string
		want string // "" = an error
		is   error
	}{
		{"tool", env, tool, nil},
		{"plain", env, "", os.ErrPermission},
		{"folder", env, "", os.ErrNotExist},
		{"absent", env, "", os.ErrNotExist},
		{"here", env, "", os.ErrNotExist},
		{"here", []string{"PATH=:" + bin}, here, nil},
		{"./anything", env, "./anything", nil},
		{"/any/thing", nil, "/any/thing", nil},
		{"tool", nil, "", os.ErrNotExist},
	} {
		got, err := lookPath(tt.name, dir, tt.env)
		notRun := (*sandbox.ExecError)(nil)
		if got != tt.want || tt.is == nil && err != nil || tt.is != nil && !(errors.As(err, &notRun) && errors.Is(err, exec.ErrNotFound) == (tt.is == os.ErrNotExist)) {
			t.Errorf("lookPath(%q, PATH=%s) = %q, %v", tt.name, getenv(tt.env, "PATH"), got, err)
		}
	}
}

type approver func(Request) (Answer, error)

func (f approver) Approve(_ context.Context, r Request) (Answer, error) { return f(r) }

func TestQuestions(t *testing.T) {
	yes := approver(func(Request) (Answer, error) { return Answer{Allow: true}, nil })
	no := approver(func(Request) (Answer, error) { return Answer{Reason: "not today"}, nil })
	broken := approver(func(Request) (Answer, error) { return Answer{}, io.ErrUnexpectedEOF })
	asks, denied := "rm -rf src", "rm -rf /"
	for _, tt := range []struct {
		name     string
		script   string
		ask      string
		approver Approver
		runs     bool
		reason   string
	}{
		{"nobody to ask", asks, "prompt", nil, false, "nobody to ask"},
		{"yes", asks, "prompt", yes, true, ""},
		{"no", asks, "prompt", no, false, "not today"},
		{"an approver that fails", asks, "prompt", broken, false, io.ErrUnexpectedEOF.Error()},
		{"the profile refuses", asks, "deny", yes, false, "nobody is asked"},
		{"the zero profile refuses", asks, "", yes, false, "nobody is asked"},
		{"the profile allows", asks, "allow", nil, true, ""},
		{"a denial is no question", denied, "prompt", yes, false, ""},
		{"a denial is no question for the profile either", denied, "allow", yes, false, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c, b := fakeCommand(t, tt.script)
			c.Profile.Ask = tt.ask
			c.Approver = tt.approver
			_, err := Run(t.Context(), c)
			if tt.runs != (err == nil) || tt.runs != (b.starts == 1) {
				t.Fatalf("%v, %d started", err, b.starts)
			}
			if err != nil && !strings.Contains(err.Error(), tt.reason) {
				t.Errorf("%v, want %q in it", err, tt.reason)
			}
			var refused *RefusedError
			if errors.As(err, &refused) && refused.Decision.Verdict == policy.Allow {
				t.Error("the decision is missing")
			}
		})
	}
}

func TestChangedWhileAsking(t *testing.T) {
	c, b := fakeCommand(t, "rm -rf link/x")
	link := filepath.Join(c.Dir, "link")
	mkdir(t, c.Dir, "a/x")
	if err := os.Symlink("a", link); err != nil {
		t.Fatal(err)
	}
	c.Approver = approver(func(Request) (Answer, error) {
		os.Remove(link)
		os.Symlink(filepath.Dir(c.Dir), link)
		return Answer{Allow: true}, nil
	})
	_, err := Run(t.Context(), c)
	if b.starts != 0 || err == nil || !strings.Contains(err.Error(), "changed") {
		t.Errorf("%v, %d started", err, b.starts)
	}
}

// An answer about a path opens that path, and only then.
func TestAnswersOpenWhatWasShown(t *testing.T) {
	yes := approver(func(Request) (Answer, error) { return Answer{Allow: true}, nil })
	for _, tt := range []struct {
		name string
		ask  string
		want sandbox.Access
	}{
		{"a person's yes", "prompt", sandbox.ReadWrite},
		{"--ask allow", "allow", sandbox.ReadOnly},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c, b := fakeCommand(t, "")
			outside := write(t, "", filepath.Dir(c.Dir), "other/file")
			c.Script = "echo x > " + outside
			c.Profile.Ask, c.Approver = tt.ask, yes
			if _, err := Run(t.Context(), c); err != nil {
				t.Fatal(err)
			}
			if got := sandbox.AccessOf(b.spec.Files, outside); got != tt.want {
				t.Errorf("the file is %v, want %v", got, tt.want)
			}
			if got := sandbox.AccessOf(b.spec.Files, filepath.Join(filepath.Dir(outside), "more")); got == sandbox.ReadWrite {
				t.Errorf("its neighbour is %v", got)
			}
		})
	}
}

// What does not exist cannot be opened, and a protected name is not.
func TestAnswersThatOpenNothing(t *testing.T) {
	yes := approver(func(Request) (Answer, error) { return Answer{Allow: true}, nil })
	c, b := fakeCommand(t, "")
	absent := filepath.Join(filepath.Dir(c.Dir), "absent")
	c.Script, c.Approver = "echo x > "+absent, yes
	r, err := Run(t.Context(), c)
	if err != nil || b.starts != 1 || len(r.Notices) == 0 || r.Notices[0].Kind != NoticeNotOpened || r.Notices[0].Path != absent {
		t.Errorf("%v, notices %v", err, r.Notices)
	}

	hook := write(t, "", c.Dir, ".git/hooks/pre-commit")
	c.Script = "echo x > " + hook
	if _, err := Run(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	if !slices.ContainsFunc(b.spec.Protect, func(n sandbox.Name) bool { return sandbox.Covers(n.Path, hook) }) {
		t.Error("an answer lifted the protection of a hook")
	}
}

// A call that is allowed because it only reads gets nothing of the workspace to
// write to, by no way. What the person opened elsewhere stays open.
func TestReadOnlyCallsAreConfinedToThat(t *testing.T) {
	c, b := fakeCommand(t, "git status")
	home := filepath.Dir(c.Dir)
	more, project, inside := mkdir(t, home, "more"), mkdir(t, home, "project"), mkdir(t, c.Dir, "inside")
	link := filepath.Join(home, "link")
	if err := os.Symlink(inside, link); err != nil {
		t.Fatal(err)
	}
	c.Profile.Write = []string{"~/more", inside, link}
	c.Profile.ProjectWrite = []string{project}
	c.Profile.Network = sandbox.NetworkHost
	git(t, c.Dir, "init", "-q")
	r, err := Run(t.Context(), c)
	if err != nil || !r.Decision.ReadOnly {
		t.Fatalf("%v, %+v", err, r.Decision)
	}
	for path, want := range map[string]sandbox.Access{
		c.Dir: sandbox.ReadOnly, inside: sandbox.ReadOnly, link: sandbox.ReadOnly, project: sandbox.ReadOnly, more: sandbox.ReadWrite,
	} {
		if got := sandbox.AccessOf(b.spec.Files, path); got != want {
			t.Errorf("%s is %v, want %v", path, got, want)
		}
	}
	if b.spec.Network != sandbox.NetworkHost {
		t.Error("the network that the person opened is off")
	}
	for _, v := range policy.ReadOnlyEnv {
		if !slices.Contains(b.cmd.Env, v) {
			t.Errorf("%s is not set", v)
		}
	}

	c.Script = "touch x"
	if _, err := Run(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	if got := sandbox.AccessOf(b.spec.Files, c.Dir); got != sandbox.ReadWrite {
		t.Errorf("a call that writes: the workspace is %v", got)
	}
}

func TestDirectoriesThatAreKept(t *testing.T) {
	c, b := fakeCommand(t, "exit 0")
	c.Profile.Tmp = "session"
	home := filepath.Dir(c.Dir)
	before, _ := os.ReadDir(c.Dir)
	r, err := Run(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(b.spec.Tmp, filepath.Join(home, ".local/state/sandbox-exec/tmp")+"/") || len(r.Notices) != 0 {
		t.Errorf("/tmp is %q, notices %v", b.spec.Tmp, r.Notices)
	}
	if after, _ := os.ReadDir(c.Dir); len(after) != len(before) {
		t.Errorf("the workspace holds %v", after)
	}
	entries, _ := os.ReadDir(home)
	for _, e := range entries {
		if !slices.Contains([]string{".cache", ".local", "ws"}, e.Name()) {
			t.Errorf("%s was made in the home directory", e.Name())
		}
	}

	// Where they cannot be made, the command runs and is told.
	blocked := write(t, "", home, "file")
	t.Setenv("XDG_STATE_HOME", blocked)
	r, err = Run(t.Context(), c)
	if err != nil || b.spec.Tmp != "" || len(r.Notices) != 1 || r.Notices[0].Kind != NoticeState {
		t.Errorf("%v, /tmp is %q, notices %v", err, b.spec.Tmp, r.Notices)
	}
}

func TestDryRunRunsNothing(t *testing.T) {
	c, b := fakeCommand(t, "touch x")
	c.Profile.Tmp = "session"
	home := filepath.Dir(c.Dir)
	for _, workspace := range []string{c.Dir, home} {
		c.Workspace = workspace
		p, err := DryRun(c)
		if err != nil || p.Setup != "step\n" || p.Decision.Verdict != policy.Allow || b.starts != 0 {
			t.Errorf("%+v, %v, %d started", p, err, b.starts)
		}
		if len(p.Notices) != 2 {
			t.Errorf("notices %v, want those of two directories", p.Notices)
		}
		if entries, _ := os.ReadDir(home); len(entries) != 1 {
			t.Errorf("made: %v", entries)
		}
	}

	// What is there is shown.
	if _, err := Run(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	if p, err := DryRun(c); err != nil || len(p.Notices) != 0 {
		t.Errorf("%v, %v", p.Notices, err)
	}
}

func TestResolve(t *testing.T) {
	c, _ := fakeCommand(t, "")
	spec, err := Resolve(Command{Dir: c.Dir})
	if err != nil || spec.Workspace != c.Dir {
		t.Errorf("no profile: %+v, %v", spec, err)
	}
}

func TestDecideAt(t *testing.T) {
	c, _ := fakeCommand(t, "rm -rf /home/dev")
	d, err := DecideAt(c, Where{Dir: "/w/sub", Workspace: "/w", Home: "/home/dev"})
	if err != nil || d.Verdict != policy.Deny {
		t.Errorf("%v, %v", d.Verdict, err)
	}
	for _, at := range []Where{{Workspace: "/"}, {Dir: "w"}, {Dir: "/w/../x"}, {Home: "~"}} {
		if _, err := DecideAt(c, at); err == nil {
			t.Errorf("%+v was accepted", at)
		}
	}
}
