// Package runner runs one command: it finds where, decides whether, confines
// it, sees it through to its end and says what happened.
//
// A program that embeds it calls [Run] and needs nothing else: on Linux the
// helper that applies the restrictions is this same program, started again
// under the name sandbox-exec-init; it never reaches main.
package runner

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/sandbox-exec/sandbox-exec/policy"
	"github.com/sandbox-exec/sandbox-exec/profiles"
	"github.com/sandbox-exec/sandbox-exec/sandbox"
)

// maxScript is the longest text that can be handed to a shell as an argument,
// in bytes (MAX_ARG_STRLEN without its NUL, execve(2)).
const maxScript = 128<<10 - 1

// Command is one call.
type Command struct {
	// Script is text for the shell, /bin/bash or else /bin/sh. Args are a
	// program and its arguments. Exactly one of them is given.
	Script string
	Args   []string

	// Dir is the working directory; "" means the current one.
	Dir string
	// Workspace is the directory that may be written to. "" means the nearest
	// directory at or above Dir that holds a ".git", but never the home
	// directory or one above it; where there is none, Dir.
	Workspace string
	// Env is the environment of which the profile lets a part through, as
	// NAME=VALUE; nil means that of this process.
	Env []string

	// Stdin is what the program reads; nil means nothing (/dev/null). Stdout
	// and Stderr get what it writes; where they are nil, it is captured: the
	// end of it is in Result.Output. An *os.File is handed to the program
	// itself, unless OutputLimit is set: the profile's holds for what comes by
	// here.
	Stdin          io.Reader
	Stdout, Stderr io.Writer
	// ExtraFiles are further descriptors for the program: entry i becomes
	// 3+i; nil entries are closed.
	ExtraFiles []*os.File

	// Merge writes stderr where stdout goes, in the order in which it comes.
	// Stderr must be nil.
	Merge bool
	// OnOutput gets captured output while the command runs: descriptor 1 or 2
	// (1 alone with Merge) and a piece, which is valid during the call only.
	// It is called from two goroutines. While it does not return, the command's
	// writes wait.
	OnOutput func(fd int, p []byte)
	// OutputDir is a directory in which captured output is written from the
	// first byte on, to files "stdout" and "stderr" that must not be there. The
	// command must not be able to change it. "" keeps what outgrows
	// Stream.Tail in a file of our own that goes after a day.
	OutputDir string
	// TailOnly keeps nothing of captured output but Stream.Tail: OnOutput does.
	TailOnly bool
	// ExtraEnv are variables that the command gets, as NAME=VALUE, whatever the
	// profile lets through: what an embedding program has to tell it. They win
	// over all others but what confines a read-only call.
	ExtraEnv []string
	// FinalDir asks for Result.FinalDir, where Script is given.
	FinalDir bool

	// Profile says what the command may do; nil means the one called
	// "workspace". To change something for one call, change a copy of it.
	Profile *profiles.Profile
	// Approver answers what the policy asks; nil refuses it.
	Approver Approver
	// Reviewer settles, in mode auto, what only the mode's default asks; nil,
	// or one that does not answer, leaves it to Approver.
	Reviewer Approver
	// Session remembers the answers ForSession; nil remembers none.
	Session *Session
	// Settings are where the answers ForProject are stored; nil stores none.
	// They hold for a call whose Profile comes from them.
	Settings *Settings

	// Exclusive lets only one call at a time run in the workspace, of those that
	// ask for it.
	Exclusive Exclusive
	// OnWait is told what the call waits for: another that runs exclusively, or
	// that asks. It may be nil.
	OnWait func(what string)

	// Origin says who wrote the command: Agent, which is "", or User. A user's
	// own command is confined in the same way, but nobody is asked about it.
	Origin Origin

	// Wrapper makes the call transparent, as env(1) is: no time-out or output
	// limit but those given here, and no environment for programs that nobody
	// watches. Without it the call is that of a tool and takes the profile's
	// [profiles.ToolCall].
	Wrapper bool
	// Background makes a tool's call take the profile's time-outs for commands
	// in the background.
	Background bool
	// Timeout ends the command; 0 means the profile's for a tool's call, none
	// for a wrapper's. NoTimeout means none, where the profile allows that.
	Timeout time.Duration
	// Grace is the time that a command which is to end has for it, between
	// SIGTERM and SIGKILL; 0 means the profile's for a tool's call,
	// DefaultGrace for a wrapper's.
	Grace time.Duration
	// OutputLimit is how many bytes of output end the command, stdout and
	// stderr together; 0 means the profile's for a tool's call, none for a
	// wrapper's. sandbox.Unlimited means none.
	OutputLimit int64

	countFiles bool            // OutputLimit was given, so that it holds for an *os.File too
	backend    sandbox.Backend // nil = the system's; tests have others
}

// NoTimeout as a Command's Timeout means none.
const NoTimeout time.Duration = sandbox.Unlimited

// Origin is who wrote a command.
type Origin string

const (
	Agent Origin = "agent"
	User  Origin = "user"
)

// Run runs c and waits for its end. The end of ctx ends it.
//
// An error means that the command did not run: a *CommandError, a
// *RefusedError, or one of the errors of package sandbox. A command that
// failed is a Result.
func Run(ctx context.Context, c Command) (Result, error) {
	task, err := Start(ctx, c)
	if err != nil {
		return Result{ExitCode: -1}, err
	}
	return task.Wait(), nil
}

// Start is Run that does not wait. The end of ctx ends the task.
func Start(ctx context.Context, c Command) (*Task, error) {
	k, err := prepare(c)
	if err != nil {
		return nil, err
	}
	if err := k.runnable(); err != nil {
		return nil, err
	}
	alone, err := k.exclusive(ctx)
	if err != nil {
		return nil, err
	}
	task, err := k.start(ctx)
	if err != nil && alone != nil {
		alone.Close()
	}
	if err != nil {
		return nil, err
	}
	go task.see(ctx, k.Timeout, k.Grace, alone)
	return task, nil
}

// start settles the decision and starts the command.
func (k *call) start(ctx context.Context) (*Task, error) {
	if err := k.settle(ctx); err != nil {
		return nil, err
	}
	k.notices = append(k.notices, keep(&k.place, &k.profile)...)
	if err := k.compile(); err != nil {
		return nil, err
	}
	if err := makeOwn(&k.place, k.spec.Files); err != nil {
		return nil, err
	}
	streams, err := newStreams(&k.Command, k.spills(), k.secrets)
	if err != nil {
		return nil, err
	}
	if err := streams.listen(k); err != nil {
		streams.abandon()
		return nil, err
	}
	k.exec.Stdin = fileOrNil(streams.stdin)
	k.exec.Stdout = fileOrNil(streams.stdout)
	k.exec.Stderr = fileOrNil(streams.stderr)
	var guards []guard
	var watchman *watchman
	if len(k.spec.Protect) > 0 {
		guards, watchman, err = startWatch(k.place, k.spec.Protect, k.profile.Unprotect)
		if err != nil && k.profile.GitConfig == "checked" {
			streams.abandon()
			return nil, &StateError{Path: k.place.StateDir, Err: fmt.Errorf("git's configuration cannot be checked after the run: %w", err), Hint: `set git.config = "read-only"`}
		}
		if err != nil && k.place.TmpDir != "" { // else it is said already
			k.notices = append(k.notices, Notice{
				Kind: NoticeState, Path: k.place.StateDir,
				Text: fmt.Sprintf("protected names that appear are told, not moved away: %v", err),
			})
		}
	}

	proc, err := k.backend.Start(ctx, k.exec, k.spec)
	if err != nil {
		streams.abandon()
		if watchman != nil {
			watchman.stop()
		}
		return nil, err
	}
	streams.started()
	task := &Task{
		proc:    proc,
		streams: streams,
		guards:  guards,
		watch:   watchman,
		place:   k.place,
		profile: k.profile,
		names:   k.spec.Protect,
		stays:   k.FinalDir && k.Script != "" && !changesDir(k.Script),
		result: Result{
			Decision: k.decision, Notices: k.notices,
			Started: time.Now(), Dir: k.place.Cwd, Env: names(k.exec.Env),
			Timeout: max(0, k.Timeout), OutputLimit: max(0, k.OutputLimit),
		},
		done:    make(chan struct{}),
		stop:    make(chan Cause, 1),
		kill:    make(chan struct{}),
		detach:  make(chan struct{}),
		settled: make(chan struct{}),
	}
	if !k.Wrapper {
		task.detached = max(0, k.profile.ToolCall.Complete().BackgroundTimeout)
	}
	return task, nil
}

// Decide judges c and runs nothing.
func Decide(c Command) (policy.Decision, error) {
	k, err := prepare(c)
	if err != nil {
		return policy.Decision{}, err
	}
	return k.decision, nil
}

// Where is a place given as text. Empty fields are found as for a Command.
type Where struct{ Dir, Workspace, Home string }

// DecideAt judges c as if it were to run at a place that need not exist, and
// runs nothing.
func DecideAt(c Command, at Where) (policy.Decision, error) {
	if at == (Where{}) {
		return Decide(c)
	}
	if err := c.complete(); err != nil {
		return policy.Decision{}, err
	}
	where, err := imagine(at)
	if err != nil {
		return policy.Decision{}, err
	}
	k := &call{Command: c, profile: *c.Profile, place: where}
	k.judge()
	return k.decision, nil
}

// Doctor finds what this machine can enforce by trying it.
func Doctor() sandbox.Report { return newBackend().Doctor() }

// Resolve says what c's profile means where c would run. c needs no script and
// no arguments.
func Resolve(c Command) (sandbox.Spec, error) {
	if err := c.load(); err != nil {
		return sandbox.Spec{}, err
	}
	where, _, err := place(&c)
	if err != nil {
		return sandbox.Spec{}, err
	}
	return c.Profile.Spec(where)
}

// Preview is what would happen to a command.
type Preview struct {
	Decision policy.Decision
	Setup    string // what would be done to the process, one line a step
	Env      []string
	Notices  []Notice
}

// DryRun judges c and compiles its confinement, but asks, makes and runs
// nothing.
func DryRun(c Command) (Preview, error) {
	k, err := prepare(c)
	if err != nil {
		return Preview{}, err
	}
	preview := Preview{Decision: k.decision, Notices: k.notices}
	if err := k.runnable(); err != nil {
		return preview, err
	}
	preview.Notices = append(preview.Notices, kept(&k.place, &k.profile)...)
	if err := k.compile(); err != nil {
		return preview, err
	}
	preview.Env = k.exec.Env
	preview.Setup, err = k.Command.backend.Setup(k.exec, k.spec)
	return preview, err
}

// spills is where the call's output goes that outgrows memory.
func (k *call) spills() spills {
	if k.OutputDir != "" {
		return spills{dir: k.OutputDir, kept: true}
	}
	return spills{root: k.place.StateDir, dir: filepath.Join(k.place.StateDir, "output")}
}

// names are those of the variables of env, sorted.
func names(env []string) []string {
	var out []string
	for _, v := range env {
		name, _, _ := strings.Cut(v, "=")
		out = append(out, name)
	}
	slices.Sort(out)
	return out
}

// fileOrNil keeps a nil *os.File from becoming an interface that is not nil.
func fileOrNil(f *os.File) interface {
	io.Reader
	io.Writer
} {
	if f == nil {
		return nil
	}
	return f
}

// call is a command on its way.
type call struct {
	Command
	profile  profiles.Profile // a copy; steps tighten it
	place    profiles.Place
	scope    policy.Scope
	decision policy.Decision
	notices  []Notice
	spec     sandbox.Spec
	exec     *exec.Cmd
	secrets  []profiles.Secret // that captured output must not hold
}

// prepare completes c, finds where it runs and judges it.
func prepare(c Command) (*call, error) {
	if err := c.complete(); err != nil {
		return nil, err
	}
	k := &call{Command: c, profile: *c.Profile}
	if found := c.Settings.takePlace(&c); found != nil {
		k.place, k.notices = found.place, found.notices
	} else {
		var err error
		if k.place, k.notices, err = place(&c); err != nil {
			return nil, err
		}
	}
	k.judge()
	return k, nil
}

func (k *call) judge() {
	k.profile.Rules = slices.Concat(k.profile.Rules, k.Session.allowed())
	k.scope = k.profile.Scope(k.place)
	k.scope.Shell = dialect()
	if k.scope.Resolver == nil {
		k.scope.Resolver = resolver{}
	}
	k.decision = k.decide()
}

func (k *call) decide() policy.Decision { return k.decideWith(nil) }

// decideWith judges with further rules.
func (k *call) decideWith(more []policy.Rule) policy.Decision {
	judge := k.profile.Policy()
	judge.Rules = slices.Concat(judge.Rules, more)
	if k.Script != "" {
		return judge.Decide(k.Script, k.scope)
	}
	return judge.DecideArgs(k.Args, k.scope)
}

// complete fills in what c leaves out and refuses what makes no sense.
func (c *Command) complete() error {
	if c.backend == nil {
		c.backend = newBackend()
	}
	if err := c.load(); err != nil {
		return err
	}
	if err := c.validate(); err != nil {
		return err
	}
	return c.limit()
}

// load fills in the profile.
func (c *Command) load() (err error) {
	if c.Profile == nil {
		c.Profile, err = profiles.Load("workspace")
	}
	return err
}

func (c *Command) validate() error {
	switch {
	case c.Script != "" && c.Args != nil:
		return &CommandError{Field: "command", Err: errors.New("both a script and arguments"), Hint: "give one of them"}
	case c.Script == "" && (len(c.Args) == 0 || c.Args[0] == ""):
		return &CommandError{Field: "command", Err: errors.New("nothing to run"), Hint: "give a program with its arguments, or a script"}
	}
	for _, s := range append([]string{c.Script, c.Dir, c.Workspace}, c.Args...) {
		if strings.ContainsRune(s, 0) {
			return &CommandError{Field: "command", Err: errors.New("holds a NUL byte, which no program can be given")}
		}
	}
	for _, v := range slices.Concat(c.Env, c.ExtraEnv) {
		if strings.ContainsRune(v, 0) {
			return &CommandError{Field: "environment", Err: errors.New("holds a NUL byte, which no program can be given")}
		}
	}
	for _, v := range c.ExtraEnv {
		if name, _, ok := strings.Cut(v, "="); name == "" || !ok {
			return &CommandError{Field: "environment", Value: v, Err: errors.New("want NAME=VALUE")}
		}
	}
	if c.Merge && c.Stderr != nil {
		return &CommandError{Field: "output", Err: errors.New("a writer for stderr, which goes where stdout goes"), Hint: "leave out Merge or Stderr"}
	}
	if c.Exclusive != Shared && c.Exclusive != ExclusiveWait && c.Exclusive != ExclusiveRefuse {
		return &CommandError{Field: "exclusive", Value: string(c.Exclusive), Err: errors.New("want wait or refuse")}
	}
	if c.Origin != "" && c.Origin != Agent && c.Origin != User {
		return &CommandError{Field: "origin", Value: string(c.Origin), Err: errors.New("want agent or user")}
	}
	for _, d := range []struct {
		field string
		bad   bool
	}{
		{"timeout", c.Timeout < 0 && c.Timeout != NoTimeout},
		{"grace", c.Grace < 0},
		{"output limit", c.OutputLimit < 0 && c.OutputLimit != sandbox.Unlimited},
	} {
		if d.bad {
			return &CommandError{Field: d.field, Err: errors.New("negative"), Hint: "leave it out for the default"}
		}
	}
	return nil
}

// limit fills in the limits of the kind of call that c is.
func (c *Command) limit() error {
	c.countFiles = c.OutputLimit > 0
	if c.Wrapper {
		if c.Grace == 0 {
			c.Grace = DefaultGrace
		}
		return nil
	}

	tool := c.Profile.ToolCall.Complete()
	timeout, most, key := tool.Timeout, tool.MaxTimeout, "max-timeout"
	if c.Background {
		timeout, most, key = tool.BackgroundTimeout, tool.MaxBackgroundTimeout, "max-background-timeout"
	}
	c.Timeout = cmp.Or(c.Timeout, timeout)
	c.Grace = cmp.Or(c.Grace, tool.Grace)
	c.OutputLimit = cmp.Or(c.OutputLimit, tool.Output)
	if profiles.Within(c.Timeout, most) {
		return nil
	}
	wrong := &CommandError{
		Field: "timeout", Value: c.Timeout.String(),
		Err:  fmt.Errorf("profile %s allows at most %v", c.Profile.Name, most),
		Hint: fmt.Sprintf("ask for less, run it in the background, or set %s under [tool-call] in a profile of your own", key),
	}
	if c.Timeout == NoTimeout {
		wrong.Value = "none"
	}
	return wrong
}

// runnable refuses what can be judged but not be started.
func (k *call) runnable() error {
	if len(k.Script) <= maxScript {
		return nil
	}
	return &CommandError{
		Field: "script", Err: fmt.Errorf("%d bytes; a shell can be given %d", len(k.Script), maxScript),
		Hint: "write it to a file in the workspace and run that",
	}
}

// settle turns the decision into leave to run, or an error.
func (k *call) settle(ctx context.Context) error {
	why := k.decision.Err()
	if why == nil {
		return nil
	}
	refuse := func(reason string) error {
		return &RefusedError{Decision: k.decision, Reason: reason, Err: why}
	}
	var ask *policy.NeedsApprovalError
	if !errors.As(why, &ask) {
		return refuse("")
	}
	answer, silence, err := review(ctx, &k.Command, &k.profile, k.request(nil))
	if err != nil {
		return err
	}
	if answer == nil && k.asksSomebody() {
		done, err := k.queue(ctx)
		if err != nil {
			return err
		}
		defer done()
		if why = k.decision.Err(); why == nil {
			return nil
		}
		if !errors.As(why, &ask) {
			return refuse("")
		}
	}
	rules := k.suggest()
	shown := answer == nil
	if shown {
		a, err := approve(ctx, &k.Command, &k.profile, k.request(rules), silence)
		if err != nil {
			return err
		}
		answer, shown = &a, k.asksSomebody()
	}
	if !answer.Allow {
		return refuse(answer.Reason)
	}
	// Files, links and rules may have changed while somebody thought.
	before := k.decision
	if err := k.judgeAgain(); err != nil {
		return err
	}
	if k.decision.Verdict != policy.Allow && !sameTargets(k.decision.Targets, before.Targets) {
		why = cmp.Or(k.decision.Err(), why)
		return refuse("what the command would do has changed since the question")
	}
	if !shown {
		return nil
	}
	if slices.Contains(k.memory(rules), answer.Remember) {
		k.remember(answer.Remember, rules)
	}
	k.open(ask.Targets)
	return nil
}

// asksSomebody says whether an Approver is asked.
func (k *call) asksSomebody() bool {
	return k.Origin != User && k.profile.Ask == "prompt" && k.Approver != nil
}

func (k *call) request(rules []policy.Rule) Request {
	return Request{
		Script: k.Script, Args: k.Args, Dir: k.place.Cwd, Workspace: k.place.Workspace, Decision: k.decision,
		Profile: k.profile.Name, Sandbox: holds(&k.profile, asked(k.decision)), Remember: k.memory(rules), Rules: rules,
	}
}

// memory are the answers that are remembered.
func (k *call) memory(rules []policy.Rule) []Choice {
	var list []Choice
	if len(rules) > 0 && (k.Session != nil || k.Settings != nil && k.Settings.session != "") {
		list = append(list, ForSession)
	}
	if len(rules) > 0 && k.Settings != nil {
		list = append(list, ForProject)
	}
	return list
}

func (k *call) remember(how Choice, rules []policy.Rule) {
	if how == ForSession && k.Session != nil {
		k.Session.remember(rules)
		return
	}
	for _, r := range rules {
		g := profiles.Grant{Rule: policy.Rule{Action: r.Action, Verdict: policy.Allow, Pattern: r.Pattern}}
		if how == ForSession {
			g.Session, g.Until = k.Settings.session, time.Now().Add(maxSession)
		}
		if err := k.Settings.AddGrant(g); err != nil {
			k.notices = append(k.notices, Notice{
				Kind: NoticeState, Path: k.Settings.GrantsFile(),
				Text: fmt.Sprintf("the answer is not remembered: %v", err),
			})
		}
	}
}

// restrict confines a call that was allowed because it only reads to just
// that, so that what the analysis missed cannot change the workspace either.
// The network and what is writable outside of the workspace stay as the person
// has them: they are off unless asked for. What the project asks for is taken
// back.
func (k *call) restrict() {
	p := &k.profile
	p.Workspace = min(p.Workspace, sandbox.ReadOnly)
	p.Read = slices.Clip(p.Read)
	var write []string
	for _, path := range p.Write {
		if k.inWorkspace(path) {
			p.Read = append(p.Read, path)
		} else {
			write = append(write, path)
		}
	}
	p.Write = write
	p.ProjectRead = append(slices.Clip(p.ProjectRead), p.ProjectWrite...)
	p.ProjectWrite = nil
}

// inWorkspace says whether a path of a profile leads into the workspace.
func (k *call) inWorkspace(path string) bool {
	if rest, ok := strings.CutPrefix(path, "~"); ok {
		path = filepath.Join(k.place.Home, rest)
	}
	real, err := resolver{}.Resolve(path)
	return err != nil || slices.ContainsFunc(slices.Concat(k.place.GitDirs, []string{k.place.Workspace}), func(dir string) bool { return within(real, dir) })
}

// open lets the command at the paths that were shown in the question and
// allowed, for this call. Nothing else that an answer allows opens anything:
// what does not exist has no place to be opened at but its whole directory, and
// a protected name stays what it is.
func (k *call) open(asked []policy.Target) {
	p := &k.profile
	p.Read = p.Read[:len(p.Read):len(p.Read)]
	p.Write = p.Write[:len(p.Write):len(p.Write)]
	for _, t := range asked {
		if t.Dynamic || !strings.HasPrefix(t.Resource, "/") {
			continue
		}
		if _, err := os.Lstat(t.Resource); err != nil {
			k.notices = append(k.notices, Notice{
				Kind: NoticeNotOpened, Path: t.Resource,
				Text: fmt.Sprintf("%s was not opened: %v; --write opens its directory", t.Resource, errors.Unwrap(err)),
			})
			continue
		}
		switch t.Action {
		case policy.FileRead:
			p.Read = append(p.Read, t.Resource)
		case policy.FileWrite:
			p.Write = append(p.Write, t.Resource)
		}
	}
}

// compile makes what the backend needs: the Spec, the environment and the
// program.
func (k *call) compile() error {
	if k.decision.ReadOnly {
		k.restrict()
	}
	var err error
	if k.spec, err = k.profile.Spec(k.place); err != nil {
		return err
	}
	if err := guardOwn(&k.place, k.spec.Files); err != nil {
		return err
	}
	from := k.Env
	if from == nil {
		from = os.Environ()
	}
	env, removed := k.profile.Environ(from, k.place)
	if !k.Wrapper {
		env = k.profile.NonInteractive(env)
		if _, set := k.profile.Set["SHELL"]; !set {
			env = setenv(env, []string{"SHELL=" + shell()}) // the one that is there, not the person's
		}
	}
	if k.profile.ToolCall.Redact {
		k.secrets = profiles.Secrets(from, removed)
	}
	env = setenv(env, k.ExtraEnv)
	if k.decision.ReadOnly {
		env = setenv(env, policy.ReadOnlyEnv)
	}

	k.exec = &exec.Cmd{Args: k.Args, Dir: k.place.Cwd, Env: env, ExtraFiles: k.ExtraFiles}
	if !k.Wrapper { // nobody watches it who could answer at a terminal
		k.exec.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	}
	if k.Script != "" {
		k.exec.Path = shell()
		k.exec.Args = []string{filepath.Base(k.exec.Path), "-c", k.Script}
		return nil
	}
	k.exec.Path, err = lookPath(k.Args[0], k.place.Cwd, env)
	return err
}
