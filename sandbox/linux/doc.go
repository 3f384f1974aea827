// Package linux confines a process tree by namespaces, Landlock, seccomp and a
// cgroup.
//
// The parent surveys the host, compiles a [sandbox.Spec] into an ordered list
// of system calls, and starts this same binary again as a helper that runs the
// list, forks the program and reaps it. compile is a pure function, so what
// will be done to a process can be printed, compared and reviewed.
package linux
