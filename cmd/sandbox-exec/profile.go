package main

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/sandbox-exec/sandbox-exec/policy"
	"github.com/sandbox-exec/sandbox-exec/profiles"
	"github.com/sandbox-exec/sandbox-exec/runner"
	"github.com/sandbox-exec/sandbox-exec/sandbox"
	"github.com/urfave/cli/v2"
)

func (e *env) profileList(c *cli.Context) error {
	for _, name := range profiles.Names() {
		p, err := profiles.Load(name)
		if err != nil {
			return err
		}
		fmt.Fprintf(e.stdout, "%-13s %s\n", name, p.Description)
	}
	return nil
}

func (e *env) profileCheck(c *cli.Context) error {
	name, err := oneArg(c, "FILE")
	if err != nil {
		return err
	}
	if known, err := checkProject(name); known {
		return err
	}
	p, err := profiles.Load(name)
	if err == nil && p.Workspace == sandbox.None {
		lines(e.stderr, `notice: commands see nothing of the workspace: workspace in [files] is "none" or missing`)
	}
	return err
}

// profileInit writes the text of a built-in profile to a new file.
func (e *env) profileInit(c *cli.Context) error {
	file, err := oneArg(c, "FILE")
	if err != nil {
		return err
	}
	if !strings.HasSuffix(file, ".toml") {
		return misuse(fmt.Sprintf("profile init %q: want a name that ends in .toml", policy.Escape(file)), "")
	}
	text, err := profiles.Text(c.String("from"))
	if err != nil {
		return err
	}
	f, err := os.OpenFile(file, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err == nil {
		_, err = f.Write(text)
		err = errors.Join(err, f.Close())
	}
	if err != nil {
		return misuse("profile init: "+err.Error(), "")
	}
	if !filepath.IsAbs(file) && !strings.Contains(file, "/") {
		file = "./" + file
	}
	fmt.Fprintln(e.stdout, policy.Escape(file))
	return nil
}

// profileShow says what a profile means here. Of the files it names those that
// exist.
func (e *env) profileShow(c *cli.Context) error {
	name, err := oneArg(c, "NAME or FILE")
	if err != nil {
		return err
	}
	p, err := profiles.Load(name)
	if err != nil {
		return err
	}
	spec, err := runner.Resolve(runner.Command{Profile: p})
	if err != nil {
		return err
	}
	say := func(label, format string, args ...any) {
		fmt.Fprintf(e.stdout, "%-12s %s\n", label, policy.Escape(fmt.Sprintf(format, args...)))
	}
	say(p.Name, "%s", p.Description)
	say("mode", "%s; what asks: %s", p.Mode, cmp.Or(p.Ask, "deny"))
	say("workspace", "%s, %s", spec.Workspace, p.Workspace)
	say("/tmp", "%s", cmp.Or(p.Tmp, "private"))
	say("network", "%s", spec.Network)
	for _, rule := range spec.Hosts.Rules {
		say("host", "%s", rule)
	}
	say("stdin", "%s", cmp.Or(p.Stdin, "null"))
	say("git", "configuration %s, signing %s", cmp.Or(p.GitConfig, "read-only"), cmp.Or(p.GitSign, "off"))
	say("limits", "memory %s, processes %s, processors %s", size(spec.Limits.Memory), number(float64(spec.Limits.PIDs)), number(spec.Limits.CPUs))
	say("layers", "required: %s; may be missing: %s", list(spec.Require), list(spec.AllowMissing))

	absent := 0
	rules := slices.Clone(spec.Files)
	slices.SortStableFunc(rules, func(a, b sandbox.FileRule) int { return strings.Compare(a.Path, b.Path) })
	for _, r := range rules {
		if _, err := os.Lstat(r.Path); err != nil {
			absent++
			continue
		}
		say(r.Access.String(), "%s: %s", r.Path, r.Reason)
	}
	say("", "and %d paths that do not exist here", absent)
	for _, n := range spec.Protect {
		say("protected", "%s (%s): %s", n.Path, n.Guard, n.Reason)
	}
	return nil
}

func list(names []string) string { return cmp.Or(strings.Join(names, ", "), "none") }

func number(n float64) string {
	if n <= 0 {
		return "unlimited"
	}
	return fmt.Sprint(n)
}

func size(n int64) string {
	if n <= 0 {
		return "unlimited"
	}
	return fmt.Sprintf("%d MiB", n>>20)
}

func oneArg(c *cli.Context, what string) (string, error) {
	if c.NArg() != 1 {
		return "", misuse(fmt.Sprintf("%s: want one %s", strings.TrimPrefix(c.Command.HelpName, "sandbox-exec "), what), "")
	}
	return c.Args().First(), nil
}
