//go:build !linux

package main

import (
	"runtime"

	"github.com/sandbox-exec/sandbox-exec/sandbox"
)

type supervision struct{}

var _ = env{}.supervision // env has it on every system

var errNoTasks = &sandbox.UnsupportedError{Layer: "background", Want: "Linux", Have: runtime.GOOS, Hint: "run it in the foreground"}

func (e *env) launch() (launched, error)      { return launched{}, errNoTasks }
func (e *env) inBackground(*flagSet) error    { return errNoTasks }
func (e *env) supervise(*flagSet, bool) error { return errNoTasks }
