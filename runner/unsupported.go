//go:build !linux && !darwin

package runner

import (
	"context"
	"os/exec"
	"runtime"

	"github.com/sandbox-exec/sandbox-exec/sandbox"
)

// unsupported is the backend of a system that has none. It runs nothing.
type unsupported struct{ hint string }

func (u unsupported) err() error {
	return &sandbox.UnsupportedError{
		Layer: "sandbox",
		Want:  "Linux",
		Have:  runtime.GOOS,
		Hint:  u.hint,
	}
}

func (u unsupported) Doctor() sandbox.Report {
	return sandbox.Report{Tier: "none", Layers: []sandbox.Layer{{
		Name: "sandbox",
		Why:  u.err().Error(),
		Lost: "nothing can be run",
		Fix:  u.hint,
	}}}
}

func (u unsupported) Start(context.Context, *exec.Cmd, sandbox.Spec) (sandbox.Process, error) {
	return nil, u.err()
}

func (u unsupported) Setup(*exec.Cmd, sandbox.Spec) (string, error) { return "", u.err() }
