package main

import (
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/sandbox-exec/sandbox-exec/policy"
	"github.com/sandbox-exec/sandbox-exec/profiles"
	"github.com/sandbox-exec/sandbox-exec/runner"
	"github.com/sandbox-exec/sandbox-exec/sandbox"
)

// Kinds of notices about commands that failed.
const (
	noticeNetworkOff = "network-off"
	noticeHost       = "host-refused"
	noticeLocalhost  = "localhost"
	noticeGitConfig  = "git-config"
	noticeWorktree   = "git-worktree"
)

// configWriters write the repository's configuration.
var configWriters = []string{
	"git branch --set-upstream-to", "git branch --unset-upstream", "git branch -u",
	"git config --add", "git config --edit", "git config --remove-section", "git config --rename-section", "git config --replace-all",
	"git config --unset", "git config --unset-all", "git config -e", "git config edit", "git config remove-section",
	"git config rename-section", "git config set", "git config unset",
	"git lfs install", "git push --set-upstream", "git push -u",
	"git remote add", "git remote remove", "git remote rename", "git remote rm", "git remote set-branches", "git remote set-head", "git remote set-url",
	"git sparse-checkout", "git submodule add", "git submodule deinit", "git submodule init", "git submodule set-url", "git submodule update",
}

// worktreeWriters change what git keeps of a worktree that was there before.
// (prune does, too, and succeeds where it could not.)
var worktreeWriters = []string{"git worktree move", "git worktree remove", "git worktree repair"}

// afterFailure says what a command that failed may have failed for, where the
// program's own message does not tell.
func afterFailure(d policy.Decision, p *profiles.Profile) (out []runner.Notice) {
	any := func(is func(policy.Target) bool) bool { return slices.ContainsFunc(d.Targets, is) }
	elsewhere := func(t policy.Target) bool { return usesNetwork(t) && !toLocalhost(t) }
	if p.Network <= sandbox.NetworkLocalhost && any(elsewhere) {
		opens := "--allow-host NAME opens a host"
		if hosts, known := namedHosts(d); known {
			opens = allowHosts(hosts) + " opens what it names"
		}
		out = append(out, runner.Notice{Kind: noticeNetworkOff, Text: "the network is off for this command; " + opens + ", --net host everything"})
	}
	if p.Network < sandbox.NetworkHost && any(toLocalhost) {
		out = append(out, runner.Notice{Kind: noticeLocalhost, Text: "localhost is this command's own: servers of other commands, of tasks and of this machine are not there; start the server in the same command, or both with --net host"})
	}
	if p.Workspace == sandbox.ReadWrite && p.GitConfig != "checked" && !slices.Contains(p.Unprotect, ".git/config") && any(writesGitConfig) {
		out = append(out, runner.Notice{
			Kind: noticeGitConfig, Path: ".git/config",
			Text: `.git/config is protected from this command; --unprotect .git/config lets it change that, git.config = "checked" in the configuration lets all change it and puts back what runs programs`,
		})
	}
	if p.Workspace == sandbox.ReadWrite && !slices.Contains(p.Unprotect, ".git/commondir") && any(func(t policy.Target) bool { return starts(t.Argv, worktreeWriters) }) {
		out = append(out, runner.Notice{
			Kind: noticeWorktree, Path: ".git/worktrees",
			Text: "what git keeps of a worktree is protected from this command; --unprotect .git/commondir --unprotect .git/gitdir lets it change that",
		})
	}
	return out
}

// toLocalhost says whether a target is a server of this machine, or would be
// outside.
func toLocalhost(t policy.Target) bool {
	if t.Action != policy.NetworkTo || t.Dynamic {
		return false
	}
	p, err := policy.ParseHostPattern(t.Resource)
	return err == nil && (p.Host().Name() == "localhost" || p.Host().Addr().IsLoopback())
}

// hostPort is HOST:PORT as --allow-host reads it.
func hostPort(host string, port uint16) string {
	if strings.Contains(host, ":") {
		host = "[" + host + "]"
	}
	return host + ":" + strconv.Itoa(int(port))
}

// refusedHosts says to which hosts there was no connection, why, and what would
// let it through.
func refusedHosts(contacts []sandbox.Contact) (out []runner.Notice) {
	const enough = 5
	for _, c := range contacts {
		if c.Allowed && c.Why == "" {
			continue
		}
		if len(out) == enough {
			return append(out, runner.Notice{Kind: noticeHost, Text: "further hosts were refused; --report has them all"})
		}
		host := c.Host
		if c.Port != 0 && c.Port != 80 && c.Port != 443 {
			host = hostPort(c.Host, c.Port)
		}
		text := host + " was refused: "
		switch {
		case c.Allowed || c.Why != "":
			text = "no connection to " + host + ": " + c.Why
		case c.Rule != "":
			text += "the rule " + c.Rule + " forbids it"
		case profiles.CheckHost(host, true) != nil:
			text += "it is no name of a host"
		default:
			text += "no rule names it; --allow-host " + quote(host) + " opens it"
		}
		out = append(out, runner.Notice{Kind: noticeHost, Text: text})
	}
	return out
}

func writesGitConfig(t policy.Target) bool {
	var words []string
	for _, word := range t.Argv {
		if !strings.HasPrefix(word, "-") {
			words = append(words, word)
		}
	}
	sets := starts(t.Argv, []string{"git config"}) && len(words) == 4 && words[2] != "get" // git config NAME VALUE
	// Not the configuration of the person or of another file.
	return t.Stage != policy.StageReadOnly && (sets || starts(t.Argv, configWriters)) && !slices.ContainsFunc(t.Argv, func(word string) bool {
		name, _, _ := strings.Cut(word, "=")
		return slices.Contains([]string{"--global", "--system", "--file", "-f", "--blob"}, name)
	})
}

// starts says whether a program is one of the rows, which are its name and the
// words that follow in this order; options may stand between them.
func starts(argv, rows []string) bool {
	if len(argv) == 0 {
		return false
	}
	return slices.ContainsFunc(rows, func(row string) bool {
		want := strings.Fields(row)
		if path.Base(argv[0]) != want[0] {
			return false
		}
		want = want[1:]
		for _, word := range argv[1:] {
			if len(want) == 0 {
				break
			}
			name, _, _ := strings.Cut(word, "=")
			switch {
			case name == want[0]:
				want = want[1:]
			case !strings.HasPrefix(word, "-"):
				return false
			}
		}
		return len(want) == 0
	})
}
