// Package selftest attacks the sandbox on the machine that it is to hold on:
// every case is tried by a program inside of it and looked at from outside.
//
// All that is attacked is made for it and thrown away: a home with secrets, a
// workspace, servers, a process. Each case is tried without a sandbox first; one
// that does not get through even then proves nothing here, and is told so.
package selftest

import (
	"fmt"

	"github.com/sandbox-exec/sandbox-exec/profiles"
	"github.com/sandbox-exec/sandbox-exec/sandbox"
)

// Outcome is how a case ended.
type Outcome string

const (
	Held       Outcome = "held"        // the attempt was made and got nowhere
	GotThrough Outcome = "got-through" // it got out, though it was promised that it would not
	Weaker     Outcome = "weaker"      // it got out, and what is missing here makes that no surprise
	NoProof    Outcome = "no-proof"    // it gets nowhere without a sandbox either, or was not tried
	Works      Outcome = "works"       // honest work was done
	Broken     Outcome = "broken"      // honest work was not
	NotRun     Outcome = "not-run"     // the sandbox did not start, so nothing was held
)

// bad says whether an outcome breaks a promise.
func (o Outcome) bad() bool { return o == GotThrough || o == Broken || o == NotRun }

// Case is one line of a Report.
type Case struct {
	Name    string  `json:"name"`
	What    string  `json:"what"`            // what is tried
	Layer   string  `json:"layer,omitempty"` // what holds it first
	Outcome Outcome `json:"outcome"`
	Why     string  `json:"why,omitempty"` // what got out, or why there is no promise or proof
}

// Report is what came of it. Fields are added, never renamed.
type Report struct {
	Version int            `json:"version"`
	Kernel  string         `json:"kernel"`
	UID     int            `json:"uid"`
	Profile string         `json:"profile"`
	Sandbox sandbox.Report `json:"sandbox"` // of the first command
	Cases   []Case         `json:"cases"`
}

// Count returns how many cases ended so.
func (r *Report) Count(o Outcome) int {
	n := 0
	for _, c := range r.Cases {
		if c.Outcome == o {
			n++
		}
	}
	return n
}

// OK says whether every promise held.
func (r *Report) OK() bool {
	for _, c := range r.Cases {
		if c.Outcome.bad() {
			return false
		}
	}
	return true
}

// Options say what is attacked.
type Options struct {
	Profile *profiles.Profile
	// Flags of "sandbox-exec run" that the cases run under, such as the profile's.
	Flags []string
	// Told is called with each case when it has ended; nil tells nobody.
	Told func(Case)
}

// Error is a self-test that could not be made.
type Error struct {
	Step string
	Err  error
	Hint string
}

func (e *Error) Error() string { return fmt.Sprintf("selftest: %s: %v", e.Step, e.Err) }

func (e *Error) Unwrap() error { return e.Err }

// Program is the name under which this program, started inside, is the attempt
// that its first argument names.
const Program = "sandbox-exec-attempt"
