package main

import (
	"fmt"
	"path/filepath"

	"github.com/sandbox-exec/sandbox-exec/policy"
	"github.com/sandbox-exec/sandbox-exec/profiles"
	"github.com/sandbox-exec/sandbox-exec/runner"
	"github.com/urfave/cli/v2"
)

// trust shows what the project's file adds and lets it have its way, until it
// changes.
func (e *env) trust(c *cli.Context) error {
	dir, err := projectDir(c)
	if err != nil {
		return err
	}
	settings, err := runner.LoadSettings(dir, dir)
	if err != nil {
		return err
	}
	left, err := settings.Untrusted()
	if err != nil {
		return err
	}
	if err := settings.Trust(); err != nil {
		return err
	}
	fmt.Fprintf(e.stdout, "trusted, as it is now: %s\n", policy.Escape(settings.Project.File))
	for _, line := range left {
		fmt.Fprintf(e.stdout, "  %s\n", policy.Escape(line))
	}
	if len(left) == 0 {
		fmt.Fprintln(e.stdout, "  it opens nothing")
	}
	fmt.Fprintln(e.stdout, "sandbox-exec untrust takes it back")
	return nil
}

func (e *env) untrust(c *cli.Context) error {
	dir, err := projectDir(c)
	if err != nil {
		return err
	}
	return runner.Untrust(dir, dir)
}

// projectDir is the DIR of the command line; "" means the workspace of the
// current directory.
func projectDir(c *cli.Context) (string, error) {
	if c.NArg() > 1 {
		return "", misuse(c.Command.Name+": want at most one DIR", "")
	}
	return c.Args().First(), nil
}

// checkProject checks a project's file by its name.
func checkProject(file string) (known bool, err error) {
	if filepath.Base(file) != profiles.ProjectFile {
		return false, nil
	}
	_, err = profiles.LoadProject(filepath.Dir(file))
	return true, err
}
