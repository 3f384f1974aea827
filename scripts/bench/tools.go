//go:build linux

package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// tool is a sandbox, or none.
type tool struct {
	name    string
	argv    []string // before the command
	version string
	peer    bool
	// refused: it is measured where namespaces are refused.
	refused bool
}

// peers by their documented command lines: the workspace writable, the rest
// readable, ~/.ssh hidden where that can be said, no network.
func peers(ws, home, settings string) []tool {
	return []tool{
		{name: "bwrap", argv: []string{
			"bwrap", "--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc", "--bind", ws, ws, "--tmpfs", home + "/.ssh",
			"--unshare-user", "--unshare-pid", "--unshare-net", "--unshare-ipc", "--die-with-parent", "--new-session", "--",
		}},
		{name: "firejail", argv: []string{"firejail", "--quiet", "--net=none", "--private-tmp", "--read-only=" + home, "--read-write=" + ws, "--"}},
		{name: "landrun", argv: []string{
			"landrun", "--best-effort", "--rox", "/usr", "--rox", "/bin", "--rox", "/lib", "--rox", "/lib64", "--ro", "/etc", "--rw", "/dev", "--rwx", ws, "--",
		}},
		{name: "nsjail", argv: []string{
			"nsjail", "-Mo", "-Q", "--disable_clone_newuts", "--disable_clone_newcgroup", "-R", "/", "-B", ws, "-D", ws, "--",
		}},
		{name: "codex", argv: []string{"codex", "sandbox", "-P", ":workspace", "--"}},
		{name: "srt", argv: []string{"srt", "-s", settings}},
		{name: "fence", argv: []string{"fence", "--"}},
	}
}

// tools are all that are installed, the bare command first.
func tools(o *options, ws string) []tool {
	list := []tool{{name: "bare"}, {name: "sandbox-exec workspace", argv: []string{o.program, "-q", "--"}, version: version(o.program)}}
	for _, profile := range []string{"ci", "readonly"} {
		list = append(list, tool{name: "sandbox-exec " + profile, argv: []string{o.program, "-q", "--profile", profile, "--"}})
	}
	if len(o.refused) > 0 {
		list = append(list, tool{name: "bare, no namespaces", refused: true},
			tool{name: "sandbox-exec, no namespaces", argv: []string{o.program, "-q", "--"}, refused: true})
	}
	home, _ := os.UserHomeDir()
	os.MkdirAll(filepath.Join(home, ".ssh"), 0o700)
	settings := filepath.Join(o.dir, "srt.json")
	data, _ := json.Marshal(map[string]any{
		"network":    map[string]any{"allowedDomains": []string{}, "deniedDomains": []string{}},
		"filesystem": map[string]any{"denyRead": []string{"~/.ssh"}, "allowWrite": []string{"."}, "denyWrite": []string{}},
	})
	os.WriteFile(settings, data, 0o644)
	for _, p := range peers(ws, home, settings) {
		path, err := exec.LookPath(p.argv[0])
		if err != nil {
			continue
		}
		p.argv[0], p.peer, p.version = path, true, version(path)
		list = append(list, p)
	}
	return list
}

func version(program string) string {
	out, _ := exec.Command(program, "--version").CombinedOutput()
	first, _, _ := strings.Cut(strings.TrimSpace(string(out)), "\n")
	words := strings.Fields(first)
	if len(words) == 0 {
		return "(unknown)"
	}
	return words[len(words)-1]
}

// spawn starts argv with nothing on its three descriptors and waits. The time is
// that from before the fork to after the wait, in milliseconds.
func spawn(dir string, argv []string) (float64, error) {
	null, err := os.OpenFile("/dev/null", os.O_RDWR, 0)
	if err != nil {
		return 0, err
	}
	defer null.Close()
	begin := time.Now()
	p, err := os.StartProcess(argv[0], argv, &os.ProcAttr{Dir: dir, Files: []*os.File{null, null, null}})
	if err != nil {
		return 0, err
	}
	state, err := p.Wait()
	spent := time.Since(begin)
	if err != nil {
		return 0, err
	}
	if !state.Success() {
		out, _ := (&exec.Cmd{Path: argv[0], Args: argv, Dir: dir}).CombinedOutput()
		return 0, fmt.Errorf("%v: %s", state, lastLine(out))
	}
	return float64(spent) / float64(time.Millisecond), nil
}

func lastLine(out []byte) string {
	out = bytes.TrimSpace(out)
	return string(out[bytes.LastIndexByte(out, '\n')+1:])
}

// command puts a command behind a tool.
func (t tool) command(argv ...string) []string {
	return append(t.argv[:len(t.argv):len(t.argv)], argv...)
}

// worker is a process of this program that does as it is asked, line by line. It
// lives where the rows that it measures are to start.
type worker struct {
	cmd *exec.Cmd
	in  *json.Encoder
	out *json.Decoder
}

type reply struct {
	Value float64
	Err   string
}

func startWorker(argv ...string) (*worker, error) {
	w := &worker{cmd: exec.Command(argv[0], argv[1:]...)}
	w.cmd.Stderr = os.Stderr
	w.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	in, err := w.cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := w.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	w.in, w.out = json.NewEncoder(in), json.NewDecoder(out)
	if err := w.cmd.Start(); err != nil {
		return nil, err
	}
	return w, nil
}

func (w *worker) ask(request any) (float64, error) {
	var r reply
	if err := w.in.Encode(request); err != nil {
		return 0, err
	}
	if err := w.out.Decode(&r); err != nil {
		return 0, fmt.Errorf("the worker is gone: %w", err)
	}
	if r.Err != "" {
		return 0, fmt.Errorf("%s", r.Err)
	}
	return r.Value, nil
}

func (w *worker) stop() {
	w.cmd.Process.Kill()
	w.cmd.Wait()
}
