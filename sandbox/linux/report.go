//go:build linux

package linux

import (
	"fmt"

	"github.com/sandbox-exec/sandbox-exec/sandbox"
)

// tier is a way of confining. Each is tried when the one before it is not to be
// had on this machine and may be missing.
type tier uint8

const (
	userNamespace tier = iota // a user namespace of its own, and the others below it
	rootNamespace             // root's own power makes the namespaces
	hostProc                  // as userNamespace, for containers that mask a part of /proc: no other one can be mounted there
	landlockAlone
)

// user says whether it has a user namespace of its own.
func (t tier) user() bool { return t == userNamespace || t == hostProc }

// mounts says whether the program sees mounts of its own.
func (t tier) mounts() bool { return t != landlockAlone }

func (t tier) String() string {
	return [...]string{"namespaces", "namespaces", "namespaces", "landlock"}[t]
}

// report says what holds. It is built after the helper's word that every step
// succeeded, so a step that is in the setup is enforced.
func report(h *host, spec sandbox.Spec, cg *cgroup, noCgroup string, why *noNamespaces) sandbox.Report {
	r := sandbox.Report{Tier: h.tier.String()}
	if h.tier.mounts() {
		kinds := "user, mount, pid, ipc"
		if h.tier == rootNamespace {
			kinds = "mount, pid, ipc"
		}
		if spec.Network != sandbox.NetworkHost {
			kinds += ", net"
		}
		l := sandbox.Layer{Name: sandbox.LayerNamespaces, State: sandbox.Enforced, Detail: kinds}
		if h.tier == hostProc {
			l.State, l.Lost = sandbox.Weaker, "other processes of the container show in /proc, where Landlock keeps their memory and environment closed; a process is not there by the number that it knows"
			l.Fix = "in a container, let it see all of /proc (--security-opt systempaths=unconfined in Docker, unmask=ALL in podman)"
			if why != nil {
				l.Why = why.Error()
			}
		}
		r.Layers = append(r.Layers, l)
	} else {
		l := sandbox.Layer{
			Name: sandbox.LayerNamespaces, State: sandbox.Missing,
			Lost: "protected names in the workspace can be changed (told after the run); names and attributes of hidden files show; " +
				"other processes show in /proc; no localhost when the network is off; no pseudo terminals; strace, gdb, System V and POSIX message queues do not work; a tree that forks fast can outlive the command for a moment",
		}
		if why != nil {
			l.Why, l.Fix = why.Error(), why.hint()
		}
		r.Layers = append(r.Layers, l)
	}
	r.Layers = append(r.Layers, landlockLayer(h, spec))
	r.Layers = append(r.Layers, sandbox.Layer{
		Name: sandbox.LayerSeccomp, State: sandbox.Enforced,
		Detail: fmt.Sprintf("%d instructions", len(h.filter)/8),
	})
	if cg != nil {
		r.Layers = append(r.Layers, cg.layer())
	} else {
		r.Layers = append(r.Layers, sandbox.Layer{
			Name: sandbox.LayerCgroup, State: sandbox.Weaker, Why: noCgroup,
			Detail: "memory and processes watched ten times a second",
			Lost:   "what a tree uses up between two looks is used up; no peak and no processor cap",
			Fix:    "run below a delegated cgroup (systemd-run --user --scope -p Delegate=yes)",
		})
	}
	priv := sandbox.Layer{Name: sandbox.LayerPrivileges, State: sandbox.Enforced, Detail: "no capabilities, no new privileges"}
	if h.admin {
		priv.Detail = "root over files and ids, of a user namespace; no new privileges"
		if !h.tier.user() {
			priv.State, priv.Detail = sandbox.Weaker, "root over files and ids; no new privileges"
			priv.Why = "no user namespace"
			priv.Lost = "what a hole in the other layers gives is root's power over the host's files"
		}
	}
	return sandbox.Report{Tier: r.Tier, Layers: append(r.Layers, priv,
		sandbox.Layer{Name: sandbox.LayerDescriptors, State: sandbox.Enforced, Detail: "only those passed on purpose"},
	)}
}

func landlockLayer(h *host, spec sandbox.Spec) sandbox.Layer {
	l := sandbox.Layer{Name: sandbox.LayerLandlock, State: sandbox.Enforced, Detail: fmt.Sprintf("ABI %d", h.abi)}
	if h.abi == 0 {
		return sandbox.Layer{
			Name: sandbox.LayerLandlock, State: sandbox.Missing, Why: "not in this kernel, or not in lsm=",
			Lost: "the second line behind the mounts: FIFOs and devices outside can be written to",
			Fix:  "a kernel from 5.13 on with landlock in lsm=",
		}
	}
	if h.tier.mounts() {
		if !h.unixSockets(spec) {
			l.State, l.Why = sandbox.Weaker, "abstract sockets of others cannot be cut off below ABI 6 where the network is the host's"
			l.Lost = "Unix sockets are refused"
		}
		return l
	}
	lost := ""
	add := func(s string) {
		if lost != "" {
			lost += "; "
		}
		lost += s
	}
	if h.abi < 3 {
		add("files outside can be truncated by path")
	}
	if h.abi < 6 {
		add("processes outside can be signalled")
	}
	if !h.unixSockets(spec) {
		add("Unix sockets are refused, as those of others could not be cut off")
	}
	add("mode, owner, times and attributes of the user's files outside can be changed")
	l.State, l.Why, l.Lost = sandbox.Weaker, "no mount namespace beside it", lost
	return l
}
