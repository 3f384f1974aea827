package runner

import (
	"errors"
	"io"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

const (
	// TailSize is how much of the end of each stream a Result keeps, in bytes.
	TailSize = 200 << 10
	// drainDelay is how long the output of processes that outlived the program
	// is read on, where the system lets them live.
	drainDelay = 500 * time.Millisecond
	// writerDelay is how long, after the command and its time are over, a
	// writer that blocks is waited for.
	writerDelay = 2 * time.Second
)

// Output is what the program wrote where the Command named no writer.
type Output struct {
	Stdout, Stderr Stream
}

// Stream is one of the outputs.
type Stream struct {
	Tail  []byte // the end, at most TailSize bytes
	Bytes int64  // how many bytes there were in all
}

// Truncated reports whether there was more than Tail holds.
func (s Stream) Truncated() bool { return s.Bytes > int64(len(s.Tail)) }

// tail is a writer that keeps the end of what is written to it.
type tail struct {
	mu    sync.Mutex
	buf   []byte
	bytes int64
}

func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	n := len(p)
	t.bytes += int64(n)
	if n > TailSize {
		p = p[n-TailSize:]
	}
	// Twice the size before the front is dropped, so that the cost of moving
	// the rest is spread.
	if len(t.buf)+len(p) > 2*TailSize {
		t.buf = append(t.buf[:0], t.buf[len(t.buf)-TailSize:]...)
	}
	t.buf = append(t.buf, p...)
	return n, nil
}

func (t *tail) stream() Stream {
	t.mu.Lock()
	defer t.mu.Unlock()
	end := slices.Clone(t.buf[max(0, len(t.buf)-TailSize):])
	return Stream{Tail: end, Bytes: t.bytes}
}

// limit counts the output of a program and tells when it is too much.
type limit struct {
	max     int64 // bytes; 0 = none
	written atomic.Int64
	reached chan struct{}
	once    sync.Once
}

// take counts n bytes and returns how many of them are below the limit.
func (l *limit) take(n int) int {
	over := l.written.Add(int64(n)) - l.max
	if l.max == 0 || over <= 0 {
		return n
	}
	l.once.Do(func() { close(l.reached) })
	return max(0, n-int(min(over, int64(n))))
}

// outlet is a pipe from the program to a writer.
type outlet struct {
	read, write *os.File
	to          io.Writer
	limit       *limit
	done        chan struct{}
	err         error // why to did not get everything; valid when done is closed
	held        bool  // a process still held the other end; valid when done is closed
}

func newOutlet(to io.Writer, l *limit) (*outlet, error) {
	read, write, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	return &outlet{read: read, write: write, to: to, limit: l, done: make(chan struct{})}, nil
}

// copy moves what the program writes until every process has closed its end.
// Behind the limit it reads on and drops, so that the program can still end in
// an orderly way. When the writer fails, the program gets EPIPE.
func (o *outlet) copy() {
	defer close(o.done)
	defer o.read.Close()
	buf := make([]byte, 64<<10)
	for {
		n, err := o.read.Read(buf)
		if !o.deliver(buf[:n]) {
			return
		}
		if errors.Is(err, os.ErrDeadlineExceeded) {
			o.held = o.drain(buf)
			return
		}
		if err != nil {
			return
		}
	}
}

func (o *outlet) deliver(p []byte) bool {
	if p = p[:o.limit.take(len(p))]; len(p) == 0 {
		return true
	}
	_, o.err = o.to.Write(p)
	return o.err == nil
}

// drain takes what is in the pipe now and waits for nothing. It reports
// whether a process still holds the other end.
func (o *outlet) drain(buf []byte) bool {
	o.read.SetReadDeadline(time.Time{})
	raw, err := o.read.SyscallConn()
	if err != nil {
		return true
	}
	// A process that keeps writing must not keep us here: a pipe holds at most
	// 1 MiB (pipe(7), /proc/sys/fs/pipe-max-size).
	for range (1 << 20) / len(buf) {
		n := 0
		raw.Read(func(fd uintptr) bool {
			n, _ = syscall.Read(int(fd), buf)
			return true
		})
		if n <= 0 || !o.deliver(buf[:n]) {
			return n != 0
		}
	}
	return true
}

// end lets copy wait for nothing but the writer. It must be called after the
// program has ended.
func (o *outlet) end() { o.read.SetReadDeadline(time.Now().Add(drainDelay)) }

// delivered says whether copy has ended.
func (o *outlet) delivered() bool {
	select {
	case <-o.done:
		return true
	default:
		return false
	}
}
