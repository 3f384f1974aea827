package main

import (
	"bytes"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// rounds is how often a torture is repeated: SANDBOX_EXEC_TORTURE, else few.
func rounds(t *testing.T) int {
	text := os.Getenv("SANDBOX_EXEC_TORTURE")
	if text == "" {
		return 8
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 {
		t.Fatalf("SANDBOX_EXEC_TORTURE=%q: want a number", text)
	}
	return n
}

// marked are the processes whose environment holds a variable, found from
// outside of every sandbox.
func marked(t *testing.T, variable string) (found []string) {
	t.Helper()
	files, err := filepath.Glob("/proc/[0-9]*/environ")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		environ, err := os.ReadFile(file)
		if err != nil || !bytes.Contains(environ, []byte(variable)) {
			continue
		}
		dir := filepath.Dir(file)
		line, _ := os.ReadFile(dir + "/cmdline")
		found = append(found, fmt.Sprintf("%s %q", filepath.Base(dir), line))
	}
	return found
}

// gone waits until no marked process is left.
func gone(t *testing.T, variable string) {
	t.Helper()
	var left []string
	for range 1000 {
		if left = marked(t, variable); len(left) == 0 {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Errorf("%d survivors: %q", len(left), left)
}

func mounts(t *testing.T) []string {
	t.Helper()
	text, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		t.Fatal(err)
	}
	var ours []string
	for line := range strings.Lines(string(text)) {
		if strings.Contains(line, "sandbox-exec") {
			ours = append(ours, line)
		}
	}
	return ours
}

// namespaced skips where nothing promises that all is gone.
func namespaced(t *testing.T) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	doctor := &exec.Cmd{Path: self, Args: []string{"sandbox-exec", "doctor"}}
	out, err := doctor.Output()
	if err != nil || !bytes.Contains(out, []byte("tier: namespaces")) {
		t.Skipf("without namespaces what forks fast can outlive the command for a moment: %v", err)
	}
}

// tortured is a sandbox-exec of a workspace, with a mark for what it starts.
func tortured(t *testing.T, ws, mark string, args ...string) *exec.Cmd {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return &exec.Cmd{
		Path: self, Args: append([]string{"sandbox-exec", "-q", "--env", mark}, args...), Dir: ws,
		Env: append(os.Environ(), "HOME="+filepath.Dir(ws)),
	}
}

// Trees that do not want to end: nobody of them is left when sandbox-exec has
// ended, however it was told to.
func TestTortureTrees(t *testing.T) {
	namespaced(t)
	trees := map[string]string{
		"setsid":        `setsid sleep 600 & setsid sh -c 'sleep 600 & sleep 600' & echo ready; sleep 600`,
		"double fork":   `( (sleep 600 & sh -c 'sleep 600 & sleep 600' &) & ); echo ready; sleep 600`,
		"orphans alone": `(setsid sleep 600 >/dev/null 2>&1 &); echo ready`,
		"no SIGTERM":    `trap '' TERM INT HUP; setsid sleep 600 & (trap '' TERM; while :; do sleep 600; done) & echo ready; while :; do sleep 600; done`,
		"stopped":       `sleep 600 & kill -STOP $!; sh -c 'kill -STOP $$; sleep 600' & echo ready; sleep 600`,
		"forks":         `f() { sleep 0.05 & f & wait; }; f & f & echo ready; wait`,
		"forks on TERM": `trap 'for i in 1 2 3 4 5 6 7 8; do setsid sleep 600 & done; sleep 600' TERM; echo ready; while :; do sleep 0.01; done`,
	}
	for name, script := range trees {
		for _, end := range []string{"time-out", "TERM"} {
			t.Run(name+", "+end, func(t *testing.T) {
				ws := workspace(t)
				for n := range rounds(t) / 4 {
					mark := fmt.Sprintf("TORTURE=%d-%d-%d", os.Getpid(), n, rand.Uint64())
					args := []string{"--ask", "allow", "--pids", "60", "--grace", "50ms"}
					if end == "time-out" {
						args = append(args, "--timeout", "300ms")
					}
					cmd := tortured(t, ws, mark, append(args, "-c", script)...)
					out, err := cmd.StdoutPipe()
					if err == nil {
						err = cmd.Start()
					}
					if err != nil {
						t.Fatal(err)
					}
					if end == "TERM" {
						out.Read(make([]byte, 5)) // ready
						if len(marked(t, mark)) == 0 && name != "orphans alone" {
							t.Error("nobody is found while it runs")
						}
						cmd.Process.Signal(syscall.SIGTERM)
						// A program that ignores it goes on, as outside: so it is told
						// as often as timeout -k does.
						time.AfterFunc(time.Second, func() { cmd.Process.Kill() })
					}
					cmd.Wait()
					if end == "time-out" {
						if left := marked(t, mark); len(left) > 0 {
							t.Errorf("%d survivors: %q", len(left), left)
						}
					} else {
						gone(t, mark)
					}
				}
			})
		}
	}
}

// Whenever sandbox-exec is killed, no process and no mount is left, and no
// control group and no file after the next run.
func TestTortureKill(t *testing.T) {
	namespaced(t)
	ws := workspace(t)
	state := filepath.Join(filepath.Dir(ws), ".local/state/sandbox-exec")
	var killed []int
	slowest := time.Duration(0)
	for n := range rounds(t) {
		mark := fmt.Sprintf("TORTURE=%d-%d-%d", os.Getpid(), n, rand.Uint64())
		cmd := tortured(t, ws, mark, "-c", "setsid sleep 600 & trap '' TERM; head -c 300000 /dev/zero; sleep 600")
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		time.Sleep(rand.N(30 * time.Millisecond))
		cmd.Process.Kill()
		cmd.Wait()
		killed = append(killed, cmd.Process.Pid)
		if began := time.Now(); len(marked(t, mark)) > 0 {
			gone(t, mark)
			slowest = max(slowest, time.Since(began))
		}
	}
	t.Logf("%d rounds; where somebody was there at the first look, the slowest took %v to be gone", len(killed), slowest)
	if left := mounts(t); len(left) > 0 {
		t.Errorf("mounts: %q", left)
	}
	if out, err := tortured(t, ws, "TORTURE=", "--", "true").CombinedOutput(); err != nil {
		t.Fatalf("the next run: %v: %s", err, out)
	}
	var left []string
	filepath.WalkDir("/sys/fs/cgroup", func(path string, d fs.DirEntry, err error) error {
		name, found := strings.CutPrefix(filepath.Base(path), "sandbox-exec-")
		pid, _, _ := strings.Cut(name, "-")
		if n, err := strconv.Atoi(pid); found && err == nil && slices.Contains(killed, n) {
			left = append(left, path)
		}
		return nil
	})
	filepath.WalkDir(state, func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() && filepath.Base(path) != "lock" {
			left = append(left, path)
		}
		return nil
	})
	if len(left) > 0 {
		t.Errorf("left after the next run: %q", left)
	}
}

// A task whose supervisor is killed is lost, never running, and nothing of it
// is left; one that is stopped leaves nobody.
func TestTortureTasks(t *testing.T) {
	namespaced(t)
	ws := workspace(t)
	sandboxExec := func(args ...string) string {
		t.Helper()
		cmd := tortured(t, ws, "UNUSED=", args...)
		cmd.Args = append([]string{"sandbox-exec"}, args...)
		out, err := cmd.Output()
		if err != nil {
			t.Errorf("%q: %v, %s", args, err, out)
		}
		return strings.TrimSpace(string(out))
	}
	for n := range rounds(t) / 2 {
		mark := fmt.Sprintf("TORTURE=%d-%d-%d", os.Getpid(), n, rand.Uint64())
		id := sandboxExec("task", "start", "-q", "--timeout", "5m", "--grace", "50ms", "--env", mark, "-c", "trap '' TERM; setsid sleep 600 & while :; do sleep 0.1; done")
		want := `"state": "lost"`
		if n%2 == 0 {
			want = `"state": "ended"`
			sandboxExec("task", "stop", id)
			if left := marked(t, mark); len(left) > 0 {
				t.Errorf("stopped: %d survivors: %q", len(left), left)
			}
		} else {
			_, rest, _ := strings.Cut(sandboxExec("task", "list", "--json"), `"id": "`+id+`"`)
			_, rest, _ = strings.Cut(rest, `"pid": `)
			number, _, _ := strings.Cut(rest, ",")
			pid, err := strconv.Atoi(number)
			if err != nil {
				t.Fatal(err)
			}
			time.Sleep(rand.N(10 * time.Millisecond))
			syscall.Kill(pid, syscall.SIGKILL)
			gone(t, mark)
		}
		for range 500 { // the kernel takes its time to close the files of one that is killed
			if _, rest, _ := strings.Cut(sandboxExec("task", "list", "--json"), `"id": "`+id+`"`); strings.HasPrefix(strings.TrimLeft(rest, ", \n"), want) {
				want = ""
				break
			}
			time.Sleep(10 * time.Millisecond)
		}
		if want != "" {
			t.Errorf("task %s is not %s", id, want)
		}
	}
	sandboxExec("task", "prune")
	if left := sandboxExec("task", "list"); left != "" {
		t.Errorf("left: %s", left)
	}
}
