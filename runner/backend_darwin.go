package runner

import "github.com/sandbox-exec/sandbox-exec/sandbox"

func newBackend() sandbox.Backend {
	return unsupported{"macOS is not supported yet; check judges commands here, to run them use Linux, for instance in a virtual machine"}
}
