package runner

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/sandbox-exec/sandbox-exec/sandbox"
)

// BenchmarkLongOutput captures OUTPUT_BYTES bytes, else 256 MiB, for real, and
// tells how much memory this process used at the most; scripts/output.sh
// compares that with cat.
func BenchmarkLongOutput(b *testing.B) {
	size, err := strconv.ParseInt(os.Getenv("OUTPUT_BYTES"), 10, 64)
	if err != nil {
		size = 256 << 20
		b.Setenv("XDG_STATE_HOME", b.TempDir())
	}
	workspace, err := os.MkdirTemp("/var/tmp", "output-*")
	if err != nil {
		b.Fatal(err)
	}
	defer os.RemoveAll(workspace)
	b.SetBytes(size)
	for b.Loop() {
		r, err := Run(b.Context(), Command{
			Script: fmt.Sprintf("yes | head -c %d", size), Dir: workspace, Timeout: 5 * time.Minute, OutputLimit: sandbox.Unlimited,
		})
		if err != nil || r.Cause != Exited || r.Output.Stdout.Bytes != size {
			b.Fatalf("%s, %d bytes, %v", r.Cause, r.Output.Stdout.Bytes, err)
		}
	}
	if status, err := os.ReadFile("/proc/self/status"); err == nil {
		_, rest, _ := strings.Cut(string(status), "VmHWM:")
		var peak float64
		if _, err := fmt.Sscan(rest, &peak); err == nil {
			b.ReportMetric(peak/1024, "MiB-peak")
		}
	}
}
