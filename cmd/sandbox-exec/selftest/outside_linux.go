package selftest

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/sandbox-exec/sandbox-exec/profiles"
	"github.com/sandbox-exec/sandbox-exec/sandbox"
	"golang.org/x/sys/unix"
)

const (
	runLimit  = time.Minute     // a run that takes longer is ended; emulated machines are slow
	vanishing = 2 * time.Second // for what is dying when sandbox-exec has ended
)

// Run tries every case and says how each ended. An error means that nothing
// could be tried.
func Run(ctx context.Context, o Options) (*Report, error) {
	// The kernel ends a victim when the thread that started it does, prctl(2)
	// PR_SET_PDEATHSIG.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()

	exe, err := os.Executable()
	if err != nil {
		return nil, &Error{Step: "find this program", Err: err}
	}
	t := &tester{Options: o, exe: exe}
	if t.base, err = os.MkdirTemp("/var/tmp", "sandbox-exec-selftest-*"); err != nil {
		return nil, &Error{Step: "make a throw-away directory", Err: err, Hint: "make /var/tmp writable"}
	}
	defer t.remove()
	if err := t.copyProgram(); err != nil {
		return nil, &Error{Step: "copy this program", Err: err, Hint: "/var/tmp has to have room for it"}
	}

	report := &Report{Version: 1, Kernel: kernel(), UID: os.Getuid(), Profile: o.Profile.Name}
	for _, r := range rows {
		if ctx.Err() != nil {
			return nil, &Error{Step: r.name, Err: context.Cause(ctx)}
		}
		c, err := t.try(r)
		if err == nil && t.held == nil && c.Outcome == NotRun {
			err = errors.New("no command runs: " + c.Why)
		}
		if err != nil {
			return nil, &Error{Step: r.name, Err: err, Hint: "sandbox-exec doctor says what this machine can enforce"}
		}
		if o.Told != nil {
			o.Told(c)
		}
		report.Cases = append(report.Cases, c)
	}
	report.Sandbox = *t.held
	return report, nil
}

func kernel() string {
	var name unix.Utsname
	if err := unix.Uname(&name); err != nil {
		return ""
	}
	return unix.ByteSliceToString(name.Release[:])
}

type tester struct {
	Options
	exe  string
	base string
	n    int
	held *sandbox.Report // of the first command that ran
	// bare leaves the sandbox away: everything must get through.
	bare bool
}

func (t *tester) copyProgram() error {
	data, err := os.ReadFile("/proc/self/exe")
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(t.base, Program), data, 0o755)
}

// remove takes away all that was made.
func (t *tester) remove() {
	filepath.WalkDir(t.base, func(path string, d fs.DirEntry, err error) error {
		if d != nil && d.IsDir() {
			os.Chmod(path, 0o700)
		}
		return nil
	})
	os.RemoveAll(t.base)
}

// try makes one case, in the sandbox and, where it was held, without one.
func (t *tester) try(r row) (Case, error) {
	c := Case{Name: r.name, What: r.what, Layer: r.layer}
	switch {
	case r.mode&writes != 0 && t.Profile.Workspace != sandbox.ReadWrite:
		c.Outcome, c.Why = NoProof, "the profile's workspace is read-only"
		return c, nil
	case r.mode&root != 0 && os.Geteuid() != 0:
		c.Outcome, c.Why = NoProof, "promised to root alone"
		return c, nil
	}
	in, err := t.run(r, !t.bare)
	if err != nil {
		return c, err
	}
	why := ""
	if t.held != nil {
		why = r.unpromised(t.held, t.Profile)
	}
	switch {
	case !in.tried:
		c.Outcome, c.Why = NotRun, cmp.Or(in.last, in.refusal)
	case r.mode&work != 0:
		c.Outcome, c.Why = Works, ""
		if !in.through {
			c.Outcome, c.Why = Broken, in.refusal
		}
		if c.Outcome == Broken && why != "" {
			c.Outcome, c.Why = Weaker, why
		}
	case in.got != nil:
		c.Outcome, c.Why = GotThrough, strings.Join(in.got, "; ")
		if why != "" {
			c.Outcome, c.Why = Weaker, why+": "+c.Why
		}
	case r.mode&within != 0:
		c.Outcome = Held
	default:
		out, err := t.run(r, false)
		if err != nil {
			return c, err
		}
		c.Outcome = Held
		if out.got == nil {
			c.Outcome, c.Why = NoProof, "nor does it without a sandbox: "+cmp.Or(out.refusal, "nothing shows")
		}
	}
	return c, nil
}

// unpromised says why a case may get through on this machine, "" if it must not.
func (r row) unpromised(held *sandbox.Report, p *profiles.Profile) string {
	missing, abi := map[string]bool{}, 0
	for _, layer := range held.Layers {
		missing[layer.Name] = layer.State == sandbox.Missing
		if layer.Name == sandbox.LayerLandlock {
			fmt.Sscanf(layer.Detail, "ABI %d", &abi)
		}
	}
	switch {
	case r.mode&network != 0 && p.Network != sandbox.NetworkOff:
		return "the profile leaves the network on"
	case r.layer == namespaces && missing[namespaces] && abi == 0:
		return "neither namespaces nor Landlock here"
	case r.layer == namespaces && missing[namespaces] && r.alone >= never:
		return "no namespaces here"
	case r.layer == namespaces && missing[namespaces] && abi < r.alone:
		return fmt.Sprintf("no namespaces here, and Landlock below ABI %d", r.alone)
	case r.layer == landlock && abi == 0:
		return "no Landlock here"
	}
	return ""
}

// seen is what a run showed.
type seen struct {
	tried   bool
	through bool     // by its own word
	refusal string   // its own
	last    string   // line of output
	got     []string // what got out
}

// run makes a world, lets the attempt loose on it and looks.
func (t *tester) run(r row, confined bool) (seen, error) {
	t.n++
	w, err := newWorld(t, confined, r.mode&victim != 0)
	if err != nil {
		return seen{}, err
	}
	defer w.end()

	program := filepath.Join(w.WS, Program)
	argv := []string{program, r.name, w.nonce}
	path := program
	reportFile := filepath.Join(t.base, "report.json")
	if confined {
		path = t.exe
		// What the judge would ask about is answered with yes, which opens nothing.
		argv = slices.Concat([]string{"sandbox-exec", "--mode", "allow", "--ask", "allow"}, t.Flags, r.flags,
			[]string{"--report", reportFile, "--"}, argv)
	} else {
		argv[0] = Program
	}
	out, err := os.Create(filepath.Join(w.dir, "out"))
	if err != nil {
		return seen{}, err
	}
	defer out.Close()
	cmd := &exec.Cmd{Path: path, Args: argv, Dir: w.WS, Env: w.environ(), Stdout: out, Stderr: out, ExtraFiles: w.careless}
	var side *os.File
	if r.mode&terminal != 0 {
		var main *os.File
		if main, side, err = openPty(); err != nil {
			return seen{}, err
		}
		defer main.Close()
		defer side.Close()
		cmd.Stdin = side
		cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true, Ctty: 0}
	}
	if err := cmd.Start(); err != nil {
		return seen{}, err
	}
	over := make(chan struct{})
	timer := time.AfterFunc(runLimit, func() { cmd.Process.Kill() })
	if r.mode&killed != 0 {
		go func() {
			defer close(over)
			for end := time.Now().Add(runLimit); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
				if text, err := os.ReadFile(out.Name()); err != nil || bytes.Contains(text, []byte(staying)) {
					break
				}
			}
			cmd.Process.Kill()
		}()
	} else {
		close(over)
	}
	waited := cmd.Wait()
	timedOut := !timer.Stop()
	<-over

	var s seen
	text, err := os.ReadFile(out.Name())
	if err != nil {
		return s, err
	}
	for _, line := range strings.Split(strings.TrimRight(string(text), "\n"), "\n") {
		if !strings.Contains(line, ": hint: ") {
			s.last = line
		}
		s.tried = s.tried || line == tried
		s.through = s.through || line == through
		if why, ok := strings.CutPrefix(line, refused); ok {
			s.refusal = why
		}
	}
	if timedOut {
		s.last = fmt.Sprintf("it took longer than %v", runLimit)
		s.refusal = s.last
	}
	if s.refusal == "" && waited != nil {
		s.refusal = waited.Error()
	}
	s.got = w.look(text)
	if r.mode&word != 0 && s.through {
		s.got = append(s.got, "the kernel let it")
	}
	if confined && t.held == nil && s.tried {
		if err := t.readReport(reportFile); err != nil {
			return s, err
		}
	}
	return s, nil
}

// readReport learns what the sandbox enforces from its own report.
func (t *tester) readReport(name string) error {
	data, err := os.ReadFile(name)
	if err != nil {
		return err
	}
	var report struct {
		Sandbox struct {
			Tier   string
			Layers []struct{ Name, State, Detail, Why, Lost, Fix string }
		}
	}
	if err := json.Unmarshal(data, &report); err != nil {
		return err
	}
	t.held = &sandbox.Report{Tier: report.Sandbox.Tier}
	for _, l := range report.Sandbox.Layers {
		layer := sandbox.Layer{Name: l.Name, Detail: l.Detail, Why: l.Why, Lost: l.Lost, Fix: l.Fix}
		for _, state := range []sandbox.State{sandbox.Missing, sandbox.Weaker, sandbox.Enforced} {
			if state.String() == l.State {
				layer.State = state
			}
		}
		t.held.Layers = append(t.held.Layers, layer)
	}
	return nil
}

// theWorld is what is attacked.
type theWorld struct {
	inside
	dir      string
	nonce    string // in the arguments of every process of the attempt
	tokens   map[string]string
	before   map[string]string
	spec     sandbox.Spec
	sockets  map[string]int
	fifo     int
	careless []*os.File
	victim   *exec.Cmd
	told     *os.File // what the victim tells
	priority int
}

// secrets are files of the home that hold a token each.
var secrets = [...]string{".ssh/id_ed25519", ".aws/credentials", ".netrc", ".config/sandbox-exec/config.toml"}

// plain are the other files of the world.
var plain = [...]struct{ name, text string }{
	{"diary", diary},
	{".bashrc", "# shell\n"},
	{".profile", "# login\n"},
	{"other/file", "text\n"},
	{"ws/own", "text\n"},
	{"ws/.git/HEAD", "ref: refs/heads/main\n"},
	{"ws/.git/config", "[core]\n\tbare = false\n"},
	{"ws/.git/hooks/sample", "#!/bin/sh\n"},
	{"ws/.git/objects/info/x", ""},
	{"ws/.git/refs/heads/x", ""},
}

func newWorld(t *tester, confined, attacked bool) (_ *theWorld, err error) {
	random := make([]byte, 12)
	if _, err := rand.Read(random); err != nil {
		return nil, err
	}
	w := &theWorld{
		dir: filepath.Join(t.base, strconv.Itoa(t.n)), nonce: hex.EncodeToString(random),
		tokens: map[string]string{}, sockets: map[string]int{}, fifo: -1,
	}
	w.Home, w.WS, w.Confined, w.Shm = filepath.Join(w.dir, "home"), filepath.Join(w.dir, "home/ws"), confined, -1
	defer func() {
		if err != nil {
			w.end()
		}
	}()
	for _, name := range secrets {
		text := w.token("~/"+name) + "\n"
		if strings.HasSuffix(name, ".toml") {
			text = "# " + text
		}
		if err := write(filepath.Join(w.Home, name), text, 0o600); err != nil {
			return nil, err
		}
	}
	for _, file := range plain {
		if err := write(filepath.Join(w.Home, file.name), file.text, 0o644); err != nil {
			return nil, err
		}
	}
	for to, from := range map[string]string{"planted-link": ".aws/credentials", "planted-profile": ".profile"} {
		if err := os.Symlink(filepath.Join(w.Home, from), filepath.Join(w.WS, to)); err != nil {
			return nil, err
		}
	}
	if err := os.Link(filepath.Join(t.base, Program), filepath.Join(w.WS, Program)); err != nil {
		return nil, err
	}
	for _, make := range []func() error{w.makeServers, w.makeFIFO, w.makeShm, w.makeHandle, w.makeCareless} {
		if err := make(); err != nil {
			return nil, err
		}
	}
	if attacked {
		if err := w.makeVictim(); err != nil {
			return nil, err
		}
	}
	w.spec, err = t.Profile.Spec(profiles.Place{
		OS: runtime.GOOS, UID: os.Getuid(), Home: w.Home, Cwd: w.WS, Workspace: w.WS, Environ: w.environ(),
		ConfigDir: w.Home + "/.config/sandbox-exec", StateDir: w.Home + "/.local/state/sandbox-exec",
		TmpDir: w.Home + "/.local/state/sandbox-exec/tmp", CacheDir: w.Home + "/.cache/sandbox-exec",
	})
	if err != nil {
		return nil, err
	}
	data, err := json.Marshal(w.inside)
	if err != nil {
		return nil, err
	}
	if err := os.WriteFile(filepath.Join(w.WS, world), data, 0o644); err != nil {
		return nil, err
	}
	w.before = w.snapshot()
	return w, nil
}

// token makes one that only what is named holds. The point ends it, so that
// none begins another.
func (w *theWorld) token(where string) string {
	w.tokens[where] = fmt.Sprintf("token-%s-%d.", w.nonce, len(w.tokens))
	return w.tokens[where]
}

func write(name, text string, mode fs.FileMode) error {
	if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
		return err
	}
	return os.WriteFile(name, []byte(text), mode)
}

// environ is the caller's environment with the throw-away home and a secret.
func (w *theWorld) environ() []string {
	const secret = "SANDBOX_EXEC_SELFTEST_SECRET"
	if w.tokens[secret] == "" {
		w.token(secret)
	}
	ours := map[string]string{
		"HOME": w.Home, "SSH_AUTH_SOCK": w.Agent, secret: w.tokens[secret],
		"XDG_CONFIG_HOME": "", "XDG_STATE_HOME": "", "XDG_CACHE_HOME": "", "XDG_DATA_HOME": "", "TMPDIR": "",
	}
	var env []string
	for _, v := range os.Environ() {
		name, _, _ := strings.Cut(v, "=")
		if _, replaced := ours[name]; !replaced {
			env = append(env, v)
		}
	}
	for name, value := range ours {
		if value != "" {
			env = append(env, name+"="+value)
		}
	}
	return env
}

// listen binds a socket and returns the port of one that has a port. Nobody has
// to accept: the kernel completes a connection by itself.
func listen(fd int, address unix.Sockaddr) (int, error) {
	if err := unix.Bind(fd, address); err != nil {
		return 0, err
	}
	if kind, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_TYPE); err == nil && kind == unix.SOCK_STREAM {
		if err := unix.Listen(fd, 8); err != nil {
			return 0, err
		}
	}
	name, err := unix.Getsockname(fd)
	switch a := name.(type) {
	case *unix.SockaddrInet4:
		return a.Port, err
	case *unix.SockaddrInet6:
		return a.Port, err
	}
	return 0, err
}

func (w *theWorld) makeServers() error {
	w.Agent, w.Socket, w.Abstract = w.Home+"/agent.sock", w.Home+"/other/program.sock", "sandbox-exec-selftest-"+w.nonce
	local := [4]byte{127, 0, 0, 1}
	for _, s := range []struct {
		name         string
		family, kind int
		address      unix.Sockaddr
		port         *int
		mayBeMissing bool
	}{
		{"the TCP server", unix.AF_INET, unix.SOCK_STREAM, &unix.SockaddrInet4{Addr: local}, &w.TCP, false},
		{"the TCP server at ::1", unix.AF_INET6, unix.SOCK_STREAM, &unix.SockaddrInet6{Addr: [16]byte{15: 1}}, &w.TCP6, true},
		{"the UDP server", unix.AF_INET, unix.SOCK_DGRAM, &unix.SockaddrInet4{Addr: local}, &w.UDP, false},
		{"the agent's socket", unix.AF_UNIX, unix.SOCK_STREAM, &unix.SockaddrUnix{Name: w.Agent}, new(int), false},
		{"the socket in the home", unix.AF_UNIX, unix.SOCK_STREAM, &unix.SockaddrUnix{Name: w.Socket}, new(int), false},
		{"the abstract socket", unix.AF_UNIX, unix.SOCK_STREAM, &unix.SockaddrUnix{Name: "@" + w.Abstract}, new(int), false},
	} {
		fd, err := unix.Socket(s.family, s.kind|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
		if err == nil {
			w.sockets[s.name] = fd
			*s.port, err = listen(fd, s.address)
		}
		if err != nil && !s.mayBeMissing {
			return fmt.Errorf("%s: %w", s.name, err)
		}
	}
	return nil
}

func (w *theWorld) makeFIFO() (err error) {
	name := w.Home + "/fifo"
	if err := unix.Mkfifo(name, 0o600); err != nil {
		return err
	}
	w.fifo, err = unix.Open(name, unix.O_RDONLY|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	return err
}

// makeShm makes a segment of System V shared memory, where the kernel has them.
func (w *theWorld) makeShm() error {
	id, err := unix.SysvShmGet(unix.IPC_PRIVATE, 4096, unix.IPC_CREAT|0o600)
	if err != nil {
		return nil
	}
	w.Shm = id
	memory, err := unix.SysvShmAttach(id, 0, 0)
	if err != nil {
		return err
	}
	w.TokenLength = copy(memory, w.token("the shared memory"))
	return unix.SysvShmDetach(memory)
}

// makeHandle finds the file handle of a secret, where the file system has them.
func (w *theWorld) makeHandle() error {
	handle, _, err := unix.NameToHandleAt(unix.AT_FDCWD, w.Home+"/.netrc", 0)
	if err == nil {
		w.Handle, w.HandleType = handle.Bytes(), handle.Type()
	}
	return nil
}

// makeCareless opens what a careless caller leaves open.
func (w *theWorld) makeCareless() error {
	name := filepath.Join(w.dir, "careless")
	if err := os.WriteFile(name, []byte(w.token("an open descriptor")), 0o600); err != nil {
		return err
	}
	for _, open := range []struct {
		name string
		fd   *int
	}{{w.Home, &w.Directory}, {name, &w.File}} {
		f, err := os.Open(open.name)
		if err != nil {
			return err
		}
		w.careless = append(w.careless, f)
		*open.fd = 2 + len(w.careless) // exec.Cmd.ExtraFiles
	}
	return os.Remove(name)
}

func (w *theWorld) makeVictim() (err error) {
	if w.told, err = os.Create(filepath.Join(w.dir, "victim")); err != nil {
		return err
	}
	token := w.token("a process outside")
	w.victim = &exec.Cmd{
		Path: filepath.Join(w.WS, Program), Args: []string{Program, "victim", token}, Env: []string{"TOKEN=" + token},
		Stdout: w.told, SysProcAttr: &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true},
	}
	if err := w.victim.Start(); err != nil {
		return err
	}
	w.Victim = w.victim.Process.Pid
	for end := time.Now().Add(runLimit); ; time.Sleep(time.Millisecond) {
		if _, err := fmt.Sscanf(w.victimTold(), "ready %d\n", &w.VictimAddress); err == nil {
			break
		}
		if time.Now().After(end) {
			return errors.New("the process that is to be attacked did not start")
		}
	}
	w.priority, err = unix.Getpriority(unix.PRIO_PROCESS, w.Victim)
	return err
}

func (w *theWorld) victimTold() string {
	text, _ := os.ReadFile(w.told.Name())
	return string(text)
}

// snapshot is the state of all that no command may change: the home, and the
// protected names of the workspace.
func (w *theWorld) snapshot() map[string]string {
	state := map[string]string{}
	filepath.WalkDir(w.Home, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			state[path] = err.Error()
			return nil
		}
		for _, own := range []string{"/.cache", "/.local"} { // of sandbox-exec itself
			if path == w.Home+own {
				return fs.SkipDir
			}
		}
		guarded := slices.ContainsFunc(w.spec.Protect, func(n sandbox.Name) bool {
			return n.Guard == sandbox.Block && sandbox.Covers(n.Path, path)
		})
		if !guarded && sandbox.AccessOf(w.spec.Files, path) == sandbox.ReadWrite {
			return nil
		}
		info, err := d.Info()
		if err != nil {
			state[path] = err.Error()
			return nil
		}
		state[path] = info.Mode().String()
		if info.Mode().IsRegular() {
			text, _ := os.ReadFile(path)
			state[path] += fmt.Sprint(info.ModTime(), string(text))
		}
		return nil
	})
	return state
}

// look finds what got out.
func (w *theWorld) look(output []byte) (got []string) {
	for where, token := range w.tokens {
		path, file := strings.CutPrefix(where, "~")
		if file && sandbox.AccessOf(w.spec.Files, w.Home+path) != sandbox.None {
			continue // the profile opens it
		}
		if bytes.Contains(output, []byte(token)) {
			got = append(got, "the secret of "+where+" came out")
		}
	}
	after := w.snapshot()
	for path, was := range w.before {
		if is, exists := after[path]; !exists {
			got = append(got, w.short(path)+" is gone")
		} else if is != was {
			got = append(got, w.short(path)+" changed")
		}
	}
	for path := range after {
		if _, old := w.before[path]; !old {
			got = append(got, w.short(path)+" appeared")
		}
	}
	for name, fd := range w.sockets {
		buf := make([]byte, 64)
		connection, _, err := unix.Accept4(fd, unix.SOCK_CLOEXEC)
		if err == nil {
			unix.Close(connection)
		} else {
			_, _, err = unix.Recvfrom(fd, buf, 0)
		}
		if err == nil {
			got = append(got, name+" was reached")
		}
	}
	if n, err := unix.Read(w.fifo, make([]byte, 64)); err == nil && n > 0 {
		got = append(got, "the FIFO was written to")
	}
	if w.victim != nil {
		got = append(got, w.victimSuffered()...)
	}
	if left := w.left(vanishing); left != nil {
		got = append(got, fmt.Sprintf("processes live on: %v", left))
	}
	slices.Sort(got)
	return got
}

// victimSuffered ends the victim and says what was done to it before.
func (w *theWorld) victimSuffered() (got []string) {
	if now, err := unix.Getpriority(unix.PRIO_PROCESS, w.Victim); err != nil || now != w.priority {
		got = append(got, "a process outside was changed")
	}
	w.victim.Process.Signal(syscall.SIGTERM)
	if err := w.victim.Wait(); err != nil {
		got = append(got, "a process outside was ended: "+err.Error())
	}
	if _, heard, found := strings.Cut(w.victimTold(), "signal: "); found {
		got = append(got, "a process outside was signalled: "+strings.TrimSpace(heard))
	}
	w.victim = nil
	return got
}

func (w *theWorld) short(path string) string { return "~" + strings.TrimPrefix(path, w.Home) }

// left returns the processes of the attempt that are still there after a while.
func (w *theWorld) left(wait time.Duration) []int {
	for end := time.Now().Add(wait); ; time.Sleep(10 * time.Millisecond) {
		var pids []int
		entries, _ := os.ReadDir("/proc")
		for _, e := range entries {
			pid, err := strconv.Atoi(e.Name())
			if err != nil || pid == os.Getpid() {
				continue
			}
			// A process that is dead and not waited for has no command line.
			line, err := os.ReadFile("/proc/" + e.Name() + "/cmdline")
			if err == nil && bytes.HasSuffix(line, []byte("\x00"+w.nonce+"\x00")) {
				pids = append(pids, pid)
			}
		}
		if pids == nil || time.Now().After(end) {
			return pids
		}
	}
}

// end ends and closes all that the world is made of.
func (w *theWorld) end() {
	for _, pid := range w.left(0) {
		unix.Kill(pid, unix.SIGKILL)
	}
	if w.victim != nil && w.victim.Process != nil {
		w.victim.Process.Kill()
		w.victim.Wait()
	}
	if w.told != nil {
		w.told.Close()
	}
	for _, fd := range w.sockets {
		unix.Close(fd)
	}
	if w.fifo >= 0 {
		unix.Close(w.fifo)
	}
	for _, f := range w.careless {
		f.Close()
	}
	if w.Shm >= 0 {
		unix.SysvShmCtl(w.Shm, unix.IPC_RMID, nil)
	}
}

// openPty opens both ends of a new pseudo terminal, pty(7).
func openPty() (main, side *os.File, err error) {
	fd, err := unix.Open("/dev/ptmx", unix.O_RDWR|unix.O_CLOEXEC|unix.O_NOCTTY, 0)
	if err != nil {
		return nil, nil, fmt.Errorf("open /dev/ptmx: %w", err)
	}
	main = os.NewFile(uintptr(fd), "/dev/ptmx")
	n, err := unix.IoctlGetInt(fd, unix.TIOCGPTN)
	if err == nil {
		err = unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0)
	}
	if err == nil {
		side, err = os.OpenFile(fmt.Sprint("/dev/pts/", n), os.O_RDWR|unix.O_NOCTTY, 0)
	}
	if err != nil {
		main.Close()
		return nil, nil, err
	}
	return main, side, nil
}
