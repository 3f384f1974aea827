//go:build linux

package linux

import (
	"context"
	"os"

	"github.com/sandbox-exec/sandbox-exec/sandbox"
)

// Doctor implements [sandbox.Backend]. It confines a shell that does nothing,
// with every layer optional, and reports what held: no setting of the kernel
// tells as much as the try.
func (b *Backend) Doctor() sandbox.Report {
	failed := func(err error) sandbox.Report {
		return sandbox.Report{Tier: "none", Layers: []sandbox.Layer{{
			Name: sandbox.LayerNamespaces, State: sandbox.Missing, Why: err.Error(),
			Lost: "commands are refused: nothing would confine them",
		}}}
	}
	dir, err := os.MkdirTemp("", "sandbox-exec-doctor-*")
	if err != nil {
		return failed(err)
	}
	defer os.RemoveAll(dir)
	cmd, spec := sandbox.Trial(dir, sandbox.LayerNamespaces, sandbox.LayerLandlock, sandbox.LayerCgroup)
	p, err := b.Start(context.Background(), cmd, spec)
	if err != nil {
		return failed(err)
	}
	report := p.Report()
	if _, err := p.Wait(); err != nil {
		return failed(err)
	}
	return report
}
