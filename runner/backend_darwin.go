package runner

import (
	"github.com/sandbox-exec/sandbox-exec/sandbox"
	"github.com/sandbox-exec/sandbox-exec/sandbox/darwin"
)

func newBackend() sandbox.Backend { return darwin.New() }
