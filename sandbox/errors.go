package sandbox

import (
	"errors"
	"fmt"
)

// SetupError is a step of the confinement that failed. Nothing was run.
type SetupError struct {
	Layer string // one of the Layer constants
	Step  string // what was tried, with its object: "mount tmpfs /dev/shm"
	Hint  string // what to do, or ""
	Err   error
}

func (e *SetupError) Error() string { return fmt.Sprintf("%s: %s: %v", e.Layer, e.Step, e.Err) }
func (e *SetupError) Unwrap() error { return e.Err }

// UnsupportedError is a layer that was asked for and that this machine does
// not have. Nothing was run. It is errors.ErrUnsupported.
type UnsupportedError struct {
	Layer string
	Want  string // "Landlock or user namespaces"
	Have  string // "kernel 5.10 without Landlock; clone: operation not permitted"
	Hint  string // what to do, or ""
}

func (e *UnsupportedError) Error() string {
	return fmt.Sprintf("%s: want %s, have %s", e.Layer, e.Want, e.Have)
}
func (e *UnsupportedError) Is(target error) bool { return target == errors.ErrUnsupported }

// SpecError is a Spec that cannot be enforced as it is written.
type SpecError struct {
	Field string
	Value string
	Err   error
	Hint  string
}

func (e *SpecError) Error() string { return fmt.Sprintf("%s %q: %v", e.Field, e.Value, e.Err) }
func (e *SpecError) Unwrap() error { return e.Err }

// ExecError is a program that could not be executed after every restriction
// held: not found, not executable, a bad interpreter.
type ExecError struct {
	Path string
	Err  error
}

func (e *ExecError) Error() string { return fmt.Sprintf("%s: %v", e.Path, e.Err) }
func (e *ExecError) Unwrap() error { return e.Err }
