package runner

import (
	"io"
	"os"
	"slices"
	"time"

	"github.com/sandbox-exec/sandbox-exec/profiles"
)

// streams are the three standard streams of a program and what stands behind
// them here.
type streams struct {
	stdin, stdout, stderr *os.File // what the program gets; nil = /dev/null
	ours                  []*os.File
	limit                 *limit
	outlets               []*outlet
	captures              [2]*capture // nil = the Command names a writer
	merged                bool
	spills                spills
	input                 *os.File // our end of a pipe to stdin, or nil
	feed                  func()

	dir     *outlet // tells where a shell is in the end; nil = nobody asked
	lastDir *endOf
}

// newStreams makes the pipes. An *os.File is handed to the program itself,
// unless its bytes are to be counted.
func newStreams(c *Command, where spills, secrets []profiles.Secret) (streams, error) {
	s := streams{
		limit:  &limit{max: max(0, c.OutputLimit), reached: make(chan struct{})},
		spills: where,
	}
	if err := s.open(c, secrets); err != nil {
		s.abandon()
		return streams{}, err
	}
	return s, nil
}

func (s *streams) open(c *Command, secrets []profiles.Secret) error {
	switch in := c.Stdin.(type) {
	case nil:
	case *os.File:
		s.stdin = in
	default:
		read, write, err := os.Pipe()
		if err != nil {
			return err
		}
		s.stdin = read
		s.ours = append(s.ours, read)
		s.input = write
		s.feed = func() {
			io.Copy(write, in) // a program need not read all its input
			write.Close()
		}
	}

	stdout, stderr := c.Stdout, c.Stderr
	var err error
	if stdout == nil {
		if s.captures[0], err = s.capture(c, secrets, 1); err != nil {
			return err
		}
		stdout = s.captures[0]
	}
	switch {
	case c.Merge:
		stderr, s.merged = stdout, true
	case stderr == nil:
		if s.captures[1], err = s.capture(c, secrets, 2); err != nil {
			return err
		}
		stderr = s.captures[1]
	}
	if s.stdout, err = s.outlet(stdout, c.countFiles); err != nil {
		return err
	}
	// One pipe for one writer keeps the order and spares it a lock.
	if sameWriter(stdout, stderr) {
		s.stderr = s.stdout
		return nil
	}
	s.stderr, err = s.outlet(stderr, c.countFiles)
	return err
}

// capture makes what keeps the output of descriptor fd.
func (s *streams) capture(c *Command, secrets []profiles.Secret, fd int) (*capture, error) {
	name := [...]string{1: "stdout", 2: "stderr"}[fd]
	k := &capture{redact: newRedactor(secrets)}
	if where := s.spills; !c.TailOnly {
		k.create = func() (*os.File, error) { return where.create(name) }
	}
	if c.OnOutput != nil {
		k.notify = func(p []byte) { c.OnOutput(fd, p) }
	}
	if s.spills.kept {
		k.spill()
	}
	if k.lost != nil {
		return nil, &StateError{Path: s.spills.dir, Err: cause(k.lost), Hint: "the output cannot be written there"}
	}
	return k, nil
}

func (s *streams) outlet(to io.Writer, count bool) (*os.File, error) {
	if f, ok := to.(*os.File); ok && !count {
		return f, nil
	}
	o, err := newOutlet(to, s.limit)
	if err != nil {
		return nil, err
	}
	s.outlets = append(s.outlets, o)
	s.ours = append(s.ours, o.write)
	return o.write, nil
}

// sameWriter is a == b without the panic for types that cannot be compared.
func sameWriter(a, b io.Writer) bool {
	defer func() { recover() }()
	return a == b
}

// started drops the program's ends and begins to copy.
func (s *streams) started() {
	for _, f := range s.ours {
		f.Close()
	}
	s.ours = nil
	for _, o := range s.all() {
		go o.copy()
	}
	if s.feed != nil {
		go s.feed()
	}
}

// abandon releases everything when no program was started.
func (s *streams) abandon() {
	for _, f := range s.ours {
		f.Close()
	}
	for _, o := range s.all() {
		o.read.Close()
	}
	for _, k := range s.captures {
		if k != nil && k.file != nil {
			k.file.Close()
			os.Remove(k.path)
		}
	}
	if s.input != nil {
		s.input.Close()
	}
}

// finish waits until all output is delivered.
func (s *streams) finish() {
	if s.input != nil {
		s.input.Close() // its reader may never end
	}
	for _, o := range s.all() {
		o.end()
	}
	for _, o := range s.all() {
		<-o.done
	}
}

// all are the pipes that are read here.
func (s *streams) all() []*outlet {
	if s.dir == nil {
		return s.outlets
	}
	return append(slices.Clip(s.outlets), s.dir)
}

func (s *streams) output() Output {
	out := Output{Merged: s.merged}
	for i, to := range []*Stream{&out.Stdout, &out.Stderr} {
		if k := s.captures[i]; k != nil {
			*to = k.stream()
		}
	}
	return out
}

func (s *streams) notices() []Notice {
	var notices []Notice
	for _, o := range s.outlets {
		notices = append(notices, o.notices()...)
	}
	return notices
}

// tidy removes what earlier runs have left, if this one captures.
func (s *streams) tidy() {
	if s.captures != [2]*capture{} {
		s.spills.tidy(time.Now())
	}
}
