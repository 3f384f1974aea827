//go:build linux

package linux

import (
	"bufio"
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/containerd/cgroups/v3"
	"github.com/sandbox-exec/sandbox-exec/sandbox"
	"golang.org/x/sys/unix"
)

// errNoCgroup is the kind of error that says this machine gives us no control
// group of our own: nothing is mounted, or nothing is delegated to this user.
// Every other error of newCgroup is a failure.
var errNoCgroup = errors.New("no control group of our own")

// What may lie behind errNoCgroup, by step. Anything else, a machine out of
// memory or with too many groups for instance, can be brought about by a
// command, and must not take the caps from the next one.
var (
	notOurs       = []syscall.Errno{unix.EACCES, unix.EPERM, unix.EROFS, unix.ENOENT}
	notDelegated  = append(slices.Clone(notOurs), unix.EBUSY, unix.EOPNOTSUPP)
	noController  = unix.ENOENT // none in the group that we are in
	noParentGroup = unix.EBUSY  // the one in reach has processes
)

// cgroup is the control group of one command and all its descendants: one
// directory where the hierarchy is unified (v2), one a controller where it is
// not (v1), both in a hybrid.
//
// The managers of containerd/cgroups are left out on purpose: linking them
// makes every start 0.7 ms slower (protobuf, dbus and eBPF initialise), which
// is ten times what a group costs.
type cgroup struct {
	limits sandbox.Limits
	groups []group
	lacks  []string // controllers that a limit needs and that are not here
	why    error    // of the first one lacking

	pidsMaxBeforeKill *bool
}

// group is one directory of a cgroup.
type group struct {
	path        string
	unified     bool
	controllers []string
	// lock is held by the process that made the group for as long as it lives,
	// so that another one can tell a group in use from a leftover, even from
	// inside another pid namespace.
	lock *os.File
}

const groupPrefix = "sandbox-exec-" // then the maker's pid, "-", a random number

var sweepOnce sync.Once

// newCgroup makes an empty control group with the limits set, beside or below
// the one that this process is in. It always has memory and pids where they
// exist, for they are what usage and kill need. The first call removes what
// killed processes of ours left behind.
func newCgroup(l sandbox.Limits) (*cgroup, error) {
	want := []string{"memory", "pids"}
	if l.CPUs > 0 {
		want = append(want, "cpu")
	}
	parents, err := parentGroups(want)
	if err != nil {
		return nil, err
	}
	sweepOnce.Do(func() { sweepGroups(parents) })
	c := &cgroup{limits: l}
	name := fmt.Sprintf("%s%d-%x", groupPrefix, os.Getpid(), rand.Uint64())
	for _, p := range parents {
		var g group
		if err = p.err; err == nil {
			g, err = p.make(name)
		}
		for tries := 0; taken(err) && tries < 10; tries++ {
			name := fmt.Sprintf("%s%d-%x", groupPrefix, os.Getpid(), rand.Uint64())
			g, err = p.make(name)
		}
		if errors.Is(err, errNoCgroup) {
			c.why = cmp.Or(c.why, err)
			c.lacks = append(c.lacks, p.controllers...)
			continue
		}
		if err == nil {
			c.groups = append(c.groups, g)
			err = g.limit(l)
		}
		if err != nil {
			return nil, errors.Join(err, c.delete())
		}
	}
	if len(c.groups) == 0 {
		return nil, c.why
	}
	return c, nil
}

// parent is where a group is made.
type parent struct {
	dir         string
	unified     bool
	controllers []string
	err         error // errNoCgroup: there is no place for these controllers
}

// parentGroups finds the place for each controller: below our own group in
// the hierarchy of its own (v1), else in the unified one.
func parentGroups(want []string) ([]parent, error) {
	own, unified, err := cgroups.ParseCgroupFileUnified("/proc/self/cgroup")
	if errors.Is(err, unix.ENOENT) {
		return nil, fmt.Errorf("%w: this kernel has none: %w", errNoCgroup, err)
	}
	if err != nil {
		return nil, cgroupError("read /proc/self/cgroup", err)
	}
	mounts, err := readFile("/proc/self/mountinfo")
	if err != nil {
		return nil, cgroupError("read /proc/self/mountinfo", err)
	}
	var parents []parent
	var rest []string
	for _, controller := range want {
		path, ok := own[controller]
		if !ok {
			rest = append(rest, controller)
			continue
		}
		dir, ok := groupDir(mounts, "cgroup", controller, path)
		if !ok {
			parents = append(parents, parent{
				controllers: []string{controller},
				err:         notMounted(controller),
			})
			continue
		}
		// Controllers that are mounted together share their groups.
		if i := slices.IndexFunc(parents, func(p parent) bool { return p.dir == dir }); i >= 0 {
			parents[i].controllers = append(parents[i].controllers, controller)
			continue
		}
		parents = append(parents, parent{dir: dir, controllers: []string{controller}})
	}
	if len(rest) == 0 {
		return parents, nil
	}
	dir, ok := groupDir(mounts, "cgroup2", "", unified)
	if !ok {
		return append(parents, parent{controllers: rest, err: notMounted(strings.Join(rest, ", "))}), nil
	}
	more, err := unifiedParent(dir, rest)
	return append(parents, more...), err
}

func notMounted(controllers string) error {
	return fmt.Errorf("%w: mount of %s: %w", errNoCgroup, controllers, noController)
}

// groupDir finds the directory of a group: path is relative to the root of the
// hierarchy, while a mount may show a part of the hierarchy only.
func groupDir(mountinfo []byte, fstype, controller, path string) (string, bool) {
	if strings.HasPrefix(path+"/", "/../") { // outside of our cgroup namespace
		return "", false
	}
	lines := bufio.NewScanner(bytes.NewReader(mountinfo))
	for lines.Scan() {
		// 35 31 0:32 / /sys/fs/cgroup/memory rw,relatime - cgroup cgroup rw,memory
		mount, fs, _ := strings.Cut(lines.Text(), " - ")
		m, f := strings.Fields(mount), strings.Fields(fs)
		if len(m) < 6 || len(f) < 3 || f[0] != fstype {
			continue
		}
		if controller != "" && !slices.Contains(strings.Split(f[2], ","), controller) {
			continue
		}
		rel, err := filepath.Rel(m[3], path)
		if err != nil || rel == ".." || strings.HasPrefix(rel, "../") {
			continue
		}
		return filepath.Join(m[4], rel), true
	}
	return "", false
}

// unifiedParent finds the place in the unified hierarchy. Only a group without
// processes of its own can hand controllers to groups below it, the root
// excepted, so that ours is made beside the one that we are in
// (Documentation/admin-guide/cgroup-v2.rst, "No Internal Process Constraint").
func unifiedParent(own string, want []string) ([]parent, error) {
	missing := func(controllers []string, step string, err error) parent {
		return parent{controllers: controllers, err: fmt.Errorf("%w: %s: %w", errNoCgroup, step, err)}
	}
	dir := own
	if _, err := os.Stat(filepath.Join(own, "cgroup.type")); err == nil { // the root has no type
		dir = filepath.Dir(own)
	}
	offered, err := readFile(filepath.Join(dir, "cgroup.controllers"))
	if errors.Is(err, unix.ENOENT) { // above the mount
		return []parent{missing(want, "use "+own, noParentGroup)}, nil
	}
	if err != nil {
		return nil, cgroupError("read the controllers of "+dir, err)
	}
	control := filepath.Join(dir, "cgroup.subtree_control")
	enabled, err := readFile(control)
	if err != nil {
		return nil, cgroupError("read "+control, err)
	}
	var parents []parent
	var have []string
	for _, controller := range want {
		if !slices.Contains(strings.Fields(string(offered)), controller) {
			parents = append(parents, missing([]string{controller}, "use the "+controller+" controller in "+dir, noController))
			continue
		}
		if !slices.Contains(strings.Fields(string(enabled)), controller) {
			if err := writeControl(control, "+"+controller); isErrno(err, notDelegated) {
				parents = append(parents, missing([]string{controller}, "enable the "+controller+" controller in "+dir, err))
				continue
			} else if err != nil {
				return nil, cgroupError("enable the "+controller+" controller in "+dir, err)
			}
		}
		have = append(have, controller)
	}
	if len(have) > 0 {
		parents = append(parents, parent{dir: dir, unified: true, controllers: have})
	}
	return parents, nil
}

// make makes a group of this name and locks it.
func (p parent) make(name string) (group, error) {
	g := group{path: filepath.Join(p.dir, name), unified: p.unified, controllers: p.controllers}
	if err := unix.Mkdir(g.path, 0o755); isErrno(err, notOurs) {
		return g, fmt.Errorf("%w: mkdir %s: %w", errNoCgroup, g.path, err)
	} else if err != nil {
		return g, cgroupError("mkdir "+g.path, err)
	}
	var err error
	if g.lock, err = lockGroup(g.path); err == nil {
		_, err = os.Lstat(g.path)
	}
	if err != nil {
		unix.Rmdir(g.path)
		g.lock.Close()
		return g, cgroupError("lock "+g.path, err)
	}
	return g, nil
}

// taken says that somebody who sweeps took a new group for a leftover, before
// it was locked.
func taken(err error) bool {
	return err != nil && !errors.Is(err, errNoCgroup) && (errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.EWOULDBLOCK))
}

func lockGroup(path string) (*os.File, error) {
	f, err := openFile(path, unix.O_DIRECTORY|unix.O_NOFOLLOW)
	if err != nil {
		return nil, err
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

// sweepGroups removes the groups of ours whose maker is gone, and ends what
// lives in them. It does what it can: a leftover is no reason not to run.
func sweepGroups(parents []parent) {
	left := make(map[string]*cgroup)
	for _, p := range parents {
		entries, err := os.ReadDir(p.dir)
		if err != nil {
			continue
		}
		for _, e := range entries {
			// The maker's process id says nothing: it may be another's by now.
			if !strings.HasPrefix(e.Name(), groupPrefix) {
				continue
			}
			path := filepath.Join(p.dir, e.Name())
			lock, err := lockGroup(path)
			if err != nil {
				continue
			}
			if left[e.Name()] == nil {
				left[e.Name()] = new(cgroup)
			}
			c := left[e.Name()]
			c.groups = append(c.groups, group{path: path, lock: lock})
		}
	}
	for _, c := range left {
		c.delete()
	}
}

// limit sets the limits that the group's controllers hold.
func (g group) limit(l sandbox.Limits) error {
	type setting struct{ file, value string }
	var settings []setting
	set := func(file string, value int64) {
		settings = append(settings, setting{file, strconv.FormatInt(value, 10)})
	}
	exists := func(file string) bool {
		_, err := os.Lstat(filepath.Join(g.path, file))
		return err == nil
	}
	for _, controller := range g.controllers {
		switch {
		case controller == "memory" && l.Memory > 0 && g.unified:
			set("memory.max", l.Memory)
			if exists("memory.swap.max") { // not without swap in the kernel
				set("memory.swap.max", 0)
			}
			set("memory.oom.group", 1) // a tree that lost a process at random is of no use
		case controller == "memory" && l.Memory > 0:
			set("memory.limit_in_bytes", l.Memory)
			if exists("memory.memsw.limit_in_bytes") { // only where swap is accounted for
				set("memory.memsw.limit_in_bytes", l.Memory)
			} else {
				set("memory.swappiness", 0)
			}
		case controller == "pids" && l.PIDs > 0:
			set("pids.max", l.PIDs)
		case controller == "cpu" && l.CPUs > 0:
			const period = 100_000                            // µs
			quota := max(int64(l.CPUs*float64(period)), 1000) // the kernel's least
			if g.unified {
				settings = append(settings, setting{"cpu.max", fmt.Sprintf("%d %d", quota, period)})
			} else {
				set("cpu.cfs_period_us", period)
				set("cpu.cfs_quota_us", quota)
			}
		}
	}
	for _, s := range settings {
		if err := writeControl(filepath.Join(g.path, s.file), s.value); err != nil {
			return cgroupError("write "+s.value+" to "+filepath.Join(g.path, s.file), err)
		}
	}
	return nil
}

// entrances opens the ways in: files to which a process of one thread writes
// "0" (v1), and the directory into which a process is cloned (v2). What the
// kernel checks of the files is the right of the process that opened them.
//
// A write to cgroup.procs would do in both, but it waits for a grace period of
// the kernel's RCU unless another process has just been moved: 10 ms and more
// on an idle machine. A thread that moves itself does not wait (v1: tasks,
// since Linux 5.4), and neither does clone3(2) with CLONE_INTO_CGROUP.
func (c *cgroup) entrances() (tasks []*os.File, into *os.File, err error) {
	for _, g := range c.groups {
		var f *os.File
		if g.unified {
			f, err = openFile(g.path, unix.O_PATH|unix.O_DIRECTORY)
			into = f
		} else if f, err = openFile(filepath.Join(g.path, "tasks"), os.O_WRONLY); err == nil {
			tasks = append(tasks, f)
		}
		if err != nil {
			for _, f := range tasks {
				f.Close()
			}
			if into != nil {
				into.Close()
			}
			return nil, nil, cgroupError("open the group "+g.path, err)
		}
	}
	return tasks, into, nil
}

// kill ends every process in the group. They may not be gone yet when it
// returns.
func (c *cgroup) kill() error {
	if c.pidsMaxBeforeKill == nil {
		_, _, _, _, pidsMax := c.usage()
		c.pidsMaxBeforeKill = &pidsMax
	}
	var slow []group
	for _, g := range c.groups {
		if writeControl(filepath.Join(g.path, "cgroup.kill"), "1") != nil { // unified, Linux 5.14
			slow = append(slow, g)
		}
	}
	// Nothing new can start while they are killed one by one; without the pids
	// controller a process that forks faster than this loop lives longer.
	for _, g := range slow {
		writeControl(filepath.Join(g.path, "pids.max"), "0")
	}
	for range 1000 {
		living := 0
		for _, g := range slow {
			pids, err := g.processes()
			if err != nil {
				return cgroupError("read the processes in "+g.path, err)
			}
			for _, pid := range pids {
				if err := unix.Kill(pid, unix.SIGKILL); err != nil && err != unix.ESRCH {
					return cgroupError("kill process "+strconv.Itoa(pid), err)
				}
			}
			living += len(pids)
		}
		if living == 0 {
			return nil
		}
		time.Sleep(time.Millisecond)
	}
	return cgroupError("kill the processes in "+slow[0].path, unix.EBUSY)
}

// processes lists the processes in the group that this pid namespace shows.
func (g group) processes() ([]int, error) {
	b, err := readFile(filepath.Join(g.path, "cgroup.procs"))
	if errors.Is(err, unix.ENOENT) || errors.Is(err, unix.ENODEV) { // removed
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var pids []int
	for _, word := range strings.Fields(string(b)) {
		if pid, err := strconv.Atoi(word); err == nil && pid > 0 {
			pids = append(pids, pid)
		}
	}
	return pids, nil
}

// usage reads what the group has used so far: bytes, processes and threads,
// processor time, whether the memory cap killed and the process cap refused.
// Zero is not measured: pids have a peak from Linux 6.1 on, memory in v2 from
// 5.19, and processor time is in v1 a controller of its own.
func (c *cgroup) usage() (memPeak, pidsPeak int64, cpu time.Duration, oom, pidsMax bool) {
	for _, g := range c.groups {
		for _, controller := range g.controllers {
			switch {
			case controller == "memory" && g.unified:
				memPeak = g.number("memory.peak", "")
				oom = g.number("memory.events", "oom_kill") > 0
			case controller == "memory":
				memPeak = g.number("memory.max_usage_in_bytes", "")
				oom = g.number("memory.oom_control", "oom_kill") > 0
			case controller == "pids":
				pidsPeak = g.number("pids.peak", "")
				pidsMax = g.number("pids.events", "max") > 0
			case controller == "cpu" && !g.unified:
				cpu = time.Duration(g.number("cpuacct.usage", ""))
			}
		}
		if g.unified {
			cpu = time.Duration(g.number("cpu.stat", "usage_usec")) * time.Microsecond
		}
	}
	if c.pidsMaxBeforeKill != nil {
		pidsMax = *c.pidsMaxBeforeKill // kill sets a cap of 0
	}
	return memPeak, pidsPeak, cpu, oom, pidsMax
}

// number reads a file of one number, or the one that stands after key.
func (g group) number(file, key string) int64 {
	b, err := readFile(filepath.Join(g.path, file))
	if err != nil {
		return 0
	}
	words := strings.Fields(string(b))
	i := 0
	if key != "" {
		if i = slices.Index(words, key) + 1; i == 0 {
			return 0
		}
	}
	if i >= len(words) {
		return 0
	}
	n, _ := strconv.ParseInt(words[i], 10, 64)
	return n
}

// delete ends what lives in the group and removes it.
func (c *cgroup) delete() error {
	for wait := time.Millisecond; ; wait *= 2 {
		err := c.rmdir()
		if err == nil {
			return nil
		}
		if !errors.Is(err, unix.EBUSY) || wait > time.Second {
			return err
		}
		if err := c.kill(); err != nil {
			return err
		}
		time.Sleep(wait) // killed, but not gone yet
	}
}

// rmdir removes what is empty.
func (c *cgroup) rmdir() error {
	var left []group
	var first error
	for _, g := range c.groups {
		if err := unix.Rmdir(g.path); err != nil && err != unix.ENOENT {
			first = cmp.Or(first, cgroupError("rmdir "+g.path, err))
			left = append(left, g)
			continue
		}
		g.lock.Close()
	}
	c.groups = left
	return first
}

// layer says what the group enforces.
func (c *cgroup) layer() sandbox.Layer {
	layer := sandbox.Layer{Name: sandbox.LayerCgroup, State: sandbox.Enforced}
	var v1, v2 []string
	for _, g := range c.groups {
		if g.unified {
			v2 = append(v2, g.controllers...)
		} else {
			v1 = append(v1, g.controllers...)
		}
	}
	var details []string
	if v1 != nil {
		details = append(details, "cgroup v1: "+strings.Join(v1, ", "))
	}
	if v2 != nil {
		details = append(details, "cgroup v2: "+strings.Join(v2, ", "))
	}
	layer.Detail = strings.Join(details, "; ")
	asked := map[string]bool{"memory": c.limits.Memory > 0, "pids": c.limits.PIDs > 0, "cpu": c.limits.CPUs > 0}
	var lost []string
	for _, controller := range c.lacks {
		if asked[controller] {
			lost = append(lost, controller)
		}
	}
	if lost != nil {
		layer.State = sandbox.Weaker
		layer.Why = c.why.Error()
		layer.Lost = "no cap on " + strings.Join(lost, ", ")
	}
	return layer
}

func cgroupError(step string, err error) error {
	return &sandbox.SetupError{Layer: sandbox.LayerCgroup, Step: step, Err: err}
}

func isErrno(err error, errnos []syscall.Errno) bool {
	var errno syscall.Errno
	return errors.As(err, &errno) && slices.Contains(errnos, errno)
}

// writeControl writes to a control file, which must exist.
func writeControl(path, value string) error {
	f, err := openFile(path, os.O_WRONLY)
	if err != nil {
		return err
	}
	defer f.Close()
	_, err = f.WriteString(value)
	return err
}

// rlimit is one setrlimit(2), of the soft and the hard limit.
type rlimit struct {
	resource int
	value    uint64
}

// rlimits are the limits of each process, with or without a cgroup. None of
// them is above what this process has itself.
//
// RLIMIT_AS and RLIMIT_DATA are not among them, not even where no cgroup caps
// the memory: they hold one process, not the tree, and they count address
// space that is reserved and never used, so that Node, the JVM and Go's race
// detector do not start under a cap that is meant for what they use.
func rlimits(l sandbox.Limits) []rlimit {
	limits := []rlimit{{unix.RLIMIT_CORE, 0}} // a dump is a copy of the memory on the disk
	for _, r := range []struct {
		resource int
		value    int64
	}{
		{unix.RLIMIT_NOFILE, l.OpenFiles},
		{unix.RLIMIT_FSIZE, l.FileSize},
	} {
		if r.value > 0 {
			limits = append(limits, rlimit{r.resource, atMostOwn(r.resource, r.value)})
		}
	}
	return limits
}

// processRlimit caps processes and threads where no cgroup does, in a user
// namespace of the command's own. Anywhere else the kernel counts all
// processes of the user, wherever they run: a cap would refuse the first fork
// or none (getrlimit(2), RLIMIT_NPROC). So it is with user namespaces before
// Linux 5.14; 5.18 is the first release whose counting is right.
func processRlimit(l sandbox.Limits) []rlimit {
	if l.PIDs <= 0 || !kernelAtLeast(5, 18) {
		return nil
	}
	return []rlimit{{unix.RLIMIT_NPROC, atMostOwn(unix.RLIMIT_NPROC, l.PIDs)}}
}

func atMostOwn(resource int, value int64) uint64 {
	var own unix.Rlimit
	if err := unix.Getrlimit(resource, &own); err != nil {
		return uint64(value)
	}
	return min(uint64(value), own.Max)
}

func kernelAtLeast(major, minor int) bool {
	var u unix.Utsname
	if err := unix.Uname(&u); err != nil {
		return false
	}
	var haveMajor, haveMinor int
	fmt.Sscanf(unix.ByteSliceToString(u.Release[:]), "%d.%d", &haveMajor, &haveMinor)
	return haveMajor > major || haveMajor == major && haveMinor >= minor
}
