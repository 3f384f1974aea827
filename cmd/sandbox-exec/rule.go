package main

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/sandbox-exec/sandbox-exec/policy"
	"github.com/sandbox-exec/sandbox-exec/profiles"
	"github.com/sandbox-exec/sandbox-exec/runner"
	"github.com/urfave/cli/v2"
)

func ruleFlags() []cli.Flag {
	return []cli.Flag{
		workspaceFlag(),
		&cli.BoolFlag{Name: "project", Usage: "a rule for this workspace only, instead of one in your configuration"},
		&cli.StringFlag{Name: "session", Usage: "a rule for this workspace and the calls with --session `ID` alone"},
		&cli.StringFlag{Name: "action", Value: string(policy.Exec), Usage: "what the rule is about: `process.exec|file.read|file.write|network|env.set|tool.invoke`"},
	}
}

func workspaceFlag() cli.Flag {
	return &cli.StringFlag{Name: "workspace", Usage: "`DIR` of the project (default: the git top above the current directory, else that)"}
}

// listedRule is a rule as rule list shows it.
type listedRule struct {
	Verdict policy.Verdict `json:"verdict"`
	Action  policy.Action  `json:"action"`
	Pattern string         `json:"pattern"`
	Reason  string         `json:"reason,omitempty"`
	Source  string         `json:"source"`
	Origin  string         `json:"origin"` // "profile", "person", "project" or "stored"
	Effect  bool           `json:"effect"` // false for a project's allow rule without trust, or a rule of another session
	Session string         `json:"session,omitempty"`
	Until   time.Time      `json:"until,omitzero"`
}

func (e *env) ruleList(c *cli.Context) error {
	settings, err := runner.LoadSettings("", c.String("workspace"))
	if err != nil {
		return err
	}
	if err := e.inSession(&flagSet{Context: c}, settings); err != nil {
		return err
	}
	p, _, err := settings.Profile(c.String("profile"))
	if err != nil {
		return err
	}
	var out []listedRule
	add := func(r policy.Rule, effect bool) {
		listed := listedRule{Verdict: r.Verdict, Action: cmp.Or(r.Action, policy.Exec), Pattern: r.Pattern, Reason: r.Reason, Source: r.Source, Effect: effect}
		for _, g := range settings.Grants {
			if g.Source == r.Source {
				listed.Session, listed.Until = g.Session, g.Until
			}
		}
		file := r.Source[:max(strings.LastIndexByte(r.Source, ':'), 0)]
		origin := "profile"
		switch {
		case file == settings.Config.File && file != "":
			origin = "person"
		case settings.Project != nil && file == settings.Project.File:
			origin = "project"
		case file == settings.GrantsFile():
			origin = "stored"
		}
		listed.Origin = origin
		out = append(out, listed)
	}
	for _, r := range p.Rules {
		add(r, true)
	}
	for _, g := range settings.Grants {
		if !slices.ContainsFunc(p.Rules, func(r policy.Rule) bool { return r.Source == g.Source }) {
			add(g.Rule, false)
		}
	}
	if settings.Project != nil && !settings.Trusted {
		for _, r := range settings.Project.Rules {
			if r.Verdict == policy.Allow {
				add(r, false)
			}
		}
	}
	if c.Bool("json") {
		return e.printJSON(append([]listedRule{}, out...))
	}
	for _, r := range out {
		note := ""
		if r.Session != "" {
			note += ", session " + policy.Escape(r.Session)
		}
		if !r.Until.IsZero() {
			note += ", until " + r.Until.Local().Format(time.DateTime)
		}
		switch {
		case r.Effect:
		case r.Origin == "project":
			note += ", not trusted: no effect"
		default:
			note += ": no effect here and now"
		}
		fmt.Fprintf(e.stdout, "%-5s %-12s %-32s %s (%s%s)\n", r.Verdict, r.Action, policy.Escape(r.Pattern), policy.Escape(r.Source), r.Origin, note)
		if r.Reason != "" {
			fmt.Fprintf(e.stdout, "      %s\n", policy.Escape(r.Reason))
		}
	}
	return nil
}

func (e *env) ruleAdd(c *cli.Context) error {
	args := e.words(c)
	if len(args) < 2 {
		return misuse("rule add: want a verdict and a pattern", "sandbox-exec rule add [FLAGS] allow|ask|deny PATTERN")
	}
	var verdict policy.Verdict
	if err := verdict.UnmarshalText([]byte(args[0])); err != nil {
		return misuse("rule add: "+err.Error(), "")
	}
	tokens, pattern, err := readPattern(c, args[1:])
	if err != nil {
		return err
	}
	settings, err := runner.LoadSettings("", c.String("workspace"))
	if err != nil {
		return err
	}
	rule := policy.Rule{Action: ruleAction(c), Verdict: verdict, Pattern: pattern, Reason: c.String("reason")}
	file := settings.ConfigFile()
	grant := profiles.Grant{Rule: rule, Session: c.String("session")}
	f := &flagSet{Context: c}
	if limit := f.duration("for"); limit > 0 {
		grant.Until = time.Now().Add(limit).Truncate(time.Second)
	}
	switch {
	case f.err != nil:
		return f.err
	case !stored(c) && c.IsSet("for"):
		return misuse("rule add --for: a rule of your configuration is for good", "--project or --session ID stores it for this workspace")
	}
	if err := e.inSession(f, settings); err != nil {
		return err
	}
	if stored(c) {
		file = settings.GrantsFile()
		err = settings.AddGrant(grant)
	} else {
		err = settings.AddRule(rule, tokens)
	}
	if err != nil {
		return err
	}
	fmt.Fprintln(e.stdout, policy.Escape(file))
	return nil
}

func (e *env) ruleRemove(c *cli.Context) error {
	args := e.words(c)
	if len(args) == 0 {
		return misuse("rule remove: want a pattern", "sandbox-exec rule list shows the rules")
	}
	_, pattern, err := readPattern(c, args)
	if err != nil {
		return err
	}
	settings, err := runner.LoadSettings("", c.String("workspace"))
	if err != nil {
		return err
	}
	match := func(r policy.Rule) bool {
		return r.Pattern == pattern && cmp.Or(r.Action, policy.Exec) == cmp.Or(ruleAction(c), policy.Exec)
	}
	n, file := 0, settings.ConfigFile()
	if stored(c) {
		file = settings.GrantsFile()
		n, err = settings.RemoveGrants(func(g profiles.Grant) bool {
			return match(g.Rule) && (c.Bool("project") || g.Session == c.String("session"))
		})
	} else {
		n, err = settings.RemoveRules(match)
	}
	if err != nil {
		return err
	}
	if n == 0 {
		return misuse(fmt.Sprintf("rule remove: no rule %q for %s in %s", pattern, c.String("action"), file), "sandbox-exec rule list shows the rules; --project removes one of this workspace")
	}
	fmt.Fprintln(e.stdout, policy.Escape(file))
	return nil
}

// stored says that a rule is one of those that are stored for the workspace.
func stored(c *cli.Context) bool { return c.Bool("project") || c.IsSet("session") }

// words are the arguments, on both sides of a "--".
func (e *env) words(c *cli.Context) []string { return append(c.Args().Slice(), e.program...) }

// ruleAction is the action of the flag; process.exec, which a rule has without
// saying so, is empty.
func ruleAction(c *cli.Context) policy.Action {
	if a := policy.Action(c.String("action")); a != policy.Exec {
		return a
	}
	return ""
}

// readPattern takes several words as the tokens of a pattern, and one word as
// the pattern itself, as it stands in a file.
func readPattern(c *cli.Context, args []string) (tokens []string, pattern string, err error) {
	if len(args) > 1 {
		pattern, err = runner.PatternOf(ruleAction(c), args)
		return args, pattern, err
	}
	tokens, err = runner.TokensOf(ruleAction(c), args[0])
	return tokens, args[0], err
}
