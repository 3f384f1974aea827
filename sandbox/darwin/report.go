package darwin

import (
	"fmt"
	"strings"

	"github.com/sandbox-exec/sandbox-exec/sandbox"
)

// report says what holds. noFootprint is why the memory of processes cannot be
// measured; nil = it can.
func report(spec sandbox.Spec, terminal bool, noFootprint error) sandbox.Report {
	return sandbox.Report{Tier: sandbox.LayerSeatbelt, Layers: []sandbox.Layer{
		seatbeltLayer(spec), watchLayer(spec.Limits, terminal, noFootprint), rlimitsLayer(spec.Limits),
		{Name: sandbox.LayerDescriptors, State: sandbox.Enforced, Detail: "only those passed on purpose"},
	}}
}

// seatbeltLayer is enforced, as the canaries say. What it costs is what the same
// profile promises on Linux and Seatbelt has no means for.
func seatbeltLayer(spec sandbox.Spec) sandbox.Layer {
	lost := []string{
		"names of hidden files show in the directory that they are in",
		"no /tmp of its own: TMPDIR names one, programs that write to /tmp itself are refused",
		"a file that was hard-linked into the workspace before can be read and written",
		"set-user-ID programs (ps, sudo, top) do not start",
	}
	detail := "network off"
	if spec.Network == sandbox.NetworkOff {
		lost = append(lost, "no loopback of its own: with the network off a program cannot listen either")
	} else {
		detail = "network of the host"
		lost = append(lost, "the certificates' service of the system (trustd) is reachable")
	}
	return sandbox.Layer{
		Name: sandbox.LayerSeatbelt, State: sandbox.Enforced, Detail: "files, " + detail + ", services, other processes",
		Lost: strings.Join(lost, "; "),
	}
}

func watchLayer(limits sandbox.Limits, terminal bool, noFootprint error) sandbox.Layer {
	lost := []string{
		"what a tree uses up between two looks is used up",
		"a process that leaves its parent, its group and its session between two looks outlives the command, in its sandbox",
	}
	if terminal {
		lost = append(lost, "on a terminal, so does one that its parent leaves at once: it has no session of its own there")
	}
	if limits.CPUs > 0 {
		lost = append(lost, "processor time is not capped")
	}
	l := sandbox.Layer{
		Name: sandbox.LayerWatch, State: sandbox.Weaker, Why: "macOS has neither control groups nor PID namespaces",
		Detail: "processes looked at when one forks, memory ten times a second",
		Lost:   strings.Join(lost, "; "),
	}
	if noFootprint != nil && limits.Memory > 0 {
		l.State, l.Why = sandbox.Missing, "memory cannot be measured: "+noFootprint.Error()
		l.Lost = "memory is not capped; " + l.Lost
		l.Fix = "--memory unlimited runs without a cap"
	}
	return l
}

func rlimitsLayer(limits sandbox.Limits) sandbox.Layer {
	l := sandbox.Layer{Name: sandbox.LayerRlimits, State: sandbox.Enforced, Detail: "no core files"}
	if limits.OpenFiles > 0 {
		l.Detail += fmt.Sprintf(", at most %d open files in a process", limits.OpenFiles)
	}
	if limits.FileSize > 0 {
		l.Detail += fmt.Sprintf(", files of at most %d bytes", limits.FileSize)
	}
	return l
}
