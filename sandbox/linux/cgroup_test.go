//go:build linux

package linux

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/sandbox-exec/sandbox-exec/sandbox"
	"golang.org/x/sys/unix"
)

func TestGroupDir(t *testing.T) {
	const mounts = `24 1 0:22 / /sys rw - sysfs sysfs rw
31 24 0:28 / /sys/fs/cgroup rw - tmpfs tmpfs rw,mode=755
32 31 0:29 / /sys/fs/cgroup/cpu,cpuacct rw,nosuid shared:9 - cgroup cgroup rw,cpu,cpuacct
35 31 0:32 /docker/f00 /sys/fs/cgroup/memory ro - cgroup cgroup rw,memory
36 31 0:33 /docker/other /sys/fs/cgroup/pids ro - cgroup cgroup rw,pids
37 31 0:33 /docker /mnt/pids ro - cgroup cgroup rw,pids
41 31 0:38 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw
42 31 broken
`
	for _, test := range []struct{ fstype, controller, path, want string }{
		{"cgroup", "cpu", "/", "/sys/fs/cgroup/cpu,cpuacct"},
		{"cgroup", "cpuacct", "/a/b", "/sys/fs/cgroup/cpu,cpuacct/a/b"},
		{"cgroup", "acct", "/", ""},
		{"cgroup", "memory", "/docker/f00", "/sys/fs/cgroup/memory"},
		{"cgroup", "memory", "/docker/f00/a", "/sys/fs/cgroup/memory/a"},
		{"cgroup", "memory", "/docker/f00a", ""},
		{"cgroup", "memory", "/", ""},
		{"cgroup", "pids", "/docker/mine", "/mnt/pids/mine"},
		{"cgroup", "rdma", "/", ""},
		{"cgroup2", "", "/user.slice", "/sys/fs/cgroup/unified/user.slice"},
		{"cgroup2", "", "/../..", ""},
		{"cgroup2", "", "", ""},
	} {
		got, ok := groupDir([]byte(mounts), test.fstype, test.controller, test.path)
		if got != test.want || ok != (test.want != "") {
			t.Errorf("%s %s %q: got %q, %v, want %q", test.fstype, test.controller, test.path, got, ok, test.want)
		}
	}
}

func TestUnifiedParent(t *testing.T) {
	// A directory with these files stands for a cgroup.
	type files map[string]string
	for _, test := range []struct {
		name     string
		parent   files
		own      files
		wantDir  string // "own", "parent" or none
		want     string // controllers
		lacks    string
		enabled  string // written to cgroup.subtree_control
		failure  bool
		wantKind error
	}{
		{
			name:    "the root hands on what it has",
			own:     files{"cgroup.controllers": "cpu memory pids", "cgroup.subtree_control": "cpu"},
			wantDir: "own", want: "memory pids", enabled: "+pids",
		},
		{
			name:    "a leaf's parent has it enabled",
			parent:  files{"cgroup.controllers": "memory pids", "cgroup.subtree_control": "memory pids"},
			own:     files{"cgroup.type": "domain", "cgroup.controllers": "memory pids", "cgroup.subtree_control": ""},
			wantDir: "parent", want: "memory pids", enabled: "memory pids",
		},
		{
			name:    "no memory in this kernel",
			parent:  files{"cgroup.controllers": "pids", "cgroup.subtree_control": "pids"},
			own:     files{"cgroup.type": "domain"},
			wantDir: "parent", want: "pids", lacks: "memory", enabled: "pids",
		},
		{
			name:   "a hybrid without controllers",
			own:    files{"cgroup.controllers": "", "cgroup.subtree_control": ""},
			lacks:  "memory pids",
			parent: files{},
		},
		{
			name:  "a container's root, with nothing above it",
			own:   files{"cgroup.type": "domain", "cgroup.controllers": "memory pids", "cgroup.subtree_control": ""},
			lacks: "memory pids",
		},
		{
			name:    "a control file that cannot be opened for another reason",
			own:     files{"cgroup.controllers": "memory pids", "cgroup.subtree_control/": ""},
			failure: true,
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			dir := t.TempDir()
			own := filepath.Join(dir, "own")
			if err := os.Mkdir(own, 0o755); err != nil {
				t.Fatal(err)
			}
			for d, fs := range map[string]files{dir: test.parent, own: test.own} {
				for name, content := range fs {
					var err error
					if strings.HasSuffix(name, "/") {
						err = os.Mkdir(filepath.Join(d, name), 0o755)
					} else {
						err = os.WriteFile(filepath.Join(d, name), []byte(content), 0o644)
					}
					if err != nil {
						t.Fatal(err)
					}
				}
			}
			parents, err := unifiedParent(own, []string{"memory", "pids"})
			if test.failure {
				if err == nil || errors.Is(err, errNoCgroup) {
					t.Fatalf("got %v, %v, want a failure", parents, err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			var gotDir string
			var got, lacks []string
			for _, p := range parents {
				switch {
				case p.err == nil:
					gotDir, got = p.dir, p.controllers
				case errors.Is(p.err, errNoCgroup):
					lacks = append(lacks, p.controllers...)
				default:
					t.Errorf("got error %v, want errNoCgroup", p.err)
				}
			}
			wantDir := map[string]string{"own": own, "parent": dir}[test.wantDir]
			if gotDir != wantDir || strings.Join(got, " ") != test.want || strings.Join(lacks, " ") != test.lacks {
				t.Errorf("got %q %v, lacking %v", gotDir, got, lacks)
			}
			if wantDir != "" {
				control, _ := os.ReadFile(filepath.Join(wantDir, "cgroup.subtree_control"))
				if !strings.HasPrefix(string(control), test.enabled) {
					t.Errorf("subtree_control holds %q, want %q", control, test.enabled)
				}
			}
		})
	}
}

func TestGroupMakeErrors(t *testing.T) {
	_, err := parent{dir: filepath.Join(t.TempDir(), "none")}.make("x")
	if !errors.Is(err, errNoCgroup) || !errors.Is(err, unix.ENOENT) {
		t.Errorf("no directory: got %v, want errNoCgroup and ENOENT", err)
	}
	_, err = parent{dir: t.TempDir()}.make(strings.Repeat("x", 300))
	if errors.Is(err, errNoCgroup) || !errors.Is(err, unix.ENAMETOOLONG) || !errors.As(err, new(*sandbox.SetupError)) {
		t.Errorf("a name too long: got %v, want a failure", err)
	}
}

// requireCgroup makes a group, which is gone after the test, with at least
// these controllers.
func requireCgroup(t *testing.T, l sandbox.Limits, controllers ...string) *cgroup {
	t.Helper()
	c, err := newCgroup(l)
	if errors.Is(err, errNoCgroup) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	var paths []string
	defer func() {
		for _, controller := range controllers {
			if slices.Contains(c.lacks, controller) {
				t.Skip(c.why)
			}
		}
	}()
	for _, g := range c.groups {
		paths = append(paths, g.path)
	}
	t.Cleanup(func() {
		if err := c.delete(); err != nil {
			t.Error(err)
		}
		for _, path := range paths {
			if pathExists(path) {
				t.Errorf("%s is left", path)
			}
		}
	})
	return c
}

func pathExists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

// inside is a command that enters the group and then is a shell with script.
func inside(t *testing.T, c *cgroup, script string, args ...string) *exec.Cmd {
	t.Helper()
	files, into, err := c.entrances()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		for _, f := range files {
			f.Close()
		}
		into.Close()
	})
	enter := ""
	for i := range files {
		enter += fmt.Sprintf("echo 0 >&%d && exec %d>&- && ", 3+i, 3+i)
	}
	cmd := exec.Command("/bin/sh", append([]string{"-c", enter + "{ " + script + "; }", "sh"}, args...)...)
	cmd.ExtraFiles = files
	if into != nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{UseCgroupFD: true, CgroupFD: int(into.Fd())}
	}
	return cmd
}

func TestCgroupMemory(t *testing.T) {
	c := requireCgroup(t, sandbox.Limits{Memory: 32 << 20}, "memory")
	cmd := inside(t, c, `exec "$@"`, "env", cgroupChildEnv+"=memory", "/proc/self/exe", "-test.run=^TestCgroupChild$")
	cmd.Args[len(cmd.Args)-2], _ = os.Executable()
	out, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.Sys().(syscall.WaitStatus).Signal() != unix.SIGKILL {
		t.Errorf("96 MiB in 32 MiB: got %v %s, want death by SIGKILL", err, out)
	}
	memory, _, _, oom, pidsMax := c.usage()
	if memory == 0 && c.groups[0].unified && !kernelAtLeast(5, 19) {
		memory = 32 << 20 // has no peak
	}
	if !oom || pidsMax || memory < 16<<20 || memory > 33<<20 {
		t.Errorf("usage: oom %v, pidsMax %v, peak %d", oom, pidsMax, memory)
	}
}

func TestCgroupPIDs(t *testing.T) {
	c := requireCgroup(t, sandbox.Limits{PIDs: 20, Memory: 64 << 20}, "pids")
	cmd := inside(t, c, `i=0; while [ $i -lt 40 ]; do sleep 20 >/dev/null 2>&1 & i=$((i+1)); done; echo all`)
	out, err := cmd.Output()
	if err == nil || len(out) > 0 {
		t.Errorf("41 processes of 20: got %v %q, want a failed fork", err, out)
	}
	_, pids, _, oom, pidsMax := c.usage()
	if !pidsMax || oom {
		t.Errorf("usage: pidsMax %v, oom %v", pidsMax, oom)
	}
	if pids != 0 && pids != 20 { // 0: before Linux 6.1
		t.Errorf("usage: peak of %d processes, want 20", pids)
	}
	if err := c.kill(); err != nil {
		t.Error(err)
	}
}

// TestCgroupKill ends processes that left their session and their parent, and
// does not count what it refuses itself as a refusal of the cap.
func TestCgroupKill(t *testing.T) {
	c := requireCgroup(t, sandbox.Limits{PIDs: 30})
	fifo := filepath.Join(t.TempDir(), "ready")
	if err := unix.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := inside(t, c, `(setsid sh -c 'sleep 60 & while :; do sh -c : ; done' &) ; sleep 60 & echo >"$1"`, fifo)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.ReadFile(fifo); err != nil {
		t.Fatal(err)
	}
	cmd.Wait()
	var pids []int
	for deadline := time.Now().Add(5 * time.Second); len(pids) < 3; time.Sleep(time.Millisecond) {
		var err error
		if pids, err = c.groups[0].processes(); err != nil || time.Now().After(deadline) {
			t.Fatalf("got processes %v, %v, want 3", pids, err)
		}
	}
	if err := c.kill(); err != nil {
		t.Fatal(err)
	}
	deadline := time.Now().Add(5 * time.Second)
	for len(pids) > 0 && time.Now().Before(deadline) {
		time.Sleep(time.Millisecond)
		var err error
		if pids, err = c.groups[0].processes(); err != nil {
			t.Fatal(err)
		}
	}
	if len(pids) > 0 {
		t.Errorf("still there: %v", pids)
	}
	inside(t, c, `true & wait`).Run() // is refused where kill set a cap of 0
	if _, _, _, _, pidsMax := c.usage(); pidsMax {
		t.Error("the cap is said to have refused a fork")
	}
}

func TestCgroupDeleteEndsWhatLives(t *testing.T) {
	c := requireCgroup(t, sandbox.Limits{PIDs: 30})
	cmd := inside(t, c, `sleep 60`)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	for pids := []int(nil); len(pids) == 0; time.Sleep(time.Millisecond) {
		pids, _ = c.groups[len(c.groups)-1].processes()
	}
	go cmd.Wait()
	if err := c.delete(); err != nil {
		t.Error(err)
	}
}

func TestCgroupLayer(t *testing.T) {
	c := requireCgroup(t, sandbox.Limits{Memory: 32 << 20, PIDs: 30, CPUs: 0.5})
	layer := c.layer()
	for _, controller := range []string{"memory", "pids", "cpu"} {
		lacks := slices.Contains(c.lacks, controller)
		if strings.Contains(layer.Detail, controller) == lacks || strings.Contains(layer.Lost, controller) != lacks {
			t.Errorf("lacking %v: got %+v", c.lacks, layer)
		}
	}
	if (layer.State == sandbox.Enforced) != (c.lacks == nil) {
		t.Errorf("lacking %v: got %+v", c.lacks, layer)
	}
	c.lacks, c.why = []string{"memory"}, errNoCgroup
	if layer := c.layer(); layer.State != sandbox.Weaker || layer.Lost != "no cap on memory" || layer.Why == "" {
		t.Errorf("without memory: got %+v", layer)
	}
	c.limits.Memory = sandbox.Unlimited
	if layer := c.layer(); layer.State != sandbox.Enforced {
		t.Errorf("without memory, which has no limit: got %+v", layer)
	}
}

// TestCgroupLimits reads back what the kernel holds.
func TestCgroupLimits(t *testing.T) {
	c := requireCgroup(t, sandbox.Limits{Memory: 32 << 20, PIDs: 30, CPUs: 0.5})
	want := map[string]string{
		"memory.max": "33554432", "memory.swap.max": "0", "memory.oom.group": "1", "cpu.max": "50000 100000",
		"memory.limit_in_bytes": "33554432", "memory.memsw.limit_in_bytes": "33554432",
		"cpu.cfs_quota_us": "50000", "cpu.cfs_period_us": "100000",
		"pids.max": "30",
	}
	found := 0
	for _, g := range c.groups {
		for file, value := range want {
			got, err := os.ReadFile(filepath.Join(g.path, file))
			if err != nil {
				continue
			}
			found++
			if strings.TrimSpace(string(got)) != value {
				t.Errorf("%s: got %s, want %s", file, got, value)
			}
		}
	}
	if found < 3-len(c.lacks) {
		t.Errorf("found only %d of the files", found)
	}

	none := requireCgroup(t, sandbox.Limits{Memory: sandbox.Unlimited})
	for _, g := range none.groups {
		if got, err := os.ReadFile(filepath.Join(g.path, "pids.max")); err == nil && strings.TrimSpace(string(got)) != "max" {
			t.Errorf("no limit: pids.max is %s", got)
		}
	}
}

func TestSweepGroups(t *testing.T) {
	c := requireCgroup(t, sandbox.Limits{})
	var parents []parent
	for _, g := range c.groups {
		parents = append(parents, parent{dir: filepath.Dir(g.path), unified: g.unified, controllers: g.controllers})
	}
	gone := exec.Command("true")
	if err := gone.Run(); err != nil {
		t.Fatal(err)
	}
	dead := groupPrefix + strconv.Itoa(gone.Process.Pid)

	left, held := new(cgroup), new(cgroup)
	for _, p := range parents {
		for c, name := range map[*cgroup]string{left: dead + "-1", held: dead + "-2"} {
			g, err := p.make(name)
			if err != nil {
				t.Fatal(err)
			}
			c.groups = append(c.groups, g)
			t.Cleanup(func() { unix.Rmdir(g.path) })
		}
	}
	cmd := inside(t, left, `exec sleep 60`)
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	for pids := []int(nil); len(pids) == 0; time.Sleep(time.Millisecond) {
		pids, _ = left.groups[len(left.groups)-1].processes()
	}
	for _, g := range left.groups { // its maker has no lock any more
		g.lock.Close()
	}

	done := make(chan error)
	go func() {
		stdout.Read(make([]byte, 1))
		done <- cmd.Wait()
	}()
	sweepGroups(parents)
	if err := <-done; err == nil || pathExists(left.groups[0].path) {
		t.Errorf("a leftover with a process: %v, still there: %v", err, pathExists(left.groups[0].path))
	}
	for _, g := range held.groups {
		if !pathExists(g.path) {
			t.Error("a group whose lock is held was removed")
		}
	}
}

// A group that somebody takes for a leftover before it is locked is made again.
func TestGroupsBesideASweep(t *testing.T) {
	var parents []parent
	for _, g := range requireCgroup(t, sandbox.Limits{}).groups {
		parents = append(parents, parent{dir: filepath.Dir(g.path)})
	}
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		for {
			select {
			case <-stop:
				return
			default:
				sweepGroups(parents)
			}
		}
	}()
	for range 100 {
		c, err := newCgroup(sandbox.Limits{})
		if err != nil {
			t.Error(err)
			break
		}
		for _, g := range c.groups {
			if !pathExists(g.path) {
				t.Error("a group is gone")
			}
		}
		if err := c.delete(); err != nil {
			t.Error(err)
		}
	}
	close(stop)
	<-stopped
}

// TestCgroupUnified tries what needs no controller, on machines that have the
// unified hierarchy for nothing else.
func TestCgroupUnified(t *testing.T) {
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		t.Fatal(err)
	}
	dir, ok := groupDir(mounts, "cgroup2", "", "/")
	if !ok {
		t.Skip("no unified hierarchy")
	}
	g, err := parent{dir: dir, unified: true}.make(fmt.Sprintf("%s%d-test", groupPrefix, os.Getpid()))
	if errors.Is(err, errNoCgroup) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	c := &cgroup{groups: []group{g}}
	t.Cleanup(func() { c.delete() })
	cmd := inside(t, c, `i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done; sleep 60`)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go cmd.Wait()
	var cpu time.Duration
	for end := time.Now().Add(10 * time.Second); cpu == 0 && time.Now().Before(end); time.Sleep(time.Millisecond) {
		_, _, cpu, _, _ = c.usage()
	}
	if cpu == 0 {
		t.Error("no processor time")
	}
	if err := c.delete(); err != nil || pathExists(g.path) {
		t.Errorf("delete: %v", err)
	}
}

const cgroupChildEnv = "SANDBOX_EXEC_CGROUP_CHILD"

func TestCgroupChild(t *testing.T) {
	switch os.Getenv(cgroupChildEnv) {
	case "memory":
		b := make([]byte, 96<<20)
		for i := 0; i < len(b); i += 4096 {
			b[i] = 1
		}
		os.Exit(0)
	case "new":
		c, err := newCgroup(sandbox.Limits{Memory: 32 << 20})
		if err == nil {
			c.delete()
		}
		fmt.Printf("%v\n%v\n", errors.Is(err, errNoCgroup), err)
		os.Exit(0)
	default:
		t.Skip("is run by other tests")
	}
}

func TestCgroupOrdinaryUser(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root to become another user")
	}
	cmd := exec.Command("/proc/self/exe", "-test.run=^TestCgroupChild$")
	cmd.Env = append(os.Environ(), cgroupChildEnv+"=new")
	cmd.Dir = "/"
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	out, err := cmd.CombinedOutput()
	if err != nil || !strings.HasPrefix(string(out), "true\n") {
		t.Errorf("nobody: got %v %s, want errNoCgroup", err, out)
	}
}

func TestRlimits(t *testing.T) {
	var files unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &files); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		limits sandbox.Limits
		want   string
	}{
		{sandbox.Limits{}, "[{4 0}]"},
		{sandbox.Limits{OpenFiles: sandbox.Unlimited, FileSize: sandbox.Unlimited}, "[{4 0}]"},
		{sandbox.Limits{OpenFiles: 64, FileSize: 1 << 20, Memory: 1 << 30, PIDs: 10}, "[{4 0} {7 64} {1 1048576}]"},
		{sandbox.Limits{OpenFiles: 1 << 60}, fmt.Sprintf("[{4 0} {7 %d}]", files.Max)},
	} {
		if got := fmt.Sprint(rlimits(test.limits)); got != test.want {
			t.Errorf("%+v: got %s, want %s", test.limits, got, test.want)
		}
	}
}

// TestProcessRlimit starts 40 processes in a user namespace, as a user who has
// more of them than the cap outside.
func TestProcessRlimit(t *testing.T) {
	limits := processRlimit(sandbox.Limits{PIDs: 20})
	if limits == nil {
		t.Skip("this kernel counts all processes of a user")
	}
	if got := processRlimit(sandbox.Limits{PIDs: sandbox.Unlimited}); got != nil {
		t.Errorf("unlimited: got %v", got)
	}
	for _, tool := range []string{"prlimit", "unshare"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skip(err)
		}
	}
	attr := &syscall.SysProcAttr{}
	if os.Geteuid() == 0 {
		attr.Credential = &syscall.Credential{Uid: 65534, Gid: 65534}
	}
	count := func(unshare ...string) string {
		t.Helper()
		argv := append(unshare, "prlimit", fmt.Sprintf("--nproc=%d", limits[0].value), "sh", "-c",
			`i=0; while [ $i -lt 40 ]; do sleep 2 >/dev/null 2>&1 & i=$((i+1)); echo $i; done`)
		cmd := exec.Command(argv[0], argv[1:]...)
		cmd.SysProcAttr, cmd.Dir = attr, "/"
		out, _ := cmd.Output()
		lines := strings.Fields(string(out))
		if len(lines) == 0 {
			return "0"
		}
		return lines[len(lines)-1]
	}
	if out, err := exec.Command("unshare", "-U", "true").CombinedOutput(); err != nil {
		t.Skipf("no user namespaces: %s", out)
	}
	outside := exec.Command("sh", "-c", `i=0; while [ $i -lt 20 ]; do sleep 30 & i=$((i+1)); done; echo; wait`)
	outside.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Credential: attr.Credential}
	stdout, err := outside.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := outside.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		unix.Kill(-outside.Process.Pid, unix.SIGKILL)
		outside.Wait()
	}()
	stdout.Read(make([]byte, 1))
	n, err := strconv.Atoi(count("unshare", "-U"))
	if err != nil || n < 15 || n > 19 {
		t.Errorf("in a user namespace of its own: %d processes, %v, want nearly 20", n, err)
	}
}
