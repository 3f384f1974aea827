package runner

import (
	"github.com/sandbox-exec/sandbox-exec/sandbox"
	"github.com/sandbox-exec/sandbox-exec/sandbox/linux"
)

func newBackend() sandbox.Backend { return linux.New() }
