package policy

// Reason is a closed token that says why a target was settled as it was.
type Reason string

// Proven harmless.
const (
	ReadOnly   Reason = "read-only"   // on the read-only list, with these options and operands
	Cosmetic   Reason = "cosmetic"    // an environment variable that changes how output looks
	InsideRoot Reason = "inside-root" // a path inside the roots of the scope
)

// Not proven; the mode decides.
const (
	UnknownProgram  Reason = "unknown-program"  // not on the read-only list
	UnknownOption   Reason = "unknown-option"   // on the read-only list, but not with this option or operand
	LocalProgram    Reason = "local-program"    // a path to a program outside the system directories
	Script          Reason = "script"           // runs a file or standard input as code
	Code            Reason = "code"             // code for an interpreter given as an argument
	FileChange      Reason = "file-change"      // writes below the writable roots
	DynamicWord     Reason = "dynamic-word"     // a word that is known only when it runs
	DynamicPath     Reason = "dynamic-path"     // a path that is known only when it runs
	ShellState      Reason = "shell-state"      // changes how later commands are run
	Environment     Reason = "environment"      // changes the environment of a program
	ProcessSignal   Reason = "process-signal"   // sends a signal
	NetworkAccess   Reason = "network-access"   // needs the network
	RepositoryState Reason = "repository-state" // the repository's own configuration runs programs
	OutsideRead     Reason = "outside-read"     // reads outside the readable roots; asks in mode allow too
)

// Danger: always a question.
const (
	Destructive     Reason = "destructive"      // removes or overwrites what cannot be brought back
	OutsideWrite    Reason = "outside-write"    // writes outside the writable roots
	ProtectedPath   Reason = "protected-path"   // a file whose content runs later, outside the sandbox
	Device          Reason = "device"           // a device or a control file of the kernel
	Privilege       Reason = "privilege"        // runs as somebody else or changes what confines it
	SystemChange    Reason = "system-change"    // changes the machine
	RemoteEffect    Reason = "remote-effect"    // changes something on another machine
	RemoteShell     Reason = "remote-shell"     // runs commands on another machine
	Container       Reason = "container"        // runs commands in a container, outside the sandbox
	Persistence     Reason = "persistence"      // runs something later or at every start
	EnvInjection    Reason = "env-injection"    // an environment variable that makes programs load or run code
	ForkBomb        Reason = "fork-bomb"        // a function that starts itself without end
	MassSignal      Reason = "mass-signal"      // signals every process
	NetworkRedirect Reason = "network-redirect" // a redirection that opens a connection
)

// Opaque: what runs cannot be known from the text. Always a question.
const (
	OddCharacter     Reason = "odd-character"     // controls, odd blanks, invisible or reordering characters
	TooLong          Reason = "too-long"          // more text than is analysed
	TooDeep          Reason = "too-deep"          // more brackets or nesting than is analysed
	TooManySteps     Reason = "too-many-steps"    // more commands than are analysed
	Padding          Reason = "padding"           // blanks that push text out of sight
	InternalError    Reason = "internal-error"    // the analysis failed
	SyntaxError      Reason = "syntax-error"      // the text does not parse
	ShellDifference  Reason = "shell-difference"  // the parser and the shell may read this differently
	DynamicName      Reason = "dynamic-name"      // the name of the program is known only when it runs
	DynamicCode      Reason = "dynamic-code"      // code that is known only when it runs
	PipedCode        Reason = "piped-code"        // code read from a pipe
	ForeignShell     Reason = "foreign-shell"     // code in the language of another shell
	UnknownWrapper   Reason = "unknown-wrapper"   // an option of a wrapper that is not on its list
	ShadowedName     Reason = "shadowed-name"     // a function or alias replaces a name that is relied on
	ArithmeticCode   Reason = "arithmetic-code"   // text that the shell evaluates as an arithmetic expression
	DynamicExpansion Reason = "dynamic-expansion" // an expansion that runs its value as code
)

// Never.
const (
	ByRule      Reason = "rule"         // a rule of the policy denies it
	RemovesRoot Reason = "removes-root" // the file-system root, or everything in it
	RemovesHome Reason = "removes-home" // the home directory, one above it, or everything in it
)
