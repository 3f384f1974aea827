//go:build linux

package linux

import (
	"fmt"
	"os"
	"slices"
	"testing"
)

// TestTree finds the tree of a helper in a process file system where others are,
// and numbers that were given away again while it was read.
func TestTree(t *testing.T) {
	dir := t.TempDir()
	for _, p := range []struct {
		pid, parent int
		state       string
	}{
		{1, 0, "S"}, {10, 1, "S"}, {11, 10, "S"}, {12, 11, "R"}, {13, 12, "Z"}, {14, 13, "S"}, // 10 is the helper, 13 has threads left
		{20, 1, "S"}, {21, 20, "S"}, // others
		{30, 31, "S"}, {31, 30, "S"}, // a circle
	} {
		if err := os.Mkdir(fmt.Sprintf("%s/%d", dir, p.pid), 0o700); err != nil {
			t.Fatal(err)
		}
		stat := fmt.Sprintf("%d (a) S 1 (b) %s %d 1 1\n", p.pid, p.state, p.parent)
		if err := os.WriteFile(fmt.Sprintf("%s/%d/stat", dir, p.pid), []byte(stat), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	proc, err := os.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer proc.Close()
	got := tree{proc: proc, root: 10}.pids()
	slices.Sort(got)
	if want := []string{"11", "12", "13", "14"}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}
