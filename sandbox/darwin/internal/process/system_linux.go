package process

import (
	"bytes"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"
)

const (
	continuedStatus = 0xffff // wait(2)
	maxrssUnit      = 1024   // getrusage(2)
)

func dup(from, to int) error { return syscall.Dup3(from, to, 0) }

// processes lists all processes (proc_pid_stat(5)).
func processes() ([]entry, error) {
	dirs, err := os.ReadDir("/proc")
	if err != nil {
		return nil, err
	}
	var table []entry
	for _, dir := range dirs {
		pid, err := strconv.Atoi(dir.Name())
		if err != nil {
			continue
		}
		stat, err := os.ReadFile("/proc/" + dir.Name() + "/stat")
		if err != nil {
			continue
		}
		// The name stands in parentheses and may hold any byte.
		f := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
		number := func(i int) int { n, _ := strconv.Atoi(f[i]); return n }
		table = append(table, entry{
			pid: pid, parent: number(1), group: number(2), session: number(3),
			start: int64(number(19)), zombie: f[0] == "Z" || f[0] == "X",
		})
	}
	return table, nil
}

// Footprint is the memory of a process that it does not share.
func Footprint(pid int) (int64, error) {
	status, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/status")
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(status)) {
		if rest, ok := strings.CutPrefix(line, "RssAnon:"); ok {
			n, err := strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(rest), " kB"), 10, 64)
			return n << 10, err
		}
	}
	return 0, syscall.ESRCH
}

// forks stands in for a kqueue by looking often.
type forks struct{}

func newForks() (*forks, error) { return &forks{}, nil }

func (*forks) add(int) {}

func (*forks) wait(d time.Duration) { time.Sleep(min(d, 5*time.Millisecond)) }
