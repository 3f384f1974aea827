package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/sandbox-exec/sandbox-exec/cmd/sandbox-exec/selftest"
	"github.com/sandbox-exec/sandbox-exec/profiles"
	"github.com/urfave/cli/v2"
)

func selftestFlags() []cli.Flag {
	return []cli.Flag{
		&cli.StringFlag{Name: "profile", Usage: "attack the built-in `NAME` or a file", Value: "workspace"},
		&cli.StringSliceFlag{Name: "require", Usage: "as for run"},
		&cli.StringSliceFlag{Name: "allow-missing", Usage: "as for run"},
		jsonFlag(),
	}
}

// selftest attacks the sandbox. The exit status is 1 if something got through.
func (e *env) selftest(c *cli.Context) error {
	f := &flagSet{Context: c}
	if c.Args().Present() || e.program != nil {
		return misuse("selftest takes no program", "sandbox-exec selftest [--profile NAME|FILE] [--json]")
	}
	name := f.String("profile")
	profile, err := profiles.Load(name)
	if err != nil {
		return err
	}
	if strings.ContainsRune(name, '/') || strings.HasSuffix(name, ".toml") { // a file, and commands run elsewhere
		if name, err = filepath.Abs(name); err != nil {
			return err
		}
	}
	flags := []string{"--profile", name}
	for _, which := range []string{"require", "allow-missing"} {
		for _, layer := range f.layers(which) {
			flags = append(flags, "--"+which, layer)
		}
	}
	if f.err != nil {
		return f.err
	}
	options := selftest.Options{Profile: profile, Flags: flags}
	if !f.Bool("json") {
		options.Told = func(c selftest.Case) {
			fmt.Fprintf(e.stdout, "%-11s %-22s %s\n", c.Outcome, c.Name, c.What)
			if c.Why != "" {
				fmt.Fprintf(e.stdout, "%-11s %-22s   %s\n", "", "", c.Why)
			}
		}
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	report, err := selftest.Run(ctx, options)
	if err != nil {
		return err
	}
	if f.Bool("json") {
		if err := e.printJSON(report); err != nil {
			return err
		}
	} else {
		fmt.Fprintf(e.stdout, "\ntier %s, uid %d, kernel %s: %d held, %d got through, %d weaker here, %d without proof; work: %d works, %d broken, %d not run\n",
			report.Sandbox.Tier, report.UID, report.Kernel, report.Count(selftest.Held), report.Count(selftest.GotThrough), report.Count(selftest.Weaker),
			report.Count(selftest.NoProof), report.Count(selftest.Works), report.Count(selftest.Broken), report.Count(selftest.NotRun))
	}
	if !report.OK() {
		return silent(1)
	}
	return nil
}
