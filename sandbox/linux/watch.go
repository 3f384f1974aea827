//go:build linux

package linux

import (
	"bytes"
	"io"
	"os"
	"slices"
	"strconv"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Without a cgroup we look at the tree ten times a second and end it when it
// uses more than it may. That is weaker than a cgroup: what is used up between
// two looks is used up, and nobody looks while we are stopped.
const watchInterval = 100 * time.Millisecond

// watched is what the tree may use; 0 = not watched.
type watched struct {
	memory uint64 // bytes
	tasks  uint64 // processes and threads
}

func (w watched) any() bool { return w != watched{} }

const (
	overMemory = 1 + iota
	overTasks
)

// watch ends the tree when it uses more than it may.
func (p *process) watch(limit watched) {
	tick := time.NewTicker(watchInterval)
	defer tick.Stop()
	for {
		select {
		case <-p.ended:
			return
		case <-tick.C:
		}
		pids := p.tree.pids()
		own := p.own()
		switch {
		case limit.tasks != 0 && p.tree.sum(pids, threads) > limit.tasks:
			p.over.CompareAndSwap(0, overTasks)
		// What a process does not share is quickly read but counts copies on
		// write once a process; the exact figure costs a walk of its pages.
		case limit.memory != 0 && p.tree.sum(pids, unshared)+own > limit.memory && p.tree.sum(pids, proportional)+own > limit.memory:
			p.over.CompareAndSwap(0, overMemory)
		default:
			continue
		}
		p.SignalAll(syscall.SIGKILL)
	}
}

// own is what lies in the file systems that were made for the program, whose
// pages are memory too.
func (p *process) own() uint64 {
	n := uint64(0)
	for _, f := range p.shown {
		var st unix.Statfs_t
		if unix.Fstatfs(int(f.Fd()), &st) == nil && st.Type == unix.TMPFS_MAGIC {
			n += (st.Blocks - st.Bfree) * uint64(st.Bsize)
		}
	}
	return n
}

// tree is the processes that a helper looks after.
type tree struct {
	proc *os.File // a process file system
	root int      // the helper's number in it; 0 = all of it but PID 1
}

// pids lists its processes.
func (t tree) pids() []string {
	dir, err := t.open(".")
	if err != nil {
		return nil
	}
	defer dir.Close()
	names, _ := dir.Readdirnames(-1)
	pids := names[:0]
	for _, name := range names {
		if name[0] >= '0' && name[0] <= '9' && (t.root != 0 || name != "1") {
			pids = append(pids, name)
		}
	}
	if t.root == 0 {
		return pids
	}
	parents := map[string]string{}
	for _, pid := range pids {
		parents[pid] = t.parent(pid)
	}
	root := strconv.Itoa(t.root)
	return slices.DeleteFunc(pids, func(pid string) bool {
		p := parents[pid]
		// The list is not made at one moment: numbers that were given away again
		// meanwhile can lead in a circle.
		for range parents {
			if p == root || p == "" {
				break
			}
			p = parents[p]
		}
		return p != root
	})
}

// parent reads the parent of a process from /proc/PID/stat (proc_pid_stat(5)). A
// process is not looked at whether it is dead: where only its first thread has
// ended, the kernel says the same of it.
func (t tree) parent(pid string) string {
	b := t.read(pid + "/stat")
	// The name stands in parentheses and may hold any byte: look from the end.
	fields := bytes.Fields(b[bytes.LastIndexByte(b, ')')+1:])
	if len(fields) < 2 {
		return ""
	}
	return string(fields[1])
}

// signal signals all of it.
func (t tree) signal(sig syscall.Signal) error {
	if sig == syscall.SIGKILL {
		// One after the other: none may see another die and go on.
		t.signal(syscall.SIGSTOP)
	}
	for _, pid := range t.pids() {
		if n, err := strconv.Atoi(pid); err == nil {
			syscall.Kill(n, sig)
		}
	}
	return nil
}

func (t tree) sum(pids []string, of func(t tree, pid string) uint64) uint64 {
	n := uint64(0)
	for _, pid := range pids {
		n += of(t, pid)
	}
	return n
}

func threads(t tree, pid string) uint64 { return field(t.read(pid+"/status"), "Threads:") }

func unshared(t tree, pid string) uint64 {
	status := t.ofMemory(pid, "status", "RssAnon:")
	return (field(status, "RssAnon:") + field(status, "RssShmem:") + field(status, "VmSwap:")) << 10
}

func proportional(t tree, pid string) uint64 {
	rollup := t.ofMemory(pid, "smaps_rollup", "Pss:")
	if rollup == nil { // a process can close it to us (PR_SET_DUMPABLE)
		return unshared(t, pid)
	}
	return (field(rollup, "Pss:") + field(rollup, "SwapPss:")) << 10
}

// ofMemory reads a file that tells of a process's memory, in which a line begins
// with name, or nothing. Where the first thread has ended the file of the process
// has no such line, but those of the other threads do.
func (t tree) ofMemory(pid, file, name string) []byte {
	if b := t.read(pid + "/" + file); bytes.Contains(b, []byte("\n"+name)) {
		return b
	}
	dir, err := t.open(pid + "/task")
	if err != nil {
		return nil
	}
	defer dir.Close()
	threads, _ := dir.Readdirnames(-1)
	for _, thread := range threads {
		if thread == pid {
			continue
		}
		if b := t.read(pid + "/task/" + thread + "/" + file); bytes.Contains(b, []byte("\n"+name)) {
			return b
		}
	}
	return nil
}

// read returns a file's content, or nothing: the process may be gone. A line of
// it can be long: that of the groups in /proc/PID/status holds as many as a
// process may set.
func (t tree) read(name string) []byte {
	f, err := t.open(name)
	if err != nil {
		return nil
	}
	defer f.Close()
	b, _ := io.ReadAll(f)
	return b
}

func (t tree) open(name string) (*os.File, error) {
	fd, err := unix.Openat(int(t.proc.Fd()), name, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	return os.NewFile(uintptr(fd), name), nil
}

// field reads a number from a file of "Name: number" lines.
func field(b []byte, name string) uint64 {
	for line := range bytes.Lines(b) {
		if rest, ok := bytes.CutPrefix(line, []byte(name)); ok {
			words := bytes.Fields(rest)
			if len(words) == 0 {
				return 0
			}
			n, _ := strconv.ParseUint(string(words[0]), 10, 64)
			return n
		}
	}
	return 0
}
