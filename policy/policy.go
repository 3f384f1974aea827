package policy

// Policy judges commands. The zero value asks about everything that is not
// proven read-only.
type Policy struct {
	Mode       Mode     // zero = ask
	Rules      []Rule   // order does not matter; the strictest match wins
	Disposable []string // folder names whose recursive removal inside the workspace is no danger in mode allow
}

// Mode says what happens to what no rule and no danger settles.
type Mode uint8

const (
	ModeAsk   Mode = iota // proven read-only is allowed, the rest asks
	ModePlan              // proven read-only is allowed, the rest is denied
	ModeAllow             // what stays inside the roots is allowed, danger asks
	ModeAuto              // as ask, and an outside reviewer may settle what only the default asked
)

// Verdict is an answer. The zero value is invalid and treated as Deny.
type Verdict uint8

const (
	_ Verdict = iota
	Allow
	Ask
	Deny
)

// Scope is where a command would run.
type Scope struct {
	Cwd       string // absolute
	Workspace string // absolute; root of what may be written
	Home      string // absolute
	User      string
	Shell     Shell    // the one shell that will run a script; zero = bash
	Read      []string // readable roots; nil = the workspace and system directories
	Write     []string // writable roots; nil = the workspace
	Hidden    []string // paths that the sandbox hides; a root at or below one opens it again
	Protected []string // absolute paths of which a write is always a question; nil = a short list of names below the workspace
	Resolver  Resolver // nil = lexical only
}

// Shell is the dialect of the shell that will run a script.
type Shell uint8

const (
	Bash  Shell = iota
	POSIX       // /bin/sh that is not bash
)

// Resolver tells the judge what is on the file system. It must not run
// anything that the workspace can choose.
type Resolver interface {
	// Resolve returns path with symbolic links followed as far as it exists.
	Resolve(path string) (string, error)
	// ReadFile returns at most max bytes of a regular file.
	ReadFile(path string, max int) ([]byte, error)
}

// Action is what a target does.
type Action string

const (
	Exec      Action = "process.exec"
	FileRead  Action = "file.read"
	FileWrite Action = "file.write"
	NetworkTo Action = "network"
	EnvSet    Action = "env.set"
	Tool      Action = "tool.invoke"
)

// Rule settles targets by their decoded words, never by text.
type Rule struct {
	Action   Action  // zero = process.exec
	Verdict  Verdict // Allow, Ask or Deny
	Pattern  string  // token prefix, path glob or host, by action
	Reason   string  // shown to people: what to do instead
	Match    []string
	NotMatch []string
	Source   string // "file:line"
}
