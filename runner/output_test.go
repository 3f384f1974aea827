package runner

import (
	"bytes"
	"errors"
	"io"
	"os"
	"strings"
	"testing"
	"time"
)

func TestTailKeepsTheEnd(t *testing.T) {
	for _, sizes := range [][]int{
		{0},
		{1, 1, 1},
		{TailSize},
		{TailSize + 1},
		{10, TailSize, 10},
		{3 * TailSize},
		{TailSize, TailSize, TailSize},
		{1000, 2*TailSize - 1000, 1, 1},
	} {
		var all []byte
		tail := capture{create: func() (*os.File, error) { return nil, errors.New("no file") }}
		for i, size := range sizes {
			p := bytes.Repeat([]byte{byte('a' + i)}, size)
			all = append(all, p...)
			if n, err := tail.Write(p); n != size || err != nil {
				t.Fatalf("%v: Write gave %d, %v", sizes, n, err)
			}
			if cap(tail.buf) > 4*TailSize {
				t.Fatalf("%v: %d bytes are kept", sizes, cap(tail.buf))
			}
		}
		got := tail.stream()
		want := all[max(0, len(all)-TailSize):]
		if !bytes.Equal(got.Tail, want) || got.Bytes != int64(len(all)) || got.Truncated() != (len(all) > TailSize) {
			t.Errorf("%v: tail of %d bytes of %d", sizes, len(got.Tail), got.Bytes)
		}
	}
}

func TestLimitCutsAtTheByte(t *testing.T) {
	l := &limit{max: 10, reached: make(chan struct{})}
	for _, step := range []struct{ n, want int }{{4, 4}, {6, 6}, {0, 0}, {3, 0}, {1, 0}} {
		if got := l.take(step.n); got != step.want {
			t.Errorf("take(%d) = %d, want %d", step.n, got, step.want)
		}
	}
	l = &limit{max: 10, reached: make(chan struct{})}
	if got := l.take(25); got != 10 {
		t.Errorf("take(25) of 10 = %d", got)
	}
	select {
	case <-l.reached:
	default:
		t.Error("the limit was not told")
	}
}

// slowWriter takes its time for each write.
type slowWriter struct {
	bytes.Buffer
	delay time.Duration
}

func (w *slowWriter) Write(p []byte) (int, error) {
	time.Sleep(w.delay)
	return w.Buffer.Write(p)
}

func TestSlowReaderLosesNothing(t *testing.T) {
	w := &slowWriter{delay: drainDelay + 100*time.Millisecond}
	o, err := newOutlet(w, &limit{})
	if err != nil {
		t.Fatal(err)
	}
	go o.copy()
	text := strings.Repeat("x", 60<<10)
	for range 2 {
		if _, err := io.WriteString(o.write, text); err != nil {
			t.Fatal(err)
		}
	}
	o.write.Close()
	o.end()
	<-o.done
	if w.Len() != 2*len(text) || o.held || o.err != nil {
		t.Errorf("%d of %d bytes, held %v, %v", w.Len(), 2*len(text), o.held, o.err)
	}
}

func TestHolderOfTheOutputDoesNotBlock(t *testing.T) {
	var w bytes.Buffer
	o, err := newOutlet(&w, &limit{})
	if err != nil {
		t.Fatal(err)
	}
	defer o.write.Close()
	go o.copy()
	io.WriteString(o.write, "end")
	done := make(chan struct{})
	go func() { o.end(); <-o.done; close(done) }()
	select {
	case <-done:
	case <-time.After(10 * drainDelay):
		t.Fatal("still waiting for the holder")
	}
	if w.String() != "end" || !o.held {
		t.Errorf("%q, held %v", w.String(), o.held)
	}
}

type brokenWriter struct{}

func (brokenWriter) Write([]byte) (int, error) { return 0, errors.New("gone") }

func TestReaderGoneEndsTheWriter(t *testing.T) {
	o, err := newOutlet(brokenWriter{}, &limit{})
	if err != nil {
		t.Fatal(err)
	}
	go o.copy()
	io.WriteString(o.write, "x")
	<-o.done
	_, err = io.WriteString(o.write, "y")
	o.write.Close()
	if err == nil || o.err == nil {
		t.Errorf("write gave %v, copy gave %v", err, o.err)
	}
}

func TestSameWriter(t *testing.T) {
	type uncomparable struct {
		io.Writer
		_ []int
	}
	a := &bytes.Buffer{}
	if !sameWriter(a, a) || sameWriter(a, &bytes.Buffer{}) || sameWriter(a, os.Stdout) {
		t.Error("pointers are not told apart")
	}
	if sameWriter(uncomparable{}, uncomparable{}) {
		t.Error("values that cannot be compared are called the same")
	}
}

// blockedWriter takes nothing until it is closed.
type blockedWriter chan struct{}

func (w blockedWriter) Write(p []byte) (int, error) {
	<-w
	return len(p), nil
}

// A caller's writer that blocks holds no Wait longer than the command's time.
func TestWaitDoesNotHangOnTheWriter(t *testing.T) {
	for _, tt := range []struct {
		name, script string
		cause        Cause
	}{
		{"the command is ended", "echo x; exec sleep 60", TimedOut},
		{"the command ends by itself", "echo x", Exited},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c, _ := fakeCommand(t, tt.script)
			w := make(blockedWriter)
			defer close(w)
			c.Stdout, c.Timeout, c.Grace = w, 300*time.Millisecond, 100*time.Millisecond
			task, err := Start(t.Context(), c)
			if err != nil {
				t.Fatal(err)
			}
			result := make(chan Result, 1)
			go func() { result <- task.Wait() }()
			select {
			case r := <-result:
				if r.Cause != tt.cause || len(r.Notices) != 1 || r.Notices[0].Kind != NoticeOutput {
					t.Errorf("%s, %v", r.Cause, r.Notices)
				}
			case <-time.After(5 * writerDelay):
				t.Fatal("still waiting")
			}
		})
	}
}

func TestStreamsLeaveNoDescriptors(t *testing.T) {
	count := func() int {
		entries, err := os.ReadDir("/proc/self/fd")
		if err != nil {
			t.Skip(err)
		}
		return len(entries)
	}
	never, feed := io.Pipe()
	defer feed.Close()
	before := count()
	for range 10 {
		s, err := newStreams(&Command{Stdin: never}, spills{}, nil)
		if err != nil {
			t.Fatal(err)
		}
		s.abandon()
	}
	if after := count(); after > before+5 {
		t.Errorf("nothing was started: %d descriptors, before %d", after, before)
	}
	for range 10 {
		c, _ := fakeCommand(t, "exit 0")
		c.Stdin = never
		if _, err := Run(t.Context(), c); err != nil {
			t.Fatal(err)
		}
	}
	if after := count(); after > before+5 {
		t.Errorf("the reader never ends: %d descriptors, before %d", after, before)
	}
}
