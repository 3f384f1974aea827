package examples

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestExamples builds the examples with a plain go build, as whoever copies
// one does, and looks at what they print.
func TestExamples(t *testing.T) {
	// Not below /tmp, which is another one for a command and where the policy
	// asks less.
	t.Setenv("TMPDIR", "/var/tmp")
	bin := t.TempDir()
	build := exec.Command("go", "build", "-o", bin+"/", "./embed", "./approve")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	home := t.TempDir()
	for _, tt := range []struct {
		args  []string
		stdin string
		want  []string
	}{
		{[]string{"embed"}, "", []string{
			"$ echo hello > greeting && cat greeting\nhello\nexit status 0\n",
			"it cannot write there\nexit status 0\n",
			"$ rm -rf ~\ndenied: ",
			"$ sleep 600\nended: timeout\n",
		}},
		{[]string{"approve", "echo hello"}, "", []string{`{"stdout":"hello\n","cause":"exited","exit":0}`}},
		{[]string{"approve", "rm -rf src"}, "n\n", []string{"rm -rf src", "[y/N]", `"exit":-1,"error":"needs approval`, "the user said no"}},
		{[]string{"approve", "rm -rf src"}, "y\n", []string{`{"cause":"exited","exit":0}`}},
	} {
		cmd := exec.Command(filepath.Join(bin, tt.args[0]), tt.args[1:]...)
		cmd.Dir = t.TempDir()
		cmd.Env = append(os.Environ(), "HOME="+home)
		cmd.Stdin = strings.NewReader(tt.stdin)
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Errorf("%q: %v\n%s", tt.args, err, out)
		}
		for _, want := range tt.want {
			if !strings.Contains(string(out), want) {
				t.Errorf("%q printed\n%s\nwithout %q", tt.args, out, want)
			}
		}
	}
}
