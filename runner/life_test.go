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
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/sandbox-exec/sandbox-exec/profiles"
)

func run(t *testing.T, c Command) Result {
	t.Helper()
	r, err := Run(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestLongOutputIsInAFile(t *testing.T) {
	c, _ := fakeCommand(t, `seq 100000; echo few >&2`)
	r := run(t, c)
	want, err := exec.Command("seq", "100000").Output()
	if err != nil {
		t.Fatal(err)
	}
	out := r.Output.Stdout
	got, err := os.ReadFile(out.File)
	if err != nil || !bytes.Equal(got, want) || !bytes.HasSuffix(want, out.Tail) || out.Bytes != int64(len(want)) || out.Lines != 100000 || !out.Truncated() {
		t.Errorf("%d bytes in the file, %d in the tail, of %d; %d lines; %v", len(got), len(out.Tail), out.Bytes, out.Lines, err)
	}
	for path, mode := range map[string]os.FileMode{out.File: 0o600, filepath.Dir(out.File): os.ModeDir | 0o700} {
		if info, err := os.Stat(path); err != nil || info.Mode() != mode {
			t.Errorf("%s: %v, %v", path, info.Mode(), err)
		}
	}
	if r.Output.Stderr.File != "" || r.Output.Stderr.Lines != 1 {
		t.Errorf("stderr: %+v", r.Output.Stderr)
	}
	if !strings.Contains(r.Text(), out.File) {
		t.Error("the text does not name the file")
	}

	// What a text has no room for is in a file, too, and nothing shorter is.
	for script, file := range map[string]bool{
		"head -c 50000 /dev/zero": false, "head -c 50001 /dev/zero": true,
		"yes | head -n 2000": false, "yes | head -n 2001": true,
	} {
		c.Script = script
		r := run(t, c)
		got, err := os.ReadFile(r.Output.Stdout.File)
		if (err == nil) != file || file && !bytes.Equal(got, r.Output.Stdout.Tail) {
			t.Errorf("%s: %q, %v", script, r.Output.Stdout.File, err)
		}
	}
}

// Where the whole cannot be kept, the command runs, and it is told.
func TestLongOutputThatCannotBeKept(t *testing.T) {
	c, _ := fakeCommand(t, `seq 100000`)
	write(t, "", filepath.Dir(c.Dir), ".local/state/sandbox-exec/output")
	r := run(t, c)
	out := r.Output.Stdout
	if out.File != "" || len(out.Tail) != TailSize || len(r.Notices) != 1 || r.Notices[0].Kind != NoticeOutput {
		t.Errorf("%q, tail of %d, %v", out.File, len(out.Tail), r.Notices)
	}
	if !strings.Contains(r.Text(), "are not kept]") {
		t.Errorf("%.200q", r.Text())
	}

	// Neither is a part of it where the disk is full.
	if _, err := os.Stat("/dev/full"); err != nil {
		t.Skip(err)
	}
	dir := tempDir(t)
	k := &capture{create: func() (*os.File, error) {
		link := filepath.Join(dir, "file")
		if err := os.Symlink("/dev/full", link); err != nil {
			return nil, err
		}
		return os.OpenFile(link, os.O_WRONLY, 0)
	}}
	for range 10 {
		k.Write(make([]byte, 100_000))
	}
	k.end()
	if s := k.stream(); s.File != "" || s.Bytes != 1_000_000 || !errors.Is(k.lost, syscall.ENOSPC) {
		t.Errorf("%q, %d bytes, %v", s.File, s.Bytes, k.lost)
	}
	if entries, _ := os.ReadDir(dir); len(entries) > 0 {
		t.Error("a part of the output stays on the full disk")
	}
}

func TestOldOutputGoes(t *testing.T) {
	root := tempDir(t)
	s := spills{root: root, dir: filepath.Join(root, "output")}
	make := func(age time.Duration, size int64) *os.File {
		f, err := s.create("stdout")
		if err != nil {
			t.Fatal(err)
		}
		when := time.Now().Add(-age)
		if err := errors.Join(f.Truncate(size), os.Chtimes(f.Name(), when, when)); err != nil {
			t.Fatal(err)
		}
		return f
	}
	held := make(48*time.Hour, 1) // a run still writes to it
	defer held.Close()
	old, young, large, larger := make(25*time.Hour, 1), make(23*time.Hour, 1), make(time.Minute, spillTotal-2), make(time.Hour, 100)
	for _, f := range []*os.File{old, young, large, larger} {
		f.Close()
	}
	s.tidy(time.Now())
	for f, want := range map[*os.File]bool{held: true, old: false, young: true, large: true, larger: false} {
		if _, err := os.Stat(f.Name()); (err == nil) != want {
			t.Errorf("%s: %v", f.Name(), err)
		}
	}
	spills{}.tidy(time.Now())
}

func TestOutputWhileItRuns(t *testing.T) {
	c, _ := fakeCommand(t, `echo a; echo b >&2; test -p /dev/stdin; while ! test -e go; do sleep 0.02; done; echo c`)
	var mu sync.Mutex
	var seen [3]string
	c.OnOutput = func(fd int, p []byte) {
		mu.Lock()
		defer mu.Unlock()
		seen[fd] += string(p)
	}
	task, err := Start(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	early := func() bool {
		mu.Lock()
		defer mu.Unlock()
		return seen[1] == "a\n" && seen[2] == "b\n"
	}
	for range 1000 {
		if early() {
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	if !early() || string(task.Output().Stdout.Tail) != "a\n" {
		t.Errorf("while it runs: %q, %+v", seen, task.Output())
	}
	write(t, "", c.Dir, "go")
	r := task.Wait()
	if seen[1] != "a\nc\n" || string(r.Output.Stdout.Tail) != "a\nc\n" {
		t.Errorf("in the end: %q, %q", seen, r.Output.Stdout.Tail)
	}

	c.Merge, seen = true, [3]string{}
	r = run(t, c)
	if string(r.Output.Stdout.Tail) != "a\nb\nc\n" || seen[1] != "a\nb\nc\n" || seen[2] != "" || !r.Output.Merged {
		t.Errorf("merged: %q, %q", r.Output.Stdout.Tail, seen)
	}
}

func TestOutputDir(t *testing.T) {
	c, b := fakeCommand(t, `echo out; echo err >&2`)
	c.OutputDir = mkdir(t, filepath.Dir(c.Dir), "kept")
	r := run(t, c)
	for name, want := range map[string]string{"stdout": "out\n", "stderr": "err\n"} {
		if got, err := os.ReadFile(filepath.Join(c.OutputDir, name)); err != nil || string(got) != want {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
	if r.Output.Stdout.File != filepath.Join(c.OutputDir, "stdout") {
		t.Errorf("%q", r.Output.Stdout.File)
	}
	starts := b.starts
	var state *StateError
	if _, err := Run(t.Context(), c); !errors.As(err, &state) || b.starts != starts {
		t.Errorf("what is there is written over: %v", err)
	}
	c.OutputDir, c.TailOnly, c.Script = "", true, "seq 100000"
	if r = run(t, c); r.Output.Stdout.File != "" || !r.Output.Stdout.Truncated() || len(r.Notices) != 0 {
		t.Errorf("the tail only: %q, %v", r.Output.Stdout.File, r.Notices)
	}
}

func TestSecretsAreNotInTheOutput(t *testing.T) {
	const secret = "s3cr3t-value-of-a-token"
	c, b := fakeCommand(t, fmt.Sprintf(`for i in $(seq 5000); do printf %%s %s; printf '%%s\n' %s; done; printf %s`, secret[:9], secret[9:], secret[:20]))
	c.Env = []string{"PATH=" + os.Getenv("PATH"), "API_TOKEN=" + secret}
	c.Profile.ToolCall.Redact = true
	var stream bytes.Buffer
	c.OnOutput = func(_ int, p []byte) { stream.Write(p) }
	c.Merge = true
	r := run(t, c)
	out := r.Output.Stdout
	file, err := os.ReadFile(out.File)
	if err != nil {
		t.Fatal(err)
	}
	want := strings.Repeat("[redacted API_TOKEN]\n", 5000) + "[redacted API_TOKEN]"
	if string(file) != want || stream.String() != want || !strings.HasSuffix(want, string(out.Tail)) || out.Redacted != 5001 || out.Bytes != int64(len(want)) {
		t.Errorf("file of %d, stream of %d, %d replaced: %.100q", len(file), stream.Len(), out.Redacted, file)
	}
	if slices.Contains(b.cmd.Env, "API_TOKEN="+secret) {
		t.Error("the command got it")
	}

	c.Profile.ToolCall.Redact = false
	if r = run(t, c); r.Output.Stdout.Redacted != 0 || !bytes.Contains(r.Output.Stdout.Tail, []byte(secret)) {
		t.Error("it is replaced although nobody asked for that")
	}
}

func TestEnvironmentOfACall(t *testing.T) {
	c, b := fakeCommand(t, `touch x; echo $TRACE $PAGER $SHELL`)
	c.Env = []string{"PATH=" + os.Getenv("PATH"), "PAGER=less", "SECRET_KEY=x", "SHELL=/bin/fish"}
	c.ExtraEnv = []string{"TRACE=1=2", "PAGER=mine"}
	r := run(t, c)
	if want := "1=2 mine " + shell() + "\n"; string(r.Output.Stdout.Tail) != want {
		t.Errorf("%q, want %q", r.Output.Stdout.Tail, want)
	}
	if !slices.Contains(r.Env, "TRACE") || slices.Contains(r.Env, "SECRET_KEY") || !slices.IsSorted(r.Env) || strings.Contains(strings.Join(r.Env, " "), "=") {
		t.Errorf("names: %q", r.Env)
	}
	c.Wrapper = true
	run(t, c)
	if slices.Contains(b.cmd.Env, "TERM=dumb") {
		t.Error("a wrapped command is told that nobody watches")
	}
}

// A user is not asked about their own command, but what is denied is denied,
// and nothing is opened.
func TestOriginUser(t *testing.T) {
	c, b := fakeCommand(t, "rm -rf src")
	c.Approver = approver(func(Request) (Answer, error) {
		t.Error("asked")
		return Answer{}, nil
	})
	c.Origin = User
	for _, ask := range []string{"prompt", "deny", ""} {
		c.Profile.Ask = ask
		if _, err := Run(t.Context(), c); err != nil {
			t.Errorf("ask = %q: %v", ask, err)
		}
	}
	starts := b.starts
	c.Script = "rm -rf /"
	var refused *RefusedError
	if _, err := Run(t.Context(), c); !errors.As(err, &refused) || b.starts != starts {
		t.Errorf("rm -rf /: %v", err)
	}
}

// Who wants the end is told apart, and of several the first counts.
func TestWhoCancels(t *testing.T) {
	const stubborn = `trap '' TERM; echo up; while :; do sleep 0.05; done`
	start := func(ctx context.Context, script string, grace time.Duration) *Task {
		c, _ := fakeCommand(t, script)
		c.Grace = grace
		task, err := Start(ctx, c)
		if err != nil {
			t.Fatal(err)
		}
		waitOutput(t, task, "up")
		return task
	}
	const long = time.Hour

	ctx, cancel := context.WithCancelCause(t.Context())
	task := start(ctx, "echo up; exec sleep 600", long)
	cancel(fmt.Errorf("^C: %w", ErrCancelledByUser))
	if r := task.Wait(); r.Cause != CancelledByUser || r.Signal != syscall.SIGTERM || !strings.Contains(r.Text(), "do not retry by yourself") {
		t.Errorf("the context, by the user: %s, %v", r.Cause, r.Signal)
	}

	task = start(t.Context(), "echo up; exec sleep 600", long)
	task.Cancel(CancelledByUser)
	task.Cancel(Cancelled)
	if r := task.Wait(); r.Cause != CancelledByUser {
		t.Errorf("the user, then the program: %s", r.Cause)
	}

	task = start(t.Context(), stubborn, long)
	task.Cancel(CancelledByUser)
	task.Kill()
	task.Kill()
	if r := task.Wait(); r.Cause != CancelledByUser || r.Signal != syscall.SIGKILL {
		t.Errorf("cancelled, then killed: %s, %v", r.Cause, r.Signal)
	}

	task = start(t.Context(), stubborn, long)
	task.Kill()
	if r := task.Wait(); r.Cause != Cancelled || r.Signal != syscall.SIGKILL {
		t.Errorf("killed: %s, %v", r.Cause, r.Signal)
	}

	task = start(t.Context(), "echo up; exit 5", long)
	r := task.Wait()
	task.Cancel(CancelledByUser) // too late
	task.Kill()
	if again := task.Wait(); r.Cause != Exited || again.Cause != Exited || again.ExitCode != 5 {
		t.Errorf("after the end: %s, %s", r.Cause, again.Cause)
	}
}

func TestTimeouts(t *testing.T) {
	none := profiles.ToolCall{MaxTimeout: NoTimeout}
	for _, tt := range []struct {
		tool      profiles.ToolCall
		c         Command
		want      time.Duration // 0 = refused
		unlimited bool
		limit     int64
	}{
		{profiles.ToolCall{}, Command{}, time.Minute, false, 16 << 20},
		{profiles.ToolCall{}, Command{Timeout: 5 * time.Minute}, 5 * time.Minute, false, 16 << 20},
		{profiles.ToolCall{}, Command{Timeout: 5*time.Minute + 1}, 0, false, 0},
		{profiles.ToolCall{}, Command{Timeout: NoTimeout}, 0, false, 0},
		{profiles.ToolCall{}, Command{Background: true}, 10 * time.Minute, false, 16 << 20},
		{profiles.ToolCall{}, Command{Background: true, Timeout: 24 * time.Hour}, 24 * time.Hour, false, 16 << 20},
		{profiles.ToolCall{}, Command{Background: true, Timeout: NoTimeout}, 0, false, 0},
		{profiles.ToolCall{MaxTimeout: 10 * time.Second, Output: 5}, Command{}, 10 * time.Second, false, 5},
		{profiles.ToolCall{MaxTimeout: time.Hour, Timeout: time.Hour}, Command{}, time.Hour, false, 16 << 20},
		{none, Command{}, time.Minute, false, 16 << 20},
		{none, Command{Timeout: 1000 * time.Hour, OutputLimit: -1}, 1000 * time.Hour, false, -1},
		{none, Command{Timeout: NoTimeout}, NoTimeout, true, 16 << 20},
		{profiles.ToolCall{}, Command{Wrapper: true}, 0, true, 0},
		{profiles.ToolCall{}, Command{Wrapper: true, Timeout: time.Hour, OutputLimit: 7}, time.Hour, false, 7},
	} {
		c := tt.c
		c.Script, c.Profile = "x", &profiles.Profile{Name: "p", ToolCall: tt.tool}
		err := c.complete()
		var wrong *CommandError
		if refused := tt.want == 0 && !tt.unlimited; refused != errors.As(err, &wrong) || !refused && (c.Timeout != tt.want || c.OutputLimit != tt.limit) {
			t.Errorf("%+v of %+v: %v, limit %d, %v", tt.c, tt.tool, c.Timeout, c.OutputLimit, err)
		}
	}
}

// The shells tell where they are in the end, and nothing else of a script
// changes.
func TestFinalDir(t *testing.T) {
	dir := tempDir(t)
	sub := mkdir(t, dir, "sub dir/ü")
	mkdir(t, dir, "line\nbreak")
	if err := os.Symlink(sub, filepath.Join(dir, "link")); err != nil {
		t.Fatal(err)
	}
	for _, sh := range []string{"bash", "dash"} {
		path, err := exec.LookPath(sh)
		if err != nil {
			t.Errorf("%v", err) // both are what the tests need
			continue
		}
		for _, tt := range []struct{ script, want, out string }{
			{"cd .", dir, "exit 0\n"},
			{"cd 'sub dir/ü'; echo x", sub, "x\nexit 0\n"},
			{"cd link", sub, "exit 0\n"},
			{"cd sub*; exit 7", filepath.Dir(sub), "exit 7\n"},
			{"set -e; cd 'sub dir'; false; cd ü", filepath.Dir(sub), "exit 1\n"},
			{"set -eu; cd 'sub dir'; cd /does/not/exist 2>/dev/null || exit 3", filepath.Dir(sub), "exit 3\n"},
			{"(cd 'sub dir'; exit 2)", dir, "exit 2\n"},
			{"cd 'sub dir'; exec 3>&1; echo x >&3", filepath.Dir(sub), "x\nexit 0\n"},
			{"cd 'sub dir'; cat <<E\nx\nE", filepath.Dir(sub), "x\nexit 0\n"},
			{"cd 'sub dir'; pwd() { echo no; }; exit 4", filepath.Dir(sub), "exit 4\n"},
			{"cd 'sub dir'; trap 'echo mine' EXIT", "", "mine\nexit 0\n"},
			{"cd 'sub dir'; exec true", "", "exit 0\n"},
			{"mkdir gone; cd gone; rmdir ../gone", "", "exit 0\n"},
			{"cd line*", dir + "/line\nbreak", "exit 0\n"},
			{"cd 'sub dir'; set -x 2>/dev/null; :", filepath.Dir(sub), "exit 0\n"},
		} {
			read, write, err := os.Pipe()
			if err != nil {
				t.Fatal(err)
			}
			cmd := exec.Command(path, "-c", tellDir(tt.script, sh == "bash"))
			cmd.Dir = dir
			cmd.ExtraFiles = make([]*os.File, finalDirFD-3+1)
			cmd.ExtraFiles[finalDirFD-3] = write
			out, _ := cmd.Output()
			write.Close()
			told, _ := io.ReadAll(read)
			read.Close()
			got := fmt.Sprintf("%sexit %d\n", out, cmd.ProcessState.ExitCode())
			if strings.TrimSuffix(string(told), "\n") != tt.want || got != tt.out {
				t.Errorf("%s: %s: %q, want %q; %q, want %q", sh, tt.script, told, tt.want, got, tt.out)
			}
		}
	}
}

func TestFinalDirOfACall(t *testing.T) {
	c, b := fakeCommand(t, "")
	sub := mkdir(t, c.Dir, "sub")
	mkdir(t, c.Dir, "line\nbreak")
	c.FinalDir = true
	for script, want := range map[string]string{
		"cd sub":                                 sub,
		"touch x":                                c.Dir,
		"cd /":                                   "/",
		"cd /tmp":                                "", // another one outside
		"cd line*":                               "",
		"cd sub; echo /x >&99":                   "", // what the command writes there is not believed
		"cd sub; printf '\\0' >&99; trap - EXIT": "",
		"mkdir gone; cd gone; rmdir ../gone":     "",
	} {
		c.Script = script
		if r := run(t, c); r.FinalDir != want || r.ExitCode != 0 {
			t.Errorf("%s: %q, want %q", script, r.FinalDir, want)
		}
	}
	if c.Script = "touch x"; run(t, c).FinalDir == "" || len(b.cmd.Args) != 3 || b.cmd.Args[2] != "touch x" || len(b.cmd.ExtraFiles) != 0 {
		t.Errorf("a script that stays where it is was changed: %q", b.cmd.Args)
	}
	c.FinalDir, c.Script = false, "cd sub"
	if r := run(t, c); r.FinalDir != "" || b.cmd.Args[2] != c.Script {
		t.Errorf("nobody asked: %q", r.FinalDir)
	}
	// The descriptor of the caller's stays where it is.
	c.FinalDir, c.Script = true, "cd sub; cat <&5"
	f, err := os.Open(write(t, "five", c.Dir, "file"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	c.ExtraFiles = []*os.File{nil, nil, f}
	if r := run(t, c); r.FinalDir != sub || string(r.Output.Stdout.Tail) != "five" {
		t.Errorf("%q, %q", r.FinalDir, r.Output.Stdout.Tail)
	}
}

// Many runs at once, for real: none fails, and nothing of them is left.
func TestManyAtOnce(t *testing.T) {
	home := tempDir(t)
	t.Setenv("HOME", home)
	for _, name := range []string{"XDG_STATE_HOME", "XDG_CACHE_HOME", "XDG_CONFIG_HOME"} {
		t.Setenv(name, "")
	}
	ws := mkdir(t, home, "ws")
	one := func(i int) error {
		r, err := Run(t.Context(), Command{
			Script: fmt.Sprintf("cd /; echo out %d; echo err >&2; exit %d", i, i%100), Dir: ws,
			Stdin: strings.NewReader("x"), Timeout: 5 * time.Minute, FinalDir: true,
		})
		if err != nil {
			return err
		}
		if r.Cause != Exited || r.ExitCode != i%100 || string(r.Output.Stdout.Tail) != fmt.Sprintf("out %d\n", i) || string(r.Output.Stderr.Tail) != "err\n" || r.FinalDir != "/" {
			return fmt.Errorf("%s, exit code %d, %q, %q, %q", r.Cause, r.ExitCode, r.Output.Stdout.Tail, r.Output.Stderr.Tail, r.FinalDir)
		}
		return nil
	}
	if err := one(0); errors.Is(err, errors.ErrUnsupported) {
		t.Skip(err)
	} else if err != nil {
		t.Fatal(err)
	}
	descriptors := func() int {
		entries, err := os.ReadDir("/proc/self/fd")
		if err != nil {
			t.Skip(err)
		}
		return len(entries)
	}
	fds, goroutines := descriptors(), runtime.NumGoroutine()
	var wait sync.WaitGroup
	for i := range 200 {
		wait.Go(func() {
			if err := one(i); err != nil {
				t.Errorf("%d: %v", i, err)
			}
		})
	}
	wait.Wait()
	for range 500 { // timers and what ends behind a Wait
		if runtime.NumGoroutine() <= goroutines && descriptors() <= fds {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Errorf("%d descriptors, before %d; %d goroutines, before %d", descriptors(), fds, runtime.NumGoroutine(), goroutines)
}
