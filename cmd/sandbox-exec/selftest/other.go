//go:build !linux

package selftest

import (
	"context"
	"runtime"

	"github.com/sandbox-exec/sandbox-exec/sandbox"
)

// Run is for Linux.
func Run(context.Context, Options) (*Report, error) {
	return nil, &sandbox.UnsupportedError{Layer: "selftest", Want: "Linux", Have: runtime.GOOS, Hint: "scripts/macos-check.sh asks a Mac what it holds"}
}

// Attempt is for Linux.
func Attempt([]string) int { return 125 }
