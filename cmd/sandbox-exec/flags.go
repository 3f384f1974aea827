package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/sandbox-exec/sandbox-exec/policy"
	"github.com/sandbox-exec/sandbox-exec/profiles"
	"github.com/sandbox-exec/sandbox-exec/runner"
	"github.com/sandbox-exec/sandbox-exec/sandbox"
	"github.com/urfave/cli/v2"
)

func jsonFlag() cli.Flag { return &cli.BoolFlag{Name: "json", Usage: "write JSON"} }

func profileFlag() cli.Flag {
	return &cli.StringFlag{Name: "profile", Usage: "permissions: a built-in `NAME` or a file (default: that of your configuration, else workspace)"}
}

// commonFlags say what is run, where, and by which profile.
func commonFlags() []cli.Flag {
	return []cli.Flag{
		&cli.StringFlag{Name: "c", Usage: "run `TEXT` through the shell"},
		profileFlag(),
		&cli.StringFlag{Name: "workspace", Usage: "`DIR` that may be written to (default: the git top above the current directory, else that)"},
		&cli.StringFlag{Name: "cwd", Usage: "run in `DIR`"},
		&cli.StringFlag{Name: "mode", Usage: "what happens without a rule: `plan|ask|allow|auto`"},
		&cli.StringSliceFlag{Name: "read", Usage: "make `PATH` readable, even a secret"},
		&cli.StringSliceFlag{Name: "write", Usage: "make `PATH` writable, even a secret"},
		&cli.StringSliceFlag{Name: "hide", Usage: "hide `PATH`"},
		&cli.StringFlag{Name: "session", Usage: "this call belongs to session `ID`, whose answers hold for it (default: that of the terminal)"},
		&cli.StringFlag{Name: "net", Usage: "network: `off|localhost|allow|host`"},
		&cli.StringSliceFlag{Name: "allow-host", Usage: "let the command connect to `NAME[:PORT]`, *.NAME or a set such as @npm; with --net allow"},
		&cli.StringSliceFlag{Name: "deny-host", Usage: "never let it connect to `NAME[:PORT]`"},
	}
}

// seatbeltFlags are those of run that change a Seatbelt profile.
func seatbeltFlags() []cli.Flag {
	var flags []cli.Flag
	for _, f := range runFlags() {
		switch f.Names()[0] {
		case "profile", "workspace", "cwd", "read", "write", "hide", "net", "unprotect", "allow-socket", "tmp":
			flags = append(flags, f)
		}
	}
	return flags
}

func checkFlags() []cli.Flag {
	return append(commonFlags(),
		jsonFlag(),
		&cli.BoolFlag{Name: "explain", Usage: "say part by part who decided, why, and what would have to change"},
		&cli.BoolFlag{Name: "jsonl", Usage: "answer one JSON request a line from stdin"},
	)
}

func runFlags() []cli.Flag {
	return append(commonFlags(),
		&cli.StringFlag{Name: "approver", Usage: "program that answers questions: `CMD`, blank-separated words or a JSON list"},
		&cli.StringFlag{Name: "ask", Usage: "who answers a question: `prompt|deny|allow`"},
		&cli.StringSliceFlag{Name: "unprotect", Usage: "let the command change the protected `NAME` (.git/hooks, .vscode)"},
		&cli.StringSliceFlag{Name: "allow-socket", Usage: "let the command connect to the Unix socket `PATH`"},
		&cli.StringFlag{Name: "tmp", Usage: "/tmp: `private|session`"},
		&cli.StringFlag{Name: "memory", Usage: "`SIZE` of memory for all processes: 512M, 4G, unlimited"},
		&cli.StringFlag{Name: "pids", Usage: "`NUMBER` of processes and threads, or unlimited"},
		&cli.StringFlag{Name: "cpus", Usage: "`NUMBER` of processors' worth of time, or unlimited"},
		&cli.StringFlag{Name: "timeout", Usage: "end the command after `TIME`: 90, 90s, 5m, none (default: none; with --json the profile's, 60s)"},
		&cli.StringFlag{Name: "on-timeout", Usage: "then `kill|background` the command; background takes no stdin, and 60s without --timeout"},
		&cli.StringFlag{Name: "exclusive", Usage: "of commands with this flag one at a time in the workspace; `wait|refuse` while another runs"},
		&cli.StringFlag{Name: "grace", Usage: "`TIME` from SIGTERM to SIGKILL (default: 5s)"},
		&cli.StringFlag{Name: "output-limit", Usage: "end the command after `SIZE` of output: 16M, unlimited (default: unlimited; with --json the profile's, 16M)"},
		&cli.StringSliceFlag{Name: "env", Usage: "let the variable `NAME[=VALUE]` through"},
		&cli.StringFlag{Name: "stdin", Usage: "what the command reads: `inherit|null`"},
		&cli.StringSliceFlag{Name: "pass-fd", Usage: "keep descriptor `N` open for the command"},
		&cli.StringSliceFlag{Name: "require", Usage: "refuse to run without `LAYER`"},
		&cli.StringSliceFlag{Name: "allow-missing", Usage: "run even without `LAYER`"},
		&cli.StringFlag{Name: "origin", Usage: "who wrote the command: `agent|user`; a user is asked nothing"},
		&cli.BoolFlag{Name: "json", Usage: "the call of a tool: capture the output, limit it and the time, write one JSON object to stdout"},
		&cli.BoolFlag{Name: "merge", Usage: "with --json: stderr goes where stdout goes, in the order in which it comes"},
		&cli.StringFlag{Name: "report", Usage: "write what happened as JSON to `FILE|fd:N`"},
		&cli.StringFlag{Name: "audit", Usage: "append a line of JSON about the run to `FILE`, which the command cannot reach"},
		&cli.BoolFlag{Name: "audit-sync", Usage: "end only when that line is on the disk"},
		&cli.BoolFlag{Name: "dry-run", Usage: "print the decision and the setup, run nothing"},
		&cli.BoolFlag{Name: "q", Usage: "say nothing but errors"},
		&cli.BoolFlag{Name: "v", Usage: "say more"},
	)
}

// flagSet reads flags and remembers the first that is wrong.
type flagSet struct {
	*cli.Context
	err error
}

func (f *flagSet) fail(name, value, why string) {
	if f.err == nil {
		f.err = misuse(fmt.Sprintf("--%s %q: %s", name, value, why), "")
	}
}

// choice returns the flag's value, which must be one of names.
func (f *flagSet) choice(name string, names ...string) string {
	v := f.String(name)
	if f.IsSet(name) && !slices.Contains(names, v) {
		f.fail(name, v, "want "+strings.Join(names, ", "))
	}
	return v
}

// duration reads "90" as seconds, as timeout(1) does, and Go's forms.
func (f *flagSet) duration(name string) time.Duration {
	text := f.String(name)
	if !f.IsSet(name) {
		return 0
	}
	d, err := time.ParseDuration(text)
	if n, numErr := strconv.ParseInt(text, 10, 32); numErr == nil {
		d, err = time.Duration(n)*time.Second, nil
	}
	if err != nil || d <= 0 {
		want := "want a time above zero, such as 90s or 5m"
		if name == "timeout" {
			want += ", or none"
		}
		f.fail(name, text, want)
	}
	return d
}

// memory reads a limit of memory in bytes.
func (f *flagSet) memory(name string) int64 {
	text := f.String(name)
	if !f.IsSet(name) {
		return 0
	}
	n, err := profiles.ParseSize(text)
	switch {
	case err != nil:
		f.fail(name, text, err.Error())
	case n != sandbox.Unlimited && n < profiles.LeastMemory:
		f.fail(name, text, fmt.Sprintf("want at least %d MiB", profiles.LeastMemory>>20))
	}
	return n
}

// size reads a number of bytes.
func (f *flagSet) size(name string) int64 {
	text := f.String(name)
	if !f.IsSet(name) {
		return 0
	}
	n, err := profiles.ParseSize(text)
	if err != nil {
		f.fail(name, text, err.Error())
	}
	return n
}

func (f *flagSet) pids(name string) int64 {
	text := f.String(name)
	switch {
	case !f.IsSet(name):
		return 0
	case text == "unlimited":
		return sandbox.Unlimited
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < profiles.LeastPIDs || n > profiles.MostPIDs {
		f.fail(name, text, fmt.Sprintf("want a number from %d to %d, or unlimited", profiles.LeastPIDs, profiles.MostPIDs))
	}
	return n
}

func (f *flagSet) cpus(name string) float64 {
	text := f.String(name)
	switch {
	case !f.IsSet(name):
		return 0
	case text == "unlimited":
		return sandbox.Unlimited
	}
	n, err := strconv.ParseFloat(text, 64)
	if err != nil || !(n >= profiles.LeastCPUs && n <= profiles.MostCPUs) {
		f.fail(name, text, fmt.Sprintf("want a number from %v to %d, or unlimited", profiles.LeastCPUs, profiles.MostCPUs))
	}
	return n
}

// program returns a program and its arguments: words between blanks, or a JSON
// list where one of them holds a blank.
func (f *flagSet) program(name string) []string {
	text := strings.TrimSpace(f.String(name))
	words := strings.Fields(text)
	if strings.HasPrefix(text, "[") {
		words = nil
		if err := json.Unmarshal([]byte(text), &words); err != nil {
			f.fail(name, text, "no JSON list of words")
		}
	}
	if len(words) == 0 || words[0] == "" {
		f.fail(name, text, "want a program")
	}
	return words
}

// paths returns the flag's paths, absolute or "~/x".
func (f *flagSet) paths(name string, mustExist bool) []string {
	var list []string
	for _, path := range f.StringSlice(name) {
		if path == "" {
			f.fail(name, path, "want a path")
			continue
		}
		if path == "~" || strings.HasPrefix(path, "~/") {
			list = append(list, path)
			continue
		}
		abs, err := filepath.Abs(path)
		if err == nil && mustExist {
			_, err = os.Lstat(abs)
		}
		if err != nil {
			f.fail(name, path, "no such file or directory: what is not there cannot be opened")
		}
		list = append(list, abs)
	}
	return list
}

// sockets returns the flag's paths, each of a socket.
func (f *flagSet) sockets(name string) []string {
	list := f.paths(name, true)
	for _, path := range list {
		file := path
		if rest, ok := strings.CutPrefix(path, "~"); ok {
			home, _ := os.UserHomeDir()
			file = filepath.Join(home, rest)
		}
		if info, err := os.Stat(file); err != nil || info.Mode().Type() != os.ModeSocket {
			f.fail(name, path, "no such socket")
		}
	}
	return list
}

func (f *flagSet) layers(name string) []string {
	list := f.StringSlice(name)
	for _, layer := range list {
		if !slices.Contains(profiles.Layers, layer) {
			f.fail(name, layer, "want one of "+strings.Join(profiles.Layers, ", "))
		}
	}
	return list
}

// common makes the command that the common flags describe, with a profile of
// its own.
func (e *env) common(f *flagSet) (runner.Command, error) {
	cmd := runner.Command{
		Args:      e.program,
		Script:    f.String("c"),
		Dir:       f.String("cwd"),
		Workspace: f.String("workspace"),
		Wrapper:   true,
	}
	if f.IsSet("c") && cmd.Script == "" {
		return cmd, misuse("-c \"\": an empty text", "")
	}
	if f.Args().Present() {
		return cmd, misuse(fmt.Sprintf("unexpected argument %q", f.Args().First()), "put -- before the program: sandbox-exec [FLAGS] -- PROGRAM [ARG...]")
	}
	for _, name := range []string{"cwd", "workspace"} {
		if f.IsSet(name) && f.String(name) == "" {
			return cmd, misuse("--"+name+` "": want a directory`, "")
		}
	}
	if f.IsSet("profile") && f.String("profile") == "" {
		return cmd, misuse("--profile \"\": want a name or a file", "")
	}
	settings, err := runner.LoadSettings(cmd.Dir, cmd.Workspace)
	if err != nil {
		return cmd, err
	}
	cmd.Settings, cmd.Reviewer = settings, settings.Reviewer()
	if err := e.inSession(f, settings); err != nil {
		return cmd, err
	}
	cmd.Profile, e.notices, err = e.profile(f, settings)
	return cmd, err
}

// inSession says whose calls these are, where that makes a difference: a name is
// given, answers are stored for one, or somebody may answer.
func (e *env) inSession(f *flagSet, settings *runner.Settings) error {
	id := f.String("session")
	switch {
	case f.IsSet("session"):
		if id == "" || len(id) > 200 || policy.Escape(id) != id {
			return misuse("--session: want a name of at most 200 bytes, without control characters", "")
		}
	case e.session != "": // the starter's
		id = e.session
	case len(settings.Grants) > 0 || isTerminal(e.stderr):
		id = terminalSession()
	}
	settings.InSession(id)
	return nil
}

// profile is the profile that the settings and the common flags describe; the
// flags have the last word.
func (e *env) profile(f *flagSet, settings *runner.Settings) (*profiles.Profile, []runner.Notice, error) {
	p, notices, err := settings.Profile(f.String("profile"))
	if err != nil {
		return nil, nil, err
	}
	if f.IsSet("mode") {
		if p.Mode, err = policy.ParseMode(f.String("mode")); err != nil {
			return nil, nil, misuse("--mode: "+err.Error(), "")
		}
	}
	p.Read = slices.Concat(p.Read, f.paths("read", true))
	p.Write = slices.Concat(p.Write, f.paths("write", true))
	p.Hide = slices.Concat(p.Hide, f.paths("hide", false))
	f.network(p)
	return p, notices, f.err
}

// opened adds what the flags of run and seatbelt say about files.
func opened(f *flagSet, p *profiles.Profile) {
	if tmp := f.choice("tmp", "private", "session"); tmp != "" {
		p.Tmp = tmp
	}
	p.Unprotect = slices.Concat(p.Unprotect, f.StringSlice("unprotect"))
	p.Sockets = slices.Concat(p.Sockets, f.sockets("allow-socket"))
}

// network reads what can be reached. A host that is let through turns the list
// of them on.
func (f *flagSet) network(p *profiles.Profile) {
	names := []string{"off", "localhost", "allow", "host"}
	if net := f.choice("net", names...); net != "" {
		p.Network = sandbox.Network(max(0, slices.Index(names, net)))
	}
	for _, name := range []string{"allow-host", "deny-host"} {
		for _, host := range f.StringSlice(name) {
			if err := profiles.CheckHost(host, name == "allow-host"); err != nil {
				f.fail(name, host, err.Error())
			}
		}
	}
	allow := f.StringSlice("allow-host")
	if len(allow) > 0 {
		if f.IsSet("net") && p.Network != sandbox.NetworkAllow {
			f.fail("allow-host", allow[0], "--net "+p.Network.String()+" lets all hosts through or none")
		}
		p.Network = sandbox.NetworkAllow
	}
	p.AllowHosts = slices.Concat(p.AllowHosts, allow)
	p.DenyHosts = slices.Concat(p.DenyHosts, f.StringSlice("deny-host"))
	if len(f.StringSlice("deny-host")) > 0 && p.Network == sandbox.NetworkHost {
		f.fail("deny-host", f.StringSlice("deny-host")[0], "with --net host nothing is in its way; use --net allow --allow-host '*'")
	}
}

// wrapped adds what the flags of run say.
func (e *env) wrapped(f *flagSet, cmd *runner.Command) error {
	p := cmd.Profile
	if ask := f.choice("ask", "prompt", "deny", "allow"); ask != "" {
		p.Ask = ask
	}
	if f.IsSet("approver") {
		if ask := f.String("ask"); ask == "deny" || ask == "allow" {
			f.fail("approver", f.String("approver"), "--ask "+ask+" asks nobody")
		}
		p.Ask = "prompt"
		cmd.Approver = &runner.CommandApprover{Args: f.program("approver")}
	}
	opened(f, p)
	if stdin := f.choice("stdin", "inherit", "null"); stdin != "" {
		p.Stdin = stdin
	}
	cmd.Exclusive = runner.Exclusive(f.choice("exclusive", "wait", "refuse"))
	if !f.Bool("q") {
		cmd.OnWait = func(what string) { lines(e.stderr, "waiting: "+what) }
	}
	p.Require = slices.Concat(p.Require, f.layers("require"))
	p.AllowMissing = slices.Concat(p.AllowMissing, f.layers("allow-missing"))

	if n := f.memory("memory"); n != 0 {
		p.Limits.Memory = n
	}
	if n := f.pids("pids"); n != 0 {
		p.Limits.PIDs = n
	}
	if n := f.cpus("cpus"); n != 0 {
		p.Limits.CPUs = n
	}
	if cmd.Timeout = runner.NoTimeout; f.String("timeout") != "none" {
		cmd.Timeout = f.duration("timeout")
	}
	cmd.Grace = f.duration("grace")
	cmd.OutputLimit = f.size("output-limit")
	cmd.Origin = runner.Origin(f.choice("origin", "agent", "user"))
	cmd.Wrapper = !f.Bool("json")
	if cmd.Merge = f.Bool("merge"); cmd.Merge && cmd.Wrapper {
		f.fail("merge", "true", "only with --json; a shell has 2>&1")
	}
	cmd.FinalDir = f.Bool("json") || f.IsSet("report")

	set := map[string]string{}
	for name, value := range p.Set {
		set[name] = value
	}
	p.Set = set
	p.Pass = slices.Clone(p.Pass)
	for _, v := range f.StringSlice("env") {
		name, value, given := strings.Cut(v, "=")
		if name == "" {
			f.fail("env", v, "want NAME or NAME=VALUE")
		}
		if given {
			p.Set[name] = value
		} else {
			p.Pass = append(p.Pass, name)
		}
	}
	for _, text := range f.StringSlice("pass-fd") {
		n, err := strconv.Atoi(text)
		if err != nil || n < 3 || n > 1<<16 {
			f.fail("pass-fd", text, "want the number of an open descriptor above 2")
			continue
		}
		file, err := inherited(n)
		if err != nil {
			f.fail("pass-fd", text, err.Error())
			continue
		}
		for len(cmd.ExtraFiles) <= n-3 {
			cmd.ExtraFiles = append(cmd.ExtraFiles, nil)
		}
		cmd.ExtraFiles[n-3] = file
	}
	return f.err
}
