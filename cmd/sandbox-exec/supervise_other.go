//go:build !linux

package main

import (
	"runtime"

	"github.com/sandbox-exec/sandbox-exec/sandbox"
)

const supervisorName = "sandbox-exec-task"

type supervision struct{}

var _ = env{}.supervision // env has it on every system

// launched is what became of a task that was launched.
type launched struct {
	id     string
	ending error
}

var errNoTasks = &sandbox.UnsupportedError{Layer: "background", Want: "Linux", Have: runtime.GOOS}

func (e *env) launch() (launched, error)   { return launched{}, errNoTasks }
func (e *env) inBackground(*flagSet) error { return errNoTasks }

func (e *env) supervise(*flagSet, bool) error {
	e.supervision = supervision{}
	return errNoTasks
}
