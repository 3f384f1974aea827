package helper

import "syscall"

// Without a PID namespace the helper is the subreaper of the tree: whatever
// loses its parent becomes the helper's child.

// sweep kills the helper's descendants until none is left. It can lose against
// a process that forks faster than it is found; a process cap bounds that.
func sweep() {
	for range 10_000 {
		signalTree(syscall.SIGSTOP)
		if signalTree(syscall.SIGKILL) == 0 {
			return
		}
		for {
			got, err := syscall.Wait4(-1, nil, syscall.WALL|syscall.WNOHANG, nil)
			if got <= 0 || err != nil {
				break
			}
		}
		syscall.Select(0, nil, nil, nil, &syscall.Timeval{Usec: 500})
	}
}

// signalTree signals every descendant and says how many it found.
func signalTree(sig syscall.Signal) int {
	n := 0
	for _, pid := range descendants() {
		if syscall.Kill(pid, sig) == nil {
			n++
		}
	}
	return n
}

// descendants lists the live processes below the helper.
func descendants() []int {
	parents := processes()
	self := syscall.Getpid()
	var out []int
	for pid := range parents {
		for p, depth := pid, 0; p > 1 && depth < 4096; p, depth = parents[p], depth+1 {
			if parents[p] == self {
				out = append(out, pid)
				break
			}
		}
	}
	return out
}

// processes maps every live process to its parent.
func processes() map[int]int {
	parents := map[int]int{}
	dir, err := syscall.Open("/proc", syscall.O_RDONLY|syscall.O_DIRECTORY|syscall.O_CLOEXEC, 0)
	if err != nil {
		return parents
	}
	defer syscall.Close(dir)
	buf := make([]byte, 32<<10)
	for {
		n, err := syscall.ReadDirent(dir, buf)
		if n <= 0 || err != nil {
			return parents
		}
		_, _, names := syscall.ParseDirent(buf[:n], -1, nil)
		for _, name := range names {
			if pid := number(name); pid > 0 {
				if ppid, live := parent(name); live {
					parents[pid] = ppid
				}
			}
		}
	}
}

// parent reads the parent of a process from /proc/PID/stat (proc_pid_stat(5)).
func parent(pid string) (ppid int, live bool) {
	b := read("/proc/" + pid + "/stat")
	n := len(b)
	// The name stands in parentheses and may hold any byte: look from the end.
	i := n - 1
	for i >= 0 && b[i] != ')' {
		i--
	}
	if i < 0 || i+4 >= n || b[i+2] == 'Z' || b[i+2] == 'X' {
		return 0, false
	}
	end := i + 4
	for end < n && b[end] != ' ' {
		end++
	}
	return number(string(b[i+4 : end])), true
}

// read returns a file's content. A line of it can be long: that of the groups
// in /proc/PID/status holds as many as a process may set.
func read(path string) []byte {
	fd, err := syscall.Open(path, syscall.O_RDONLY|syscall.O_CLOEXEC, 0)
	if err != nil {
		return nil
	}
	defer syscall.Close(fd)
	b := make([]byte, 0, 4096)
	for {
		n, err := syscall.Read(fd, b[len(b):cap(b)])
		if n <= 0 || err != nil {
			return b
		}
		b = b[:len(b)+n]
		if len(b) == cap(b) {
			b = append(b, make([]byte, len(b))...)[:len(b)]
		}
	}
}

func number(s string) int {
	n := 0
	for i := range len(s) {
		if s[i] < '0' || s[i] > '9' {
			return 0
		}
		n = n*10 + int(s[i]-'0')
	}
	return n
}
