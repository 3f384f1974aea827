package runner

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
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
	Merged         bool // Stdout is both, in the order in which they were written
}

// Stream is one of the outputs. All of it is as the program wrote it, but for
// values that were redacted.
type Stream struct {
	Tail  []byte // the end, at most TailSize bytes
	Bytes int64  // how many bytes there were in all
	Lines int64  // and lines; the last need not end in a newline
	// File holds the whole stream, for the user alone (mode 0600). "" means
	// that Tail is the whole, or that the file could not be kept; then a notice
	// says so. A later run removes it after a day.
	File     string
	Redacted int // values that were replaced
}

// Truncated reports whether there was more than Tail holds.
func (s Stream) Truncated() bool { return s.Bytes > int64(len(s.Tail)) }

// capture is a writer that keeps the end of what is written to it in memory
// and, once it outgrows that, the whole in a file.
type capture struct {
	create func() (*os.File, error) // makes the file; nil = none is wanted
	redact *redactor                // nil = nothing to redact
	notify func([]byte)             // gets each piece; nil = nobody does

	mu     sync.Mutex // Task.Output looks in while the program runs
	buf    []byte
	bytes  int64
	lines  int64
	middle bool // of a line
	file   *os.File
	path   string
	lost   error // why there is no whole
}

func (c *capture) Write(p []byte) (int, error) {
	n := len(p)
	if c.redact != nil {
		p = c.redact.next(p)
	}
	c.take(p)
	return n, nil
}

func (c *capture) take(p []byte) {
	if len(p) == 0 {
		return
	}
	c.mu.Lock()
	c.bytes += int64(len(p))
	c.lines += int64(bytes.Count(p, []byte{'\n'}))
	c.middle = p[len(p)-1] != '\n'
	if c.file == nil && c.bytes > TailSize {
		c.spill()
	}
	c.write(p)
	if len(p) > TailSize {
		c.append(p[len(p)-TailSize:])
	} else {
		c.append(p)
	}
	c.mu.Unlock()
	if c.notify != nil {
		c.notify(p)
	}
}

func (c *capture) append(p []byte) {
	// Twice the size before the front is dropped, so that the cost of moving
	// the rest is spread.
	if len(c.buf)+len(p) > 2*TailSize {
		c.buf = append(c.buf[:0], c.buf[len(c.buf)-TailSize:]...)
	}
	c.buf = append(c.buf, p...)
}

// spill begins the file with what there is, which must be all there was.
func (c *capture) spill() {
	if c.create == nil || c.lost != nil || c.file != nil {
		return
	}
	if c.file, c.lost = c.create(); c.lost != nil {
		return
	}
	c.path = c.file.Name()
	c.write(c.buf)
}

// write writes to the file, if there is one. A file that is not whole is none.
func (c *capture) write(p []byte) {
	if c.file == nil || len(p) == 0 {
		return
	}
	if _, err := c.file.Write(p); err != nil {
		c.lost = err
		c.file.Close()
		os.Remove(c.path)
		c.file, c.path = nil, ""
	}
}

// end writes what was held back and closes the file. What is too long for a
// model's text gets a file even where memory holds it.
func (c *capture) end() {
	if c.redact != nil {
		c.take(c.redact.rest())
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.bytes > MaxText || c.lines > MaxTextLines {
		c.spill()
	}
	if c.file == nil {
		return
	}
	if err := c.file.Close(); err != nil && c.lost == nil {
		c.lost = err
	}
	c.file = nil
}

func (c *capture) stream() Stream {
	c.mu.Lock()
	defer c.mu.Unlock()
	s := Stream{
		Tail:  bytes.Clone(c.buf[max(0, len(c.buf)-TailSize):]),
		Bytes: c.bytes, Lines: c.lines, File: c.path,
	}
	if c.middle {
		s.Lines++
	}
	if c.redact != nil {
		s.Redacted = c.redact.count()
	}
	return s
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

// over says whether there was more than the limit.
func (l *limit) over() bool {
	select {
	case <-l.reached:
		return true
	default:
		return false
	}
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
	if c, ok := o.to.(*capture); ok {
		defer c.end()
	}
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

// notices say what of the output did not arrive.
func (o *outlet) notices() []Notice {
	var notices []Notice
	tell := func(format string, args ...any) {
		notices = append(notices, Notice{Kind: NoticeOutput, Text: fmt.Sprintf(format, args...)})
	}
	if !o.delivered() {
		o.read.Close()
		tell("the output was not taken by whoever reads it; the rest of it is lost")
		return notices
	}
	if o.err != nil {
		tell("the output after this was lost: %v", o.err)
	}
	if o.held {
		tell("a process that the command left behind kept its output open; what it writes is lost")
	}
	if c, ok := o.to.(*capture); ok && c.lost != nil {
		tell("only the end of the output is kept: %v", c.lost)
	}
	return notices
}
