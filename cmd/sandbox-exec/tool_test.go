//go:build linux

package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/sandbox-exec/sandbox-exec/runner"
	"github.com/sandbox-exec/sandbox-exec/sandbox"
)

// tool is a call of a tool in a workspace of its own.
type tool struct {
	*exec.Cmd
	home, workspace string
	out, errs       bytes.Buffer
}

func newTool(t *testing.T, args ...string) *tool {
	t.Helper()
	home, err := os.MkdirTemp("/var/tmp", "tool-*")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(home) })
	c := &tool{home: home, workspace: filepath.Join(home, "ws")}
	if err := os.Mkdir(c.workspace, 0o755); err != nil {
		t.Fatal(err)
	}
	c.Cmd = exec.Command("sandbox-exec", append([]string{"--json"}, args...)...)
	c.Dir = c.workspace
	c.Env = []string{"HOME=" + home, "PATH=" + os.Getenv("PATH")}
	c.Stdout, c.Stderr = &c.out, &c.errs
	return c
}

// result is what a program in another language reads.
type result struct {
	Ran      bool
	Cause    runner.Cause
	ExitCode *int `json:"exit_code"`
	Signal   string
	Status   int
	Text     string
	Output   output
	Sandbox  struct {
		Tier   string
		Layers []struct{ Name, State string }
	}
}

// counted says whether a control group counts what the tree uses. Where none
// does, the tree is looked at now and then, and ended as a whole.
func (r *result) counted() bool {
	for _, layer := range r.Sandbox.Layers {
		if layer.Name == sandbox.LayerCgroup {
			return layer.State == sandbox.Enforced.String()
		}
	}
	return false
}

// result waits for the end.
func (c *tool) result(t *testing.T) result {
	t.Helper()
	err := c.Wait()
	var failed *exec.ExitError
	if err != nil && !errors.As(err, &failed) {
		t.Fatal(err)
	}
	var r result
	if err := json.Unmarshal(c.out.Bytes(), &r); err != nil {
		t.Fatalf("%v: %s%s", err, &c.out, &c.errs)
	}
	if got := c.ProcessState.ExitCode(); got != r.Status {
		t.Errorf("exit status %d, the result says %d", got, r.Status)
	}
	return r
}

// until waits for something to become true.
func until(t *testing.T, what string, is func() bool) {
	t.Helper()
	for range 3000 {
		if is() {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Fatalf("in vain: %s", what)
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

// Every cause, provoked for real.
func TestCauses(t *testing.T) {
	const ready = "touch ready; "
	signals := func(list ...syscall.Signal) func(*testing.T, *tool) {
		return func(t *testing.T, c *tool) {
			until(t, "the command runs", func() bool { return exists(filepath.Join(c.workspace, "ready")) })
			for _, sig := range list {
				c.Process.Signal(sig)
				time.Sleep(100 * time.Millisecond) // two of a kind at once are one
			}
		}
	}
	const no = -1
	for _, tt := range []struct {
		name   string
		flags  string
		script string
		do     func(*testing.T, *tool)
		cause  runner.Cause
		code   int // no = it did not exit by itself
		signal string
		status int
		text   string
	}{
		{"success", "", "exit 0", nil, runner.Exited, 0, "", 0, "[no output]\n"},
		{"failure", "", "exit 255", nil, runner.Exited, 255, "", 255, "exit status 255"},
		{"signal", "", "kill -SEGV $$", nil, runner.Signalled, no, "SIGSEGV", 139, "killed by signal 11"},
		{"time-out", "--timeout 1s", "exec sleep 600", nil, runner.TimedOut, no, "SIGTERM", 124, "timed out after 1 s"},
		{"time-out, and its own status", "--timeout 1s", "trap 'exit 9' TERM; sleep 600 & wait", nil, runner.TimedOut, 9, "", 124, "exit status 9"},
		{"time-out, and SIGTERM ignored", "--timeout 1s --grace 200ms", "trap '' TERM; while :; do sleep 1; done", nil, runner.TimedOut, no, "SIGKILL", 124, "timed out"},
		{"cancelled by the user", "", ready + "exec sleep 600", signals(syscall.SIGINT), runner.CancelledByUser, no, "SIGTERM", 130, "do not retry by yourself"},
		{"cancelled by the user, twice", "--grace 300s", "trap '' TERM INT; " + ready + "while :; do sleep 1; done", signals(syscall.SIGINT, syscall.SIGINT), runner.CancelledByUser, no, "SIGKILL", 130, "do not retry by yourself"},
		{"cancelled by the program", "", ready + "exec sleep 600", signals(syscall.SIGTERM), runner.Cancelled, no, "SIGTERM", 143, "cancelled by the program"},
		{"output limit", "--output-limit 100K", "exec yes", nil, runner.OutputLimit, no, "SIGTERM", 143, "more than 100 KiB"},
		{"output limit, and it ends by itself", "--output-limit 1K", "trap '' TERM; head -c 1025 /dev/zero; exit 0", nil, runner.OutputLimit, 0, "", 143, "more than 1 KiB"},
		{"output at the limit", "--output-limit 1K", "head -c 1024 /dev/zero", nil, runner.Exited, 0, "", 0, "binary output, 1 KiB"},
		{"memory", "--memory 100M", "head -c 400M /dev/zero | tail; exit 7", nil, runner.OOM, 7, "", 7, "more memory than it may (100 MiB)"},
		{"processes", "--pids 16", "exec dash -c 'for i in $(seq 40); do sleep 600 & done; exit 7'", nil, runner.PIDsLimit, no, "", 0, "processes and threads than it may (16)"},
		{"helper", "", ready + "exec sleep 600", func(t *testing.T, c *tool) {
			until(t, "the command runs", func() bool { return exists(filepath.Join(c.workspace, "ready")) })
			for _, pid := range children(c.Process.Pid) {
				syscall.Kill(pid, syscall.SIGKILL)
			}
		}, runner.HelperLost, no, "", 125, "helper"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := newTool(t, append(strings.Fields(tt.flags), "-c", tt.script)...)
			if err := c.Start(); err != nil {
				t.Fatal(err)
			}
			if tt.do != nil {
				tt.do(t, c)
			}
			r := c.result(t)
			code := no
			if r.ExitCode != nil {
				code = *r.ExitCode
			}
			if tt.cause == runner.PIDsLimit {
				// What a shell does that cannot fork is its own affair.
				code, r.Status = no, 0
			}
			if limit := tt.cause == runner.OOM || tt.cause == runner.PIDsLimit; limit && !r.counted() {
				// Of a fork that an rlimit refuses nobody is told.
				if r.Cause != tt.cause && tt.cause == runner.OOM || r.Text == "" {
					t.Errorf("%s: %s", r.Cause, r.Text)
				}
				return
			}
			if r.Cause != tt.cause || code != tt.code || r.Signal != tt.signal || r.Status != tt.status {
				t.Errorf("%s, exit code %d, signal %q, status %d; want %s, %d, %q, %d", r.Cause, code, r.Signal, r.Status, tt.cause, tt.code, tt.signal, tt.status)
			}
			if !strings.Contains(r.Text, tt.text) {
				t.Errorf("text %q, want %q in it", r.Text, tt.text)
			}
		})
	}
}

// children are the processes that a process has started.
func children(pid int) []int {
	var out []int
	lists, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid))
	for _, list := range lists {
		text, _ := os.ReadFile(list)
		for _, word := range strings.Fields(string(text)) {
			if n, err := strconv.Atoi(word); err == nil {
				out = append(out, n)
			}
		}
	}
	return out
}

// with counts the processes of the machine whose command line holds a word.
func with(word string) int {
	n := 0
	lines, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, line := range lines {
		text, _ := os.ReadFile(line)
		if bytes.Contains(text, []byte(word)) && !bytes.Contains(text, []byte("--json")) {
			n++
		}
	}
	return n
}

// Nothing of a tree that does not want to end is there afterwards, counted from
// outside.
func TestNobodySurvives(t *testing.T) {
	for name, script := range map[string]string{
		"new session":     "setsid sleep MARK & setsid setsid sleep MARK & sleep MARK",
		"double fork":     "(sleep MARK & sleep MARK & ) & (setsid sh -c 'sleep MARK & sleep MARK' & ) & sleep MARK",
		"ignores SIGTERM": "sh -c 'trap \"\" TERM HUP INT; while :; do sleep MARK; done' & trap '' TERM; while :; do sleep MARK; done",
		"stopped":         "sleep MARK & kill -STOP $!; sh -c 'kill -STOP $$; sleep MARK' & kill -STOP $$; sleep MARK",
		"storm":           "storm() { while :; do sleep MARK & setsid sleep MARK & done; }; storm & storm",
	} {
		t.Run(name, func(t *testing.T) {
			mark := fmt.Sprintf("600.%d%d", os.Getpid(), time.Now().UnixNano()%1e9)
			c := newTool(t, "--timeout", "1s", "--grace", "200ms", "--pids", "40", "-c", strings.ReplaceAll(script, "MARK", mark))
			if err := c.Start(); err != nil {
				t.Fatal(err)
			}
			until(t, "the tree grows", func() bool {
				stat, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", c.Process.Pid))
				return with(mark) > 0 || bytes.Contains(stat, []byte(") Z ")) // it has ended already
			})
			r := c.result(t)
			if r.Cause != runner.TimedOut && r.Cause != runner.PIDsLimit {
				t.Errorf("%s: %s", r.Cause, r.Text)
			}
			if r.Sandbox.Tier != "namespaces" {
				// There the cgroup is killed, or what is found is; a moment later.
				until(t, "the tree ends", func() bool { return with(mark) == 0 })
				return
			}
			if n := with(mark); n > 0 {
				t.Errorf("%d processes are left", n)
			}
		})
	}
}

// However much a command writes, it is all in the file and little of it in
// memory.
func TestOutputIsNotInMemory(t *testing.T) {
	const size = 256 << 20
	c := newTool(t, "--output-limit", "unlimited", "-c",
		fmt.Sprintf("yes 'a line of some length' | head -c %d; touch ready; while ! test -e go; do sleep 0.05; done", size))
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	until(t, "all is written", func() bool { return exists(filepath.Join(c.workspace, "ready")) })
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", c.Process.Pid))
	if err != nil {
		t.Fatal(err)
	}
	os.WriteFile(filepath.Join(c.workspace, "go"), nil, 0o644)
	_, rest, _ := strings.Cut(string(status), "VmHWM:")
	var peak int
	if _, err := fmt.Sscan(rest, &peak); err != nil || peak > 40<<10 && !raceDetector {
		t.Errorf("%d KiB of memory were used at the most, %v", peak, err)
	}

	r := c.result(t)
	s := r.Output.Stdout
	if r.Cause != runner.Exited || s.Bytes != size || !s.Truncated || s.File == "" {
		t.Fatalf("%s, %+v", r.Cause, s.Bytes)
	}
	want := exec.Command("sh", "-c", fmt.Sprintf("yes 'a line of some length' | head -c %d | cmp - %s", size, s.File))
	if out, err := want.CombinedOutput(); err != nil {
		t.Errorf("%v: %s", err, out)
	}
	if info, err := os.Stat(s.File); err != nil || info.Mode() != 0o600 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
}
