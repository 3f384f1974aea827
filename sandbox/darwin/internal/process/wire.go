//go:build darwin || linux

package process

import (
	"encoding/binary"
	"errors"
	"io"
	"syscall"
)

// Names by which the helpers know what they are: the whole argv of the one
// outside, and the second argument of the one inside, whose first is a path that
// /usr/bin/sandbox-exec has to find.
const (
	outsideName = "sandbox-exec-init"
	insideName  = "sandbox-exec-inside"
)

// Descriptors that the helpers start with, beside stdin, stdout and stderr. The
// stderr of the helper inside is a pipe, so that what the system's tool and the
// loader have to say is read and not taken for the program's.
const (
	socketFD       = 3 // messages to and from whoever started it
	outsideFirstFD = 4 // descriptors that the program keeps
	stderrFD       = 4 // inside: the program's stderr
	insideFirstFD  = 5 // inside: descriptors that the program keeps
)

// Kinds of messages.
const (
	start   = iota + 1 // to a helper: the body is a request
	held               // from inside: every check gave what it must
	goOn               // to inside: become the program
	failed             // from inside, and on to the parent: step n[0] failed with error n[1], body says what
	refused            // to the parent: the tool ended with status n[0] before anything ran; the body is what it said
	running            // to the parent: the program runs as process n[0], which began at n[1]
	exited             // to the parent: wait status n[0], n[1] why the watch ended it, n[2] peak of memory, n[3] of processes, n[4] left alive
	stopped            // to the parent: signal n[0] stopped the program; 0: it goes on
	kill               // to outside: send signal n[0] to the program; n[1] = 1: to the whole tree
)

// message is what passes between the processes, over a stream socket: macOS has
// no SOCK_SEQPACKET for them.
type message struct {
	kind uint32
	n    [5]int64
	body []byte
}

const (
	headSize = 4 + 4 + 5*8
	maxBody  = 16 << 20 // a request holds an argv and an environment, 1 MiB at the most (ARG_MAX)
)

var errMessage = errors.New("a message of another form")

// send writes a message at once, so that two writers cannot mix theirs.
func send(w io.Writer, m message) error {
	b := make([]byte, 0, headSize+len(m.body))
	b = binary.NativeEndian.AppendUint32(b, m.kind)
	b = binary.NativeEndian.AppendUint32(b, uint32(len(m.body)))
	for _, n := range m.n {
		b = binary.NativeEndian.AppendUint64(b, uint64(n))
	}
	_, err := w.Write(append(b, m.body...))
	return err
}

// receive reads a message; io.EOF means that the other side is gone.
func receive(r io.Reader) (message, error) {
	var head [headSize]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		if errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, syscall.ECONNRESET) {
			err = io.EOF
		}
		return message{}, err
	}
	m := message{kind: binary.NativeEndian.Uint32(head[:])}
	for i := range m.n {
		m.n[i] = int64(binary.NativeEndian.Uint64(head[8+8*i:]))
	}
	size := binary.NativeEndian.Uint32(head[4:])
	if size > maxBody {
		return message{}, errMessage
	}
	m.body = make([]byte, size)
	if _, err := io.ReadFull(r, m.body); err != nil {
		return message{}, io.EOF
	}
	return m, nil
}

// request is what the helpers need to start a program.
type request struct {
	tool      string   // what applies the profile
	profile   string   // the profile's file
	params    []string // KEY=VALUE
	self      string   // our own binary
	path      string   // of the program
	dir       string
	args, env []string
	keep      []bool // which of the descriptors from 3 on the program keeps
	session   bool   // give the program a session of its own
	group     int64  // else: the process group that it joins
	memory    int64  // bytes of footprint of the whole tree, 0 = not watched
	processes int64  // of the whole tree, 0 = not watched
	openFiles int64  // RLIMIT_NOFILE, 0 = as it is
	fileSize  int64  // RLIMIT_FSIZE, 0 = as it is
	checks    []Check
}

// encode writes a request, byte for byte: arguments need not be UTF-8.
func (r *request) encode() []byte {
	var w writer
	for _, s := range []string{r.tool, r.profile, r.self, r.path, r.dir} {
		w.text(s)
	}
	for _, list := range [][]string{r.params, r.args, r.env} {
		w.number(int64(len(list)))
		for _, s := range list {
			w.text(s)
		}
	}
	w.number(int64(len(r.keep)))
	for _, k := range r.keep {
		w.flag(k)
	}
	w.flag(r.session)
	for _, n := range []int64{r.group, r.memory, r.processes, r.openFiles, r.fileSize} {
		w.number(n)
	}
	w.number(int64(len(r.checks)))
	for _, c := range r.checks {
		w.text(c.What)
		w.number(int64(c.Op))
		w.text(c.Path)
		w.number(int64(c.Want))
	}
	return w
}

func decode(b []byte) (request, error) {
	d := reader{b: b}
	var r request
	for _, s := range []*string{&r.tool, &r.profile, &r.self, &r.path, &r.dir} {
		*s = d.text()
	}
	for _, list := range []*[]string{&r.params, &r.args, &r.env} {
		for range d.count() {
			*list = append(*list, d.text())
		}
	}
	for range d.count() {
		r.keep = append(r.keep, d.flag())
	}
	r.session = d.flag()
	for _, n := range []*int64{&r.group, &r.memory, &r.processes, &r.openFiles, &r.fileSize} {
		*n = d.number()
	}
	for range d.count() {
		r.checks = append(r.checks, Check{What: d.text(), Op: Op(d.number()), Path: d.text(), Want: syscall.Errno(d.number())})
	}
	if d.bad || len(d.b) > 0 {
		return request{}, errMessage
	}
	return r, nil
}

type writer []byte

func (w *writer) number(n int64) { *w = binary.NativeEndian.AppendUint64(*w, uint64(n)) }
func (w *writer) text(s string)  { w.number(int64(len(s))); *w = append(*w, s...) }
func (w *writer) flag(b bool) {
	n := byte(0)
	if b {
		n = 1
	}
	*w = append(*w, n)
}

// reader takes a request apart. After something that is not there all it yields
// is zero.
type reader struct {
	b   []byte
	bad bool
}

func (d *reader) take(n int64) []byte {
	if d.bad || n < 0 || n > int64(len(d.b)) {
		d.bad, d.b = true, nil
		return nil
	}
	b := d.b[:n]
	d.b = d.b[n:]
	return b
}

func (d *reader) number() int64 {
	b := d.take(8)
	if b == nil {
		return 0
	}
	return int64(binary.NativeEndian.Uint64(b))
}

func (d *reader) text() string { return string(d.take(d.number())) }

func (d *reader) flag() bool {
	b := d.take(1)
	if b == nil || b[0] > 1 {
		d.bad = true
		return false
	}
	return b[0] == 1
}

// count is the number of entries that follow, each of at least a byte.
func (d *reader) count() int64 {
	n := d.number()
	if n < 0 || n > int64(len(d.b)) {
		d.bad, d.b = true, nil
		return 0
	}
	return n
}
