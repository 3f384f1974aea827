package runner

import (
	"context"
	"os/exec"
	"syscall"
	"time"

	"github.com/sandbox-exec/sandbox-exec/sandbox"
)

// fakeBackend runs commands without any restriction, as a process group.
type fakeBackend struct {
	leaveTree bool // the tree outlives the program, as where there is no pid namespace
	exit      func(*sandbox.Exit)
	tier      string // that it claims to be

	starts int
	spec   sandbox.Spec
	cmd    *exec.Cmd
}

func (b *fakeBackend) Doctor() sandbox.Report { return sandbox.Report{} }

func (b *fakeBackend) Setup(*exec.Cmd, sandbox.Spec) (string, error) { return "step\n", nil }

func (b *fakeBackend) Start(ctx context.Context, cmd *exec.Cmd, spec sandbox.Spec) (sandbox.Process, error) {
	b.starts++
	b.spec, b.cmd = spec, cmd
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	run := &exec.Cmd{
		Path: cmd.Path, Args: cmd.Args, Env: cmd.Env, Dir: cmd.Dir,
		Stdin: cmd.Stdin, Stdout: cmd.Stdout, Stderr: cmd.Stderr, ExtraFiles: cmd.ExtraFiles,
		SysProcAttr: &syscall.SysProcAttr{Setpgid: true},
	}
	if err := run.Start(); err != nil {
		return nil, &sandbox.ExecError{Path: cmd.Path, Err: err}
	}
	return &fakeProcess{b, run, time.Now()}, nil
}

type fakeProcess struct {
	*fakeBackend
	run   *exec.Cmd
	start time.Time
}

func (p *fakeProcess) Report() sandbox.Report          { return sandbox.Report{Tier: p.tier} }
func (p *fakeProcess) Signal(sig syscall.Signal) error { return p.run.Process.Signal(sig) }
func (p *fakeProcess) SignalAll(sig syscall.Signal) error {
	return syscall.Kill(-p.run.Process.Pid, sig)
}

func (p *fakeProcess) Stopped() <-chan syscall.Signal { return nil }
func (p *fakeProcess) Kill() error                    { return p.SignalAll(syscall.SIGKILL) }

func (p *fakeProcess) Wait() (sandbox.Exit, error) {
	p.run.Wait()
	exit := sandbox.Exit{
		Status: p.run.ProcessState.Sys().(syscall.WaitStatus),
		Usage:  sandbox.Usage{Wall: time.Since(p.start)},
	}
	if !p.leaveTree {
		p.Kill()
	}
	if p.exit != nil {
		p.exit(&exit)
	}
	return exit, nil
}
