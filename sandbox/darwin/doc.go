// Package darwin confines processes on macOS with Seatbelt, the sandbox of the
// system, through /usr/bin/sandbox-exec.
//
// [Compile] turns what a process may do into the text of a Seatbelt profile. It
// is pure and has no build tag, so that what a Mac will be told can be printed,
// compared and judged by tests on every system.
package darwin
