package sandbox

import (
	"context"
	"os/exec"
	"syscall"
	"time"
)

// Access is what a process may do with a path and everything below it.
// The zero value is the strictest.
type Access uint8

const (
	None      Access = iota // neither read, list nor stat the content
	ReadOnly                // read, list and execute
	ReadWrite               // also create, change and remove
)

func (a Access) String() string {
	return [...]string{"none", "read-only", "read-write"}[a]
}

// Sort ranks file rules: of two rules that cover a path, the higher sort wins;
// within a sort, the more specific path.
type Sort uint8

const (
	Normal Sort = iota
	Secret      // reopened only by the person's own rule for exactly this path
	Hard        // our own state and the kernel's control files; never reopened
)

func (s Sort) String() string {
	return [...]string{"normal", "secret", "hard"}[s]
}

// FileRule gives an access to a path and everything below it.
type FileRule struct {
	Path   string // absolute and clean; need not exist
	Access Access
	Sort   Sort
	Reason string // why, for people
}

// Guard says what happens to a protected name.
type Guard uint8

const (
	Block   Guard = iota // runs without anyone's doing: read-only while the command runs
	Notice               // runs when someone builds or pushes: told, not touched
	Checked              // a git configuration: writable, and what in it runs programs is put back after the run
)

func (g Guard) String() string { return [...]string{"block", "notice", "checked"}[g] }

// Name is a protected name: a file or directory in the workspace whose content
// runs outside of the sandbox later.
type Name struct {
	Path   string // absolute and clean; need not exist
	Guard  Guard
	Reason string
}

// Unlimited lifts a limit.
const Unlimited = -1

// Limits caps what the whole process tree may use. Zero means the backend's
// default (no cap), Unlimited (-1) no cap on purpose.
type Limits struct {
	Memory    int64   // bytes of memory, without swap
	PIDs      int64   // processes and threads
	CPUs      float64 // processors' worth of time
	OpenFiles int64   // open descriptors of one process
	FileSize  int64   // bytes of one file
	Tmp       int64   // bytes in a /tmp that goes with the command, where it has a file system of its own
}

// Spec is what one process tree may do. The zero value may do nothing: no path
// is readable, so no program starts.
type Spec struct {
	Workspace string     // absolute, resolved directory; never "/"
	Home      string     // absolute, resolved directory
	Files     []FileRule // order does not matter
	Protect   []Name
	Tmp       string // directory that becomes /tmp; "" = a private one that is gone at the end
	Network   Network
	Hosts     Hosts // what NetworkAllow lets through
	Limits    Limits
	Sockets   []string // pathname sockets that stay reachable
	// AllowMissing names layers without which the command may run; all others
	// must hold. Require wins over AllowMissing.
	AllowMissing, Require []string
}

// Names of layers, as they stand in a Spec, a Report and on the command line.
const (
	LayerNamespaces  = "namespaces"
	LayerLandlock    = "landlock"
	LayerSeccomp     = "seccomp"
	LayerCgroup      = "cgroup"
	LayerDescriptors = "descriptors"
	LayerPrivileges  = "privileges"

	// macOS
	LayerSeatbelt = "seatbelt"
	LayerRlimits  = "rlimits"
	LayerWatch    = "watch" // of what the tree uses, and of which processes it has
)

// State is how far a layer holds.
type State uint8

const (
	Missing  State = iota // nothing of it holds
	Weaker                // a part of it holds
	Enforced              // all of it holds
)

func (s State) String() string { return [...]string{"missing", "weaker", "enforced"}[s] }

// MarshalText writes the state's name.
func (s State) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// Layer is one line of a Report: what a part of the isolation gives here.
type Layer struct {
	Name   string `json:"name"`
	State  State  `json:"state"`
	Detail string `json:"detail,omitempty"` // how it is enforced: "ABI 7", "cgroup v1"
	Why    string `json:"why,omitempty"`    // why it is weaker or missing
	Lost   string `json:"lost,omitempty"`   // what that costs
	Fix    string `json:"fix,omitempty"`    // what to do about it
}

// Report says what was enforced for one process tree, or what can be here.
type Report struct {
	Tier   string  `json:"tier"` // "namespaces", "landlock", "seatbelt"
	Layers []Layer `json:"layers"`
}

// Usage is what a process tree used. Zero fields were not measured.
type Usage struct {
	Wall        time.Duration `json:"wall_ns"`
	CPU         time.Duration `json:"cpu_ns"`
	MemoryPeak  int64         `json:"memory_peak_bytes,omitempty"`
	PIDsPeak    int64         `json:"pids_peak,omitempty"`
	MemoryLimit int64         `json:"memory_limit_bytes,omitempty"`
	PIDsLimit   int64         `json:"pids_limit,omitempty"`
}

// Exit is how a process tree ended.
type Exit struct {
	Status  syscall.WaitStatus // of the program itself; meaningless if Lost
	Lost    bool               // the helper went away before it told
	OOM     bool               // the memory cap killed a process of the tree
	PIDsMax bool               // the process cap refused a fork
	Usage   Usage
	// Contacts are the hosts that were asked for, in the order of the first
	// time, where the Network was NetworkAllow.
	Contacts []Contact
}

// Process is a confined process tree that runs.
type Process interface {
	// Signal sends sig to the program that was started.
	Signal(sig syscall.Signal) error
	// SignalAll sends sig to every process of the tree.
	SignalAll(sig syscall.Signal) error
	// Stopped delivers the signal that stopped the program, each time; nil where
	// that is not known. Whoever does not receive misses it.
	Stopped() <-chan syscall.Signal
	// Kill ends every process of the tree at once.
	Kill() error
	// Wait returns when the program has ended and the tree is gone, and
	// removes all that was made for it. It must be called exactly once.
	Wait() (Exit, error)
	// Report says what is enforced.
	Report() Report
}

// Backend confines processes on one operating system.
type Backend interface {
	// Doctor finds what this machine can enforce by trying every step once.
	Doctor() Report
	// Start runs cmd (Path, Args, Env, Dir, Stdin, Stdout, Stderr, ExtraFiles,
	// and of SysProcAttr Setsid) under spec. It returns once every restriction holds and the program
	// runs, or an error and no process left. Cancelling ctx stops a Start that
	// has not returned yet, nothing after it.
	//
	// Stdin, Stdout and Stderr must be nil or an *os.File.
	Start(ctx context.Context, cmd *exec.Cmd, spec Spec) (Process, error)
	// Setup prints, one line a step, what Start would do to the process.
	Setup(cmd *exec.Cmd, spec Spec) (string, error)
}
