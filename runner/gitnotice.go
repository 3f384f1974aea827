package runner

import (
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/sandbox-exec/sandbox-exec/policy"
	"github.com/sandbox-exec/sandbox-exec/profiles"
	"github.com/sandbox-exec/sandbox-exec/sandbox"
)

const (
	NoticeUnsigned = "unsigned" // commits that the person's settings sign were not signed
	NoticeCheckout = "checkout" // git may have failed at protected names
)

// Commands of git that make commits or tags, and those that change files of the
// tree which the command line does not name.
var (
	gitCommits   = []string{"am", "cherry-pick", "commit", "merge", "pull", "rebase", "revert", "tag"}
	gitCheckouts = []string{"am", "apply", "bisect", "checkout", "cherry-pick", "merge", "pull", "rebase", "reset", "restore", "revert", "stash", "switch"}
)

// usesGit says whether a decision is about one of the commands of git.
func usesGit(d *policy.Decision, verbs []string) bool {
	return slices.ContainsFunc(d.Targets, func(t policy.Target) bool {
		if len(t.Argv) < 2 || path.Base(t.Argv[0]) != "git" {
			return false
		}
		for i := 1; i < len(t.Argv); i++ {
			switch word := t.Argv[i]; {
			case word == "-C" || word == "-c":
				i++
			case word != "" && word[0] != '-':
				return slices.Contains(verbs, word)
			}
		}
		return false
	})
}

// unsigned tells that commits were not signed that would have been outside.
func unsigned(d *policy.Decision, p *profiles.Profile, where *profiles.Place) []Notice {
	if p.GitSign == "agent" || !usesGit(d, gitCommits) {
		return nil
	}
	files := []string{
		filepath.Join(where.Home, ".gitconfig"),
		filepath.Join(where.Home, ".config/git/config"),
	}
	if dir := os.Getenv("XDG_CONFIG_HOME"); filepath.IsAbs(dir) {
		files = append(files, filepath.Join(dir, "git/config"))
	}
	own := filepath.Join(where.Workspace, ".git/config")
	if len(where.GitDirs) > 0 {
		own = filepath.Join(where.GitDirs[0], "config")
	}
	for i := 0; i < len(files)+1 && i < 16; i++ {
		file := own
		if i > 0 {
			file = files[i-1]
			if real, err := filepath.EvalSymlinks(file); err == nil { // people link to them
				file = real
			}
		}
		text, err := readSmall(file, maxGitConfig)
		if err != nil {
			continue
		}
		settings, _ := parseGitConfig(string(text))
		for _, s := range settings {
			on := s.bare || slices.Contains([]string{"true", "yes", "on", "1"}, strings.ToLower(s.value))
			switch {
			case (s.section == "commit" || s.section == "tag") && !s.named && s.key == "gpgsign" && on:
				return []Notice{{
					Kind: NoticeUnsigned,
					Text: `commits and tags are not signed here: git.sign = "agent" in the configuration opens ssh-agent and gpg-agent to commands`,
				}}
			case i > 0 && strings.HasPrefix(s.section, "include") && s.key == "path":
				if rest, ok := strings.CutPrefix(s.value, "~/"); ok {
					s.value = filepath.Join(where.Home, rest)
				}
				if !filepath.IsAbs(s.value) {
					s.value = filepath.Join(filepath.Dir(file), s.value)
				}
				files = append(files, s.value)
			}
		}
	}
	return nil
}

// checkout tells, of a command of git that failed, which names of the tree it
// could not change. Git's own message names the file but not why.
func checkout(d *policy.Decision, guards []guard, where *profiles.Place) []Notice {
	if !usesGit(d, gitCheckouts) {
		return nil
	}
	var names []string
	for _, g := range guards {
		name, err := filepath.Rel(where.Workspace, g.name.Path)
		if err != nil || g.name.Guard != sandbox.Block || g.before == "" || within("/"+name, "/.git") || strings.Contains(name, "/.git/") {
			continue
		}
		names = append(names, name)
	}
	if names == nil {
		return nil
	}
	return []Notice{{
		Kind: NoticeCheckout,
		Text: fmt.Sprintf("git cannot change protected names here: %s; if that is what it failed at, let it with --unprotect %s", strings.Join(names, ", "), strings.Join(names, " --unprotect ")),
	}}
}
