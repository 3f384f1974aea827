package main

import (
	"flag"
	"strings"
	"testing"

	"github.com/sandbox-exec/sandbox-exec/sandbox"
	"github.com/urfave/cli/v2"
)

func TestUnheld(t *testing.T) {
	watch := sandbox.Report{Layers: []sandbox.Layer{{Name: sandbox.LayerCgroup, State: sandbox.Weaker, Lost: "no processor cap"}}}
	group := sandbox.Report{Layers: []sandbox.Layer{{Name: sandbox.LayerCgroup, State: sandbox.Enforced}}}
	for _, tt := range []struct {
		args   string
		report sandbox.Report
		want   string
	}{
		{"--cpus 1", watch, "weaker here than asked for: --cpus 1: cgroup weaker: no processor cap"},
		{"--pids 9 --memory 1G", watch, "weaker here than asked for: --memory 1G --pids 9: cgroup weaker: no processor cap"},
		{"--cpus unlimited", watch, ""},
		{"--net off", watch, ""},
		{"--cpus 1", group, ""},
	} {
		set := flag.NewFlagSet("run", flag.ContinueOnError)
		for _, f := range runFlags() {
			if err := f.Apply(set); err != nil {
				t.Fatal(err)
			}
		}
		if err := set.Parse(strings.Fields(tt.args)); err != nil {
			t.Fatal(err)
		}
		f := &flagSet{Context: cli.NewContext(nil, set, nil)}
		if got := f.unheld(tt.report); got != tt.want {
			t.Errorf("%s: got %q, want %q", tt.args, got, tt.want)
		}
	}
}
