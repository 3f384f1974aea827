package helper

import (
	"sync/atomic"
	"syscall"
)

// Without a cgroup the helper looks at the tree ten times a second and ends it
// when it uses more than it may. That is weaker than a cgroup: what is used up
// between two looks is used up.
const watchInterval = 100_000 // microseconds

var overused atomic.Uint32

func watch(h *Header) {
	for {
		syscall.Select(0, nil, nil, nil, &syscall.Timeval{Usec: watchInterval})
		tree := descendants()
		why := uint32(0)
		switch {
		case h.Tasks != 0 && tasks(tree) > h.Tasks:
			why = OverTasks
		// What a process does not share is quickly read but counts copies on
		// write once a process; the exact figure costs a walk of its pages.
		case h.Memory != 0 && memory(tree, unshared)+own(h) > h.Memory && memory(tree, proportional)+own(h) > h.Memory:
			why = OverMemory
		}
		if why != 0 {
			overused.CompareAndSwap(0, why)
			signalAll(h, syscall.SIGKILL)
		}
	}
}

func tasks(tree []int) uint64 {
	n := uint64(0)
	for _, pid := range tree {
		n += field(read("/proc/"+text(pid)+"/status"), "Threads:")
	}
	return n
}

func memory(tree []int, of func(pid string) uint64) uint64 {
	n := uint64(0)
	for _, pid := range tree {
		n += of(text(pid))
	}
	return n
}

func unshared(pid string) uint64 {
	status := read("/proc/" + pid + "/status")
	return (field(status, "RssAnon:") + field(status, "RssShmem:")) << 10
}

func proportional(pid string) uint64 {
	return field(read("/proc/"+pid+"/smaps_rollup"), "Pss:") << 10
}

// own is what lies in the file systems that were made for the program, whose
// pages are memory too.
func own(h *Header) uint64 {
	if h.PIDNS == 0 {
		return 0
	}
	n := uint64(0)
	for _, p := range []string{"/tmp", "/dev/shm"} {
		const tmpfs = 0x01021994
		var st syscall.Statfs_t
		if syscall.Statfs(p, &st) == nil && st.Type == tmpfs {
			n += (st.Blocks - st.Bfree) * uint64(st.Bsize)
		}
	}
	return n
}

// field reads a number from a file of "Name: number" lines.
func field(b []byte, name string) uint64 {
	for i := 0; i+len(name) < len(b); i++ {
		if (i == 0 || b[i-1] == '\n') && string(b[i:i+len(name)]) == name {
			i += len(name)
			for i < len(b) && (b[i] == ' ' || b[i] == '\t') {
				i++
			}
			n := uint64(0)
			for ; i < len(b) && b[i] >= '0' && b[i] <= '9'; i++ {
				n = n*10 + uint64(b[i]-'0')
			}
			return n
		}
	}
	return 0
}

func text(n int) string {
	var b [20]byte
	i := len(b)
	for {
		i--
		b[i] = byte('0' + n%10)
		if n /= 10; n == 0 {
			return string(b[i:])
		}
	}
}
