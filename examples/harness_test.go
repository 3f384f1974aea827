package examples

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// TestHarnesses gives the harnesses in other languages the commands of a model,
// without a terminal.
func TestHarnesses(t *testing.T) {
	t.Setenv("TMPDIR", "/var/tmp")
	bin := t.TempDir()
	if out, err := exec.Command("go", "build", "-o", bin+"/", "../cmd/sandbox-exec").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	const commands = `mkdir -p sub && cd sub && echo hello >greeting
cat greeting; pwd | sed 's:.*/ws/:ws/:'
cat nothing; exit 3
touch /etc/harness
rm -rf sub ~
rm -rf ../sub
printf '\377\000'
seq 3000
for i in 1 2 3; do printf "\r$i%%"; done; echo
if
`
	for _, tt := range []struct{ interpreter, harness string }{
		{"python3", "python/harness.py"},
		{"node", "node/harness.mjs"},
	} {
		t.Run(tt.interpreter, func(t *testing.T) {
			interpreter, err := exec.LookPath(tt.interpreter)
			if err != nil {
				t.Skip(err)
			}
			harness, err := filepath.Abs(tt.harness)
			if err != nil {
				t.Fatal(err)
			}
			home := t.TempDir()
			workspace := filepath.Join(home, "ws")
			if err := os.Mkdir(workspace, 0o755); err != nil {
				t.Fatal(err)
			}
			cmd := exec.Command(interpreter, harness, workspace)
			cmd.Dir = home
			cmd.Env = append(os.Environ(), "HOME="+home, "PATH="+bin+":"+os.Getenv("PATH"))
			cmd.Stdin = strings.NewReader(commands)
			cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true} // no terminal
			out, err := cmd.CombinedOutput()
			if err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			told := string(out)
			for _, want := range []string{
				"$ mkdir -p sub && cd sub && echo hello >greeting\n[no output]\n$",
				"ws/:'\nhello\nws/sub\n$",
				"cat: nothing: No such file or directory\n[exit status 3]\n$",
				"$ touch /etc/harness\n[not run] the user did not permit it\n$",
				"$ rm -rf sub ~\n[not run] denied: ",
				"$ rm -rf ../sub\n[not run] the user did not permit it\n$",
				"[binary output, 2 bytes; not shown]\n$",
				"$ seq 3000\n[only the end of the output is shown; all 3000 lines",
				"\n1001\n1002\n",
				"echo\n3%\n$",
				"$ if\n[not run] the user did not permit it\n",
			} {
				if !strings.Contains(told, want) {
					t.Errorf("told\n%s\nwithout %q", told, want)
				}
			}
			if _, err := os.Stat(filepath.Join(workspace, "sub/greeting")); err != nil {
				t.Error(err)
			}
		})
	}
}
