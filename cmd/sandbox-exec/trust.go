package main

import (
	"bufio"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/sandbox-exec/sandbox-exec/policy"
	"github.com/sandbox-exec/sandbox-exec/profiles"
	"github.com/sandbox-exec/sandbox-exec/runner"
	"github.com/urfave/cli/v2"
)

func trustFlags() []cli.Flag {
	return []cli.Flag{&cli.BoolFlag{Name: "yes", Usage: "trust it without a question, which needs a terminal"}}
}

// trust shows what the project's file adds and, after a yes, lets it have its
// way until it changes.
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
	if settings.Project == nil {
		return settings.Trust() // says that there is none
	}
	file := policy.Escape(settings.Project.File)
	fmt.Fprintf(e.stdout, "%s opens, as it is now:\n", file)
	for _, line := range left {
		fmt.Fprintf(e.stdout, "  %s\n", policy.Escape(line))
	}
	if len(left) == 0 {
		fmt.Fprintln(e.stdout, "  nothing")
	}
	if !c.Bool("yes") {
		if err := e.confirm("Trust it? [y/N] "); err != nil {
			return err
		}
	}
	if err := settings.Trust(); err != nil {
		return err
	}
	fmt.Fprintf(e.stdout, "trusted: %s; sandbox-exec untrust takes it back\n", file)
	return nil
}

// confirm asks the person who sees our output.
func (e *env) confirm(question string) error {
	nobody := misuse("nobody is there to be asked: nothing is trusted", "read what it opens, then say --yes")
	if !isTerminal(e.stdout) || !isTerminal(e.stderr) {
		return nobody
	}
	tty, err := os.OpenFile("/dev/tty", os.O_RDWR, 0)
	if err != nil {
		return nobody
	}
	defer tty.Close()
	dropTyped(tty)
	fmt.Fprint(tty, question)
	text, err := bufio.NewReader(tty).ReadString('\n')
	if answer := strings.ToLower(strings.TrimSpace(text)); err != nil || answer != "y" && answer != "yes" {
		return misuse("the answer was no: nothing is trusted", "")
	}
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
