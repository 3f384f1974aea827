package runner

import "syscall"

// Stopped delivers the signal that stopped the program, each time: SIGTSTP,
// SIGSTOP and their like. Whoever does not receive misses it.
func (t *Task) Stopped() <-chan syscall.Signal { return t.proc.Stopped() }
