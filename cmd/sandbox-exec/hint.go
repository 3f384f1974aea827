package main

import (
	"context"
	"os"
	"path"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/sandbox-exec/sandbox-exec/policy"
	"github.com/sandbox-exec/sandbox-exec/profiles"
	"github.com/sandbox-exec/sandbox-exec/runner"
	"github.com/sandbox-exec/sandbox-exec/sandbox"
)

// refusal is a command that was refused, with what to do about it.
type refusal struct {
	*runner.RefusedError
	hint string // "" where there is nothing more to say
}

func (r *refusal) Unwrap() error { return r.RefusedError }

// witness remembers that somebody answered.
type witness struct {
	runner.Approver
	answered bool
}

func (w *witness) Approve(ctx context.Context, r runner.Request) (runner.Answer, error) {
	a, err := w.Approver.Approve(ctx, r)
	w.answered = err == nil
	return a, err
}

// refused adds to a refusal what to do about it, which is not to ask again
// whoever has just said no.
func refused(err *runner.RefusedError, cmd runner.Command, answered bool) error {
	switch err.Decision.Verdict {
	case policy.Ask:
		if answered {
			return &refusal{err, ""}
		}
		return &refusal{err, remedy(err.Decision, cmd)}
	}
	return &refusal{err, denialHint(err.Decision, cmd)}
}

// denialHint is what to do about a denial.
func denialHint(d policy.Decision, cmd runner.Command) string {
	stage := policy.StageRule
	for _, t := range d.Targets {
		if t.Verdict == policy.Deny {
			stage = t.Stage
			break
		}
	}
	switch stage {
	case policy.StageBreaker:
		return "no mode, rule or answer allows this"
	case policy.StageRule:
		return "a rule forbids it; the message names where it stands"
	}
	const plan = "mode plan runs only what is proven to change nothing"
	p := *cmd.Profile
	p.Mode = policy.ModeAllow
	cmd.Profile = &p
	other, err := runner.Decide(cmd)
	switch {
	case err != nil || other.Verdict == policy.Deny:
		return plan
	case p.Workspace != sandbox.ReadWrite:
		return plan + ", and profile " + p.Name + " keeps the workspace read-only in every mode; --profile workspace does not"
	case other.Verdict == policy.Ask:
		return plan + "; --mode allow asks about it"
	}
	return plan + "; --mode allow runs what stays in the workspace"
}

// remedy names the flags that let the command do what it was asked about. An
// answer of "--ask allow" opens no path and no network, and stands there only
// where the question remains.
func remedy(d policy.Decision, cmd runner.Command) string {
	p := *cmd.Profile
	var flags, absent []string
	for _, t := range d.Targets {
		if t.Verdict != policy.Ask {
			continue
		}
		if t.Reason == policy.SyntaxError {
			return "correct the text"
		}
		if usesNetwork(t) && cmd.Profile.Network <= sandbox.NetworkLocalhost {
			hosts, known := namedHosts(d)
			if known && runtime.GOOS == "linux" { // elsewhere no host can be let through by itself
				p.Network, p.AllowHosts = sandbox.NetworkAllow, hosts
			} else {
				p.Network = sandbox.NetworkHost
			}
			continue
		}
		name, value := opener(t, cmd)
		flag := name + " " + quote(value)
		if name == "" || slices.Contains(flags, flag) {
			continue
		}
		flags = append(flags, flag)
		if _, err := os.Lstat(value); err != nil && filepath.IsAbs(value) {
			absent = append(absent, quote(value))
		}
		switch name {
		case "--read":
			p.Read = append(slices.Clip(p.Read), value)
		case "--write":
			p.Write = append(slices.Clip(p.Write), value)
		case "--unprotect":
			p.Unprotect = append(slices.Clip(p.Unprotect), value)
		}
	}
	switch {
	case p.Network == cmd.Profile.Network:
	case p.Network == sandbox.NetworkAllow:
		flags = append(flags, allowHosts(p.AllowHosts))
	default:
		flags = append(flags, "--net host")
	}
	cmd.Profile = &p
	if again, err := runner.Decide(cmd); err != nil || again.Verdict != policy.Allow {
		flags = append(flags, "--ask allow")
	}
	hint := "ask the person and run it again with " + policy.Escape(strings.Join(flags, " "))
	if absent != nil {
		hint += " (make " + policy.Escape(strings.Join(absent, ", ")) + " first: what is not there cannot be opened)"
	}
	return hint + ", or change the command"
}

// opener returns the flag that makes the sandbox let a target through; "" where
// there is none, or none is needed.
func opener(t policy.Target, cmd runner.Command) (flag, value string) {
	known := !t.Dynamic && filepath.IsAbs(t.Resource)
	workspace := cmd.Settings.Workspace
	switch {
	case !known:
	case t.Action == policy.FileRead && t.Reason == policy.OutsideRead:
		return "--read", t.Resource
	case t.Action == policy.FileWrite && t.Reason == policy.ProtectedPath && sandbox.Covers(workspace, t.Resource):
		if file, err := filepath.Rel(workspace, t.Resource); err == nil {
			if name := cmd.Profile.ProtectedName(file); name != "" && !slices.Contains(cmd.Profile.Unprotect, name) {
				return "--unprotect", name
			}
		}
	case t.Action == policy.FileWrite && (t.Reason == policy.OutsideWrite || t.Reason == policy.ProtectedPath):
		return "--write", t.Resource
	}
	return "", ""
}

// usesNetwork says whether a target asks for the network.
func usesNetwork(t policy.Target) bool {
	switch t.Reason {
	case policy.NetworkAccess, policy.NetworkRedirect, policy.RemoteEffect, policy.RemoteShell:
		return true
	}
	return t.Action == policy.NetworkTo
}

// namedHosts returns what --allow-host takes to let a command reach the hosts
// that it names; known says whether that is all that it wants to reach.
func namedHosts(d policy.Decision) (hosts []string, known bool) {
	git := func(t policy.Target) bool {
		return t.Action == policy.Exec && len(t.Argv) > 0 && path.Base(t.Argv[0]) == "git"
	}
	known = true
	for _, t := range d.Targets {
		if t.Action != policy.NetworkTo {
			continue
		}
		host := t.Resource
		for _, web := range []string{":80", ":443"} { // what a rule without a port holds for
			host = strings.TrimSuffix(host, web)
		}
		if host == "*" && slices.ContainsFunc(d.Targets, func(by policy.Target) bool { return by.Span == t.Span && git(by) }) {
			host = "@git"
		}
		switch {
		case t.Dynamic || host == "*" || profiles.CheckHost(host, true) != nil:
			known = false
		case !slices.Contains(hosts, host):
			hosts = append(hosts, host)
		}
	}
	return hosts, known && hosts != nil
}

// allowHosts are the flags that let these hosts through.
func allowHosts(hosts []string) string {
	var flags []string
	for _, host := range hosts {
		flags = append(flags, "--allow-host "+quote(host))
	}
	return strings.Join(flags, " ")
}

// distinct leaves out the programs that only read what another target names.
func distinct(targets []policy.Target) []policy.Target {
	reads := func(t policy.Target, action policy.Action) bool {
		return t.Action == action && t.Reason == policy.OutsideRead
	}
	var out []policy.Target
	for _, t := range targets {
		named := func(file policy.Target) bool { return reads(file, policy.FileRead) && file.Span == t.Span }
		if !reads(t, policy.Exec) || !slices.ContainsFunc(targets, named) {
			out = append(out, t)
		}
	}
	return out
}
