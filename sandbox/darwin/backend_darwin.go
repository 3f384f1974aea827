package darwin

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/sandbox-exec/sandbox-exec/sandbox"
	"github.com/sandbox-exec/sandbox-exec/sandbox/darwin/internal/process"
	"golang.org/x/sys/unix"
)

// Backend confines processes on this machine. The zero value is ready.
type Backend struct{}

// New returns the backend.
func New() *Backend { return &Backend{} }

var _ sandbox.Backend = (*Backend)(nil)

// Start implements [sandbox.Backend].
func (*Backend) Start(ctx context.Context, cmd *exec.Cmd, spec sandbox.Spec) (sandbox.Process, error) {
	p, report, err := prepare(cmd, spec)
	if err != nil {
		return nil, err
	}
	dir, err := newPrivate(p.base, spec)
	if err != nil {
		return nil, err
	}
	if err = p.compile(dir); err == nil {
		err = os.WriteFile(dir.profile(), []byte(p.profile.Text), 0o600)
	}
	if err != nil {
		return nil, errors.Join(err, dir.remove())
	}
	started, err := process.Start(ctx, p.cmd, process.Plan{
		Self: p.host.Self, Profile: dir.profile(), Params: p.params(), Checks: checks(canaries(dir, p.spec)),
		Limits: spec.Limits, Terminal: p.host.Terminal != "", Report: report, Clean: dir.remove,
	})
	if err != nil {
		return nil, err // not a nil *process.Process in an interface
	}
	return started, nil
}

// Setup implements [sandbox.Backend].
func (*Backend) Setup(cmd *exec.Cmd, spec sandbox.Spec) (string, error) {
	p, _, err := prepare(cmd, spec)
	if err != nil {
		return "", err
	}
	dir := private{path: p.base + "/" + prefix + "run-RUN", tag: "RUN"}
	if err := p.compile(dir); err != nil {
		return "", err
	}
	return steps(p, dir), nil
}

// plan is what is known of a run before anything of it is made.
type plan struct {
	base    string // directory in which the run's own is made
	spec    sandbox.Spec
	host    Host
	cmd     *exec.Cmd
	profile Profile
}

// prepare looks at the machine. It makes nothing.
func prepare(cmd *exec.Cmd, spec sandbox.Spec) (*plan, sandbox.Report, error) {
	if err := sandbox.CheckCommand(cmd, spec); err != nil {
		return nil, sandbox.Report{}, err
	}
	p := &plan{spec: spec}
	setupError := func(step string, err error) error {
		return &sandbox.SetupError{Layer: sandbox.LayerSeatbelt, Step: step, Err: err}
	}
	self, err := os.Executable()
	if err == nil {
		self, err = filepath.EvalSymlinks(self)
	}
	if err != nil {
		return nil, sandbox.Report{}, setupError("find our own binary", err)
	}
	p.host.Self = stored(self)
	if p.base, err = filepath.EvalSymlinks(os.TempDir()); err != nil {
		return nil, sandbox.Report{}, setupError("look at TMPDIR", err)
	}
	p.base = stored(p.base)
	if own, err := filepath.EvalSymlinks(process.UserTmp()); err == nil {
		p.host.UserTmp = stored(own)
	}
	p.streams(cmd)
	p.cmd = &exec.Cmd{
		Path: cmd.Path, Args: cmd.Args, Env: cmd.Env, Dir: cmd.Dir,
		Stdin: cmd.Stdin, Stdout: cmd.Stdout, Stderr: cmd.Stderr, ExtraFiles: cmd.ExtraFiles,
	}
	_, noFootprint := process.Footprint(os.Getpid())
	r := report(spec, p.host.Terminal != "", noFootprint)
	return p, r, r.Check(spec)
}

// streams finds out what the program's descriptors are open on.
func (p *plan) streams(cmd *exec.Cmd) {
	own := cmd.SysProcAttr != nil && cmd.SysProcAttr.Setsid // the caller's terminal is not the program's
	files := slices.Clone(cmd.ExtraFiles)
	for _, stream := range []any{cmd.Stdin, cmd.Stdout, cmd.Stderr} {
		f, ok := stream.(*os.File)
		if !ok || f == nil {
			continue
		}
		if _, err := unix.IoctlGetTermios(int(f.Fd()), unix.TIOCGETA); err == nil && !own && p.host.Terminal == "" {
			p.host.Terminal, _ = nameOf(int(f.Fd()))
		}
		files = append(files, f)
	}
	for _, f := range files {
		if f == nil {
			continue
		}
		name, err := nameOf(int(f.Fd()))
		if err == nil && name != p.host.Terminal && !slices.Contains(p.host.Streams, name) {
			p.host.Streams = append(p.host.Streams, name)
		}
	}
}

// compile makes the profile of a run in dir, and the environment.
func (p *plan) compile(dir private) (err error) {
	p.spec = confine(p.spec, dir)
	p.host.Files = Look(append(Paths(p.spec), p.spec.Tmp))
	p.host.Tmp, p.host.Tag = p.host.Files[p.spec.Tmp].Path, prefix+dir.tag
	p.cmd.Env = retarget(p.cmd.Env, p.host.Tmp)
	p.profile, err = Compile(p.spec, p.host)
	return err
}

func (p *plan) params() []string {
	var list []string
	for _, param := range p.profile.Params {
		list = append(list, param.Key+"="+param.Value)
	}
	return list
}

func checks(canaries []canary) []process.Check {
	ops := map[op]process.Op{read: process.Read, create: process.Create, connect: process.Connect}
	var list []process.Check
	for _, c := range canaries {
		list = append(list, process.Check{What: c.what, Op: ops[c.op], Path: c.path, Want: c.want})
	}
	return list
}

// steps tells what Start would do, one line a step, and the profile after it.
func steps(p *plan, dir private) string {
	var b strings.Builder
	line := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	where := "in a session of its own"
	if p.host.Terminal != "" {
		where = "in the session and process group of the caller, for " + p.host.Terminal
	}
	line("start the helper outside, in a process group of its own: %s", p.host.Self)
	line("close all descriptors but those passed on")
	line("start %s -f %s, %s", process.Tool, dir.profile(), where)
	for _, param := range p.params() {
		line("  with -D %s", param)
	}
	line("inside, try:")
	for _, c := range canaries(dir, p.spec) {
		must := "must work"
		if c.want != 0 {
			must = fmt.Sprintf("must fail with %q", c.want.Error())
		}
		line("  %s: %s: %s", c.what, c.path, must)
	}
	line("set limits: %s", rlimitsLayer(p.spec.Limits).Detail)
	line("execute %s", p.cmd.Path)
	line("watch: %s", watchLayer(p.spec.Limits, p.host.Terminal != "", nil).Detail)
	line("")
	b.WriteString(p.profile.Text)
	return b.String()
}

// Doctor implements [sandbox.Backend]. It confines a shell that does nothing, and
// reports what held: no setting of the system tells as much as the try.
func (b *Backend) Doctor() sandbox.Report {
	failed := func(err error) sandbox.Report {
		l := sandbox.Layer{
			Name: sandbox.LayerSeatbelt, State: sandbox.Missing, Why: err.Error(),
			Lost: "commands are refused: nothing would confine them",
		}
		var unsupported *sandbox.UnsupportedError
		var setup *sandbox.SetupError
		switch {
		case errors.As(err, &unsupported):
			l.Fix = unsupported.Hint
		case errors.As(err, &setup):
			l.Fix = setup.Hint
		}
		return sandbox.Report{Tier: "none", Layers: []sandbox.Layer{l}}
	}
	dir, err := os.MkdirTemp("", prefix+"doctor-*")
	if err == nil {
		defer os.RemoveAll(dir)
		dir, err = filepath.EvalSymlinks(dir)
	}
	if err != nil {
		return failed(err)
	}
	cmd, spec := sandbox.Trial(dir, sandbox.LayerWatch)
	p, err := b.Start(context.Background(), cmd, spec)
	if err != nil {
		return failed(err)
	}
	r := p.Report()
	exit, err := p.Wait()
	if err == nil && exit.Status.ExitStatus() != 0 {
		err = fmt.Errorf("/bin/sh ended with status %#x inside: the profile keeps it from what it needs", int(exit.Status))
	}
	if err != nil {
		return failed(err)
	}
	return r
}
