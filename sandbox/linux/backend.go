//go:build linux

package linux

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
	"unsafe"

	ll "github.com/landlock-lsm/go-landlock/landlock/syscall"
	"github.com/sandbox-exec/sandbox-exec/sandbox"
	"github.com/sandbox-exec/sandbox-exec/sandbox/internal/rundir"
	"github.com/sandbox-exec/sandbox-exec/sandbox/linux/internal/helper"
	"github.com/sandbox-exec/sandbox-exec/sandbox/relay"
	"golang.org/x/sys/unix"
)

// Backend confines processes on this machine. The zero value is ready.
type Backend struct{}

// New returns the backend.
func New() *Backend { return &Backend{} }

var _ sandbox.Backend = (*Backend)(nil)

// Start implements [sandbox.Backend].
func (*Backend) Start(ctx context.Context, cmd *exec.Cmd, spec sandbox.Spec) (sandbox.Process, error) {
	if err := validate(cmd, spec); err != nil {
		return nil, err
	}
	tiers := []tier{userNamespace, hostProc, landlockAlone}
	if isAdmin() {
		tiers = []tier{userNamespace, rootNamespace, hostProc, landlockAlone}
	}
	var no *noNamespaces
	for _, t := range tiers {
		// Nothing but Landlock keeps a program out of the processes that it sees.
		if t == hostProc && (no.step != mountProc || landlockABI() == 0) {
			continue
		}
		if t == landlockAlone && (!spec.MayMiss(sandbox.LayerNamespaces) || ownNetwork(spec)) {
			break
		}
		p, err := start(ctx, cmd, spec, t, no)
		if err == nil {
			return p, nil
		}
		if !errors.As(err, &no) {
			return nil, err
		}
	}
	err := &sandbox.UnsupportedError{
		Layer: sandbox.LayerNamespaces,
		Want:  "user, mount, pid, ipc and net namespaces", Have: no.Error(), Hint: no.hint(),
	}
	if ownNetwork(spec) {
		err.Want = "a network namespace, for the network " + spec.Network.String()
	}
	return nil, err
}

// ownNetwork says whether the program needs a network that only a namespace
// gives it.
func ownNetwork(spec sandbox.Spec) bool {
	return spec.Network == sandbox.NetworkLocalhost || spec.Network == sandbox.NetworkAllow
}

// Setup implements [sandbox.Backend].
func (*Backend) Setup(cmd *exec.Cmd, spec sandbox.Spec) (string, error) {
	if err := validate(cmd, spec); err != nil {
		return "", err
	}
	id, err := identify()
	if err != nil {
		return "", err
	}
	// The cgroup is made, and removed again, to see which kind it is. Whether
	// namespaces are to be had only a start can tell.
	p := &process{limits: spec.Limits}
	group, err := p.join(spec)
	if err != nil {
		return "", errors.Join(err, p.clean())
	}
	defer group.close()
	s, h, err := surveyAndCompile(cmd, spec, id, userNamespace, targetOf(cmd), group)
	defer h.close()
	if err == nil {
		err = report(h, spec, p.cgroup, group.lacking, nil).Check(spec)
	}
	if err := errors.Join(err, p.clean()); err != nil {
		return "", err
	}
	return "where namespaces are to be had:\n" + s.String(), nil
}

func validate(cmd *exec.Cmd, spec sandbox.Spec) error {
	if len(spec.Hosts.Addresses) > maxAddresses || handed(spec.Hosts) > maxHanded {
		return &sandbox.SpecError{
			Field: "hosts", Value: fmt.Sprintf("%d ports, %d addresses", len(spec.Hosts.Ports), len(spec.Hosts.Addresses)),
			Err: errors.New("more than can be served"), Hint: "allow fewer ports and addresses",
		}
	}
	return sandbox.CheckCommand(cmd, spec)
}

// noNamespaces says that this machine has no namespaces for us: one of a
// closed list of steps gave one of a closed list of errors.
type noNamespaces struct {
	step string
	err  error
}

func (e *noNamespaces) Error() string { return fmt.Sprintf("%s: %v", e.step, e.err) }
func (e *noNamespaces) Unwrap() error { return e.err }

func (e *noNamespaces) hint() string {
	switch {
	case errors.Is(e.err, unix.ENOSPC):
		return "set user.max_user_namespaces above 0"
	case os.Geteuid() == 0 && !isAdmin():
		return "run as an ordinary user, or with CAP_SYS_ADMIN"
	}
	if b, err := os.ReadFile("/proc/sys/kernel/apparmor_restrict_unprivileged_userns"); err == nil && string(b) == "1\n" {
		return "AppArmor restricts user namespaces here: install packaging/apparmor/sandbox-exec, which permits them to this program alone, as /etc/apparmor.d/sandbox-exec, and run: apparmor_parser -r /etc/apparmor.d/sandbox-exec"
	}
	return "permit user namespaces (user.max_user_namespaces; in a container, its seccomp profile), or allow the layer to be missing"
}

func targetOf(cmd *exec.Cmd) target {
	keep := make([]bool, len(cmd.ExtraFiles))
	for i, f := range cmd.ExtraFiles {
		keep[i] = f != nil
	}
	return target{
		path: cmd.Path, argv: cmd.Args, env: cmd.Env, dir: cmd.Dir, keep: keep,
		session: cmd.SysProcAttr != nil && cmd.SysProcAttr.Setsid,
	}
}

// prepare surveys the host and adds what depends on the command.
func prepare(cmd *exec.Cmd, spec sandbox.Spec, id identity, t tier) (_ *host, err error) {
	h, err := survey(spec, id, t)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			h.close()
		}
	}()
	if h.abi == 0 && !t.mounts() {
		return nil, &sandbox.UnsupportedError{
			Layer: sandbox.LayerLandlock, Want: "Landlock or namespaces",
			Have: "neither", Hint: "a kernel from 5.13 on with landlock in lsm=, or permission to make user namespaces",
		}
	}
	if !h.unixSockets(spec) && len(spec.Sockets) > 0 {
		want, hint := "namespaces or Landlock ABI 9", "leave the socket out, or use a machine that permits user namespaces"
		if t.mounts() {
			want, hint = "the network off, or Landlock ABI 6", "leave out --net host or the socket"
		}
		return nil, &sandbox.UnsupportedError{
			Layer: sandbox.LayerLandlock, Want: want + ", to let the command reach " + spec.Sockets[0] + " and no socket of others",
			Have: fmt.Sprintf("Landlock ABI %d", h.abi), Hint: hint,
		}
	}
	if h.filter, err = seccompFilter(!t.mounts(), h.unixSockets(spec), spec.Network == sandbox.NetworkOff, id.uid == 0); err != nil {
		return nil, &sandbox.UnsupportedError{Layer: sandbox.LayerSeccomp, Want: "a filter for " + runtime.GOARCH, Have: err.Error()}
	}
	h.rlimits = rlimits(spec.Limits)
	h.stdio = reopenable(cmd)
	if !t.mounts() {
		h.canaryDir = "/tmp"
		rules, err := effective(spec, h)
		if err != nil {
			return nil, err
		}
		if sandbox.AccessOf(rules, h.canaryDir) == sandbox.ReadWrite {
			h.canaryDir = "/var/tmp"
		}
		h.grants = landlockGrants(spec, h, rules, os.ReadDir)
	}
	return h, nil
}

// reopenable grants the program to open its own stdin, stdout and stderr again
// by name (/dev/stdout), with the access that they have.
func reopenable(cmd *exec.Cmd) []grant {
	var out []grant
	for i, stream := range []any{cmd.Stdin, cmd.Stdout, cmd.Stderr} {
		f, ok := stream.(*os.File)
		if !ok || f == nil {
			continue
		}
		fd := int(f.Fd())
		var st unix.Stat_t
		flags, err := unix.FcntlInt(uintptr(fd), unix.F_GETFL, 0)
		if err != nil || unix.Fstat(fd, &st) != nil {
			continue
		}
		var rights uint64
		mode := flags & unix.O_ACCMODE
		if mode != unix.O_WRONLY {
			rights |= ll.AccessFSReadFile
		}
		if mode != unix.O_RDONLY {
			rights |= ll.AccessFSWriteFile | ll.AccessFSTruncate
		}
		switch st.Mode & unix.S_IFMT {
		case unix.S_IFCHR:
			rights |= ll.AccessFSIoctlDev
		case unix.S_IFREG:
		default:
			continue
		}
		out = append(out, grant{path: fmt.Sprintf("descriptor %d", i), fd: 1 + i, rights: rights})
	}
	return out
}

// process is a helper and the tree below it.
type process struct {
	pid      int  // of the helper
	alone    bool // the helper has no PID namespace, in which it could signal all
	sock     *os.File
	shown    []*os.File // by the helper: file systems that hold the program's memory
	tree     tree
	over     atomic.Uint32 // which limit the watch ended it for
	watching sync.WaitGroup
	ended    chan struct{} // closed when the helper has told that the program ended, or is gone
	cgroup   *cgroup       // nil = none
	report   sandbox.Report
	tmp      *os.File // directory that is removed at the end; nil = none
	start    time.Time
	limits   sandbox.Limits

	stopped chan syscall.Signal
	sockets []*os.File // of the program's network, until relay has them
	relay   *relay.Relay

	mu     sync.Mutex
	done   bool // the helper has told that the program ended, or is gone
	reaped bool // pid may be another process by now
}

// makeCgroup is replaced by tests of machines without cgroups.
var makeCgroup = newCgroup

// start tries one tier.
func start(ctx context.Context, cmd *exec.Cmd, spec sandbox.Spec, tier tier, why *noNamespaces) (_ *process, err error) {
	p := &process{alone: !tier.mounts(), limits: spec.Limits, start: time.Now(), stopped: make(chan syscall.Signal, 1), ended: make(chan struct{})}
	defer func() {
		if err != nil {
			p.clean()
		}
	}()
	t := targetOf(cmd)
	if !tier.mounts() {
		// No mount can give the program a /tmp of its own.
		if spec.Tmp == "" {
			if p.tmp, err = rundir.Make("", tmpPrefix); err != nil {
				return nil, &sandbox.SetupError{Layer: sandbox.LayerLandlock, Step: "make a private temporary directory", Err: err}
			}
			spec.Tmp = p.tmp.Name()
		}
		t.env = retarget(t.env, "/tmp", spec.Tmp)
	}
	id, err := identify()
	if err != nil {
		return nil, err
	}
	group, err := p.join(spec)
	if err != nil {
		return nil, err
	}
	defer group.close()
	block, err := memoryFile()
	if err != nil {
		return nil, &sandbox.SetupError{Layer: sandbox.LayerNamespaces, Step: "make the helper's block", Err: err}
	}
	defer block.Close()

	// The helper clones itself into its namespaces while the host is surveyed.
	first, err := p.launch(cmd, tier, spec.Network, block, group.files)
	if err != nil {
		return nil, err
	}
	s, h, err := surveyAndCompile(cmd, spec, id, tier, t, group)
	defer h.close() // while the program runs
	if err := p.cloned(first, id, tier); err != nil {
		return nil, err
	}
	if err == nil {
		p.report = report(h, spec, p.cgroup, group.lacking, why)
		err = p.report.Check(spec)
	}
	if err == nil {
		err = ctx.Err()
	}
	if err == nil {
		err = p.run(ctx, s, block)
	}
	if err == nil && spec.Network == sandbox.NetworkAllow {
		if p.relay, err = startRelay(spec.Hosts, p.sockets); err != nil {
			err = &sandbox.SetupError{Layer: sandbox.LayerNamespaces, Step: "serve the program's network", Err: err}
		}
		p.sockets = nil
	}
	if err != nil {
		p.killHelper()
		p.reap()
		return nil, err
	}
	if s.watch.any() {
		p.watching.Go(func() { p.watch(s.watch) })
	}
	return p, nil
}

func surveyAndCompile(cmd *exec.Cmd, spec sandbox.Spec, id identity, tier tier, t target, group membership) (*setup, *host, error) {
	h, err := prepare(cmd, spec, id, tier)
	if err != nil {
		return nil, nil, err
	}
	h.cgroupTasks, h.cgroupInto, h.lacks = group.tasks, group.into, group.lacks
	if contains(h.lacks, "pids") && tier.user() && !id.admin {
		h.rlimits = append(h.rlimits, processRlimit(spec.Limits)...)
	}
	s, err := compile(spec, h, t)
	return s, h, err
}

// run hands the block over and returns when the program runs.
func (p *process) run(ctx context.Context, s *setup, block *os.File) error {
	if _, err := block.Write(s.encode()); err != nil {
		return &sandbox.SetupError{Layer: sandbox.LayerNamespaces, Step: "write the helper's block", Err: err}
	}
	stop := context.AfterFunc(ctx, func() { p.killHelper() })
	p.tell(helper.Packet{Kind: helper.Start}) // a helper that is gone shows in what it does not answer
	err := p.await(s)
	if !stop() { // it is being killed, whatever it answered
		return ctx.Err()
	}
	return err
}

// membership is how the helper gets into the cgroup, if there is one.
type membership struct {
	files   []*os.File
	tasks   int
	into    bool
	lacking string   // why there is none
	lacks   []string // controllers that are not there: what they would cap is watched
}

func (m membership) close() {
	for _, f := range m.files {
		f.Close()
	}
}

// join makes the cgroup.
func (p *process) join(spec sandbox.Spec) (m membership, err error) {
	p.cgroup, err = makeCgroup(spec.Limits)
	if errors.Is(err, errNoCgroup) {
		p.cgroup = nil
		if !spec.MayMiss(sandbox.LayerCgroup) {
			return m, &sandbox.UnsupportedError{
				Layer: sandbox.LayerCgroup, Want: "a cgroup of our own", Have: err.Error(),
				Hint: "run below a delegated cgroup (systemd-run --user --scope -p Delegate=yes), or allow the layer to be missing",
			}
		}
		return membership{lacking: err.Error(), lacks: []string{"memory", "pids"}}, nil
	}
	if err != nil {
		p.cgroup = nil
		return m, err
	}
	tasks, into, err := p.cgroup.entrances()
	if err != nil {
		return m, err
	}
	m = membership{files: tasks, tasks: len(tasks), into: into != nil, lacks: p.cgroup.lacks}
	if m.into {
		m.files = append(m.files, into)
	}
	return m, nil
}

// tmpPrefix begins the names of temporary directories that go with a command.
const tmpPrefix = "sandbox-exec-tmp-"

// retarget points the temporary directories of an environment elsewhere.
func retarget(env []string, from, to string) []string {
	out := make([]string, len(env))
	for i, e := range env {
		if name, value, _ := strings.Cut(e, "="); value == from && strings.Contains(name, "TMP") || name == "TEMP" && value == from {
			e = name + "=" + to
		}
		out[i] = e
	}
	return out
}

func setupError(step string, err error) error {
	return &sandbox.SetupError{Layer: sandbox.LayerNamespaces, Step: step, Err: err}
}

// launch starts the helper, which leaves a clone of itself in the namespaces.
// Nothing of the policy is on its argv or in its environment; the block holds it.
func (p *process) launch(cmd *exec.Cmd, tier tier, network sandbox.Network, block *os.File, cgroupFiles []*os.File) (pid int, err error) {
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return 0, setupError("make a socket for the helper", err)
	}
	// Ours waits in the poller: a command that runs costs no thread.
	if err := unix.SetNonblock(pair[0], true); err != nil {
		unix.Close(pair[0])
		unix.Close(pair[1])
		return 0, setupError("make a socket for the helper", err)
	}
	p.sock = os.NewFile(uintptr(pair[0]), "helper")
	theirs := os.NewFile(uintptr(pair[1]), "helper's end")
	defer theirs.Close()

	files := make([]*os.File, 3, 8)
	null, err := openFile(os.DevNull, os.O_RDWR)
	if err != nil {
		return 0, setupError("open "+os.DevNull, err)
	}
	defer null.Close()
	for i, stream := range []any{cmd.Stdin, cmd.Stdout, cmd.Stderr} {
		files[i] = null
		if f, ok := stream.(*os.File); ok && f != nil {
			files[i] = f
		} else if stream != nil {
			return 0, setupError(fmt.Sprintf("pass descriptor %d on", i), errors.New("not a file"))
		}
	}
	files = append(files, theirs, block)
	files = append(files, cmd.ExtraFiles...)
	files = append(files, cgroupFiles...)

	flags := uint32(0)
	if tier.mounts() {
		flags = unix.CLONE_NEWNS | unix.CLONE_NEWPID | unix.CLONE_NEWIPC
		if network != sandbox.NetworkHost {
			flags |= unix.CLONE_NEWNET
		}
	}
	if tier.user() {
		flags |= unix.CLONE_NEWUSER
	}
	if err := p.tell(helper.Packet{Kind: helper.Begin, A: flags, B: ignoredSignals()}); err != nil {
		return 0, setupError("write to the helper", err)
	}
	fds := make([]uintptr, len(files))
	for i, f := range files {
		fds[i] = ^uintptr(0) // closed
		if f != nil {
			fds[i] = f.Fd()
		}
	}
	// Package os would first probe the kernel for a feature that is not used. No
	// death signal: that is one of the thread that forks, which can end before
	// the program does. The end of the socket is that of the parent.
	pid, err = syscall.ForkExec("/proc/self/exe", []string{helper.Name}, &syscall.ProcAttr{
		// One processor is enough, and naming it spares a runtime a look at the
		// cgroup.
		Env: []string{"GOMAXPROCS=1"}, Files: fds, Sys: &syscall.SysProcAttr{},
	})
	runtime.KeepAlive(files)
	if err != nil {
		return 0, setupError("start the helper", err)
	}
	return pid, nil
}

// ignoredSignals has bit n-1 set for each signal n that we ignore.
func ignoredSignals() (set uint32) {
	for sig := syscall.Signal(1); sig <= 32; sig++ {
		if signal.Ignored(sig) {
			set |= 1 << (sig - 1)
		}
	}
	return set
}

// cloneTimeout is how long a helper has to clone itself, which takes it a
// millisecond. One that somebody killed in between leaves a clone that waits for
// us as we wait for it.
var cloneTimeout = 30 * time.Second

// cloned waits until the helper is in its namespaces, and gives it its ids.
func (p *process) cloned(first int, id identity, tier tier) error {
	p.sock.SetReadDeadline(time.Now().Add(cloneTimeout))
	pkt, err := p.receive()
	p.sock.SetReadDeadline(time.Time{})
	if err != nil {
		syscall.Kill(first, syscall.SIGKILL)
	}
	for {
		if _, err := syscall.Wait4(first, nil, 0, nil); err != syscall.EINTR {
			break
		}
	}
	switch {
	case err != nil:
		return helperDied
	case pkt.Kind == helper.Failed:
		errno := syscall.Errno(pkt.B)
		if tier.mounts() && namespacesRefused(errno) {
			return &noNamespaces{"make namespaces", errno}
		}
		return setupError("make namespaces", errno)
	}
	// Its number is ours to use only if it is our child, which it is not where
	// this process puts its children into another PID namespace.
	pid := int(pkt.A)
	if err := unix.Waitid(unix.P_PID, pid, nil, unix.WEXITED|unix.WNOHANG|unix.WNOWAIT, nil); err != nil {
		return setupError("find the helper", err)
	}
	p.pid = pid
	step := "map user and group ids"
	switch tier {
	case userNamespace:
		err = mapIDs(pid, id)
	case hostProc:
		if err = mapIDs(pid, id); err == nil {
			step, err = "open /proc", p.openTree(pid)
		}
	case landlockAlone:
		step, err = "open /proc", p.openTree(pid)
	}
	if err != nil {
		p.killHelper()
		p.reap()
		return setupError(step, err)
	}
	return nil
}

// openTree finds the tree in our own process file system, where it is among others.
func (p *process) openTree(root int) (err error) {
	p.tree.root = root
	p.tree.proc, err = os.Open("/proc")
	return err
}

// mapIDs gives a user namespace its ids (user_namespaces(7)).
func mapIDs(pid int, id identity) error {
	write := func(name, text string) error {
		fd, err := unix.Open(fmt.Sprintf("/proc/%d/%s", pid, name), unix.O_WRONLY|unix.O_CLOEXEC, 0)
		if err != nil {
			return err
		}
		defer unix.Close(fd)
		_, err = unix.Write(fd, []byte(text))
		return err
	}
	text := func(maps []syscall.SysProcIDMap) string {
		var b strings.Builder
		for _, m := range maps {
			fmt.Fprintf(&b, "%d %d %d\n", m.ContainerID, m.HostID, m.Size)
		}
		return b.String()
	}
	if !id.admin {
		// Else a group that takes rights away could be left.
		if err := write("setgroups", "deny"); err != nil {
			return err
		}
	}
	if err := write("uid_map", text(id.uidMap)); err != nil {
		return err
	}
	return write("gid_map", text(id.gidMap))
}

// namespacesRefused tells a machine that has no namespaces for us from one
// whose limits are exhausted for now, which must never lead to a weaker tier.
func namespacesRefused(errno syscall.Errno) bool {
	switch errno {
	case unix.EPERM, unix.EACCES, unix.ENOSYS, unix.EINVAL:
		return true
	case unix.ENOSPC:
		b, err := os.ReadFile("/proc/sys/user/max_user_namespaces")
		return err == nil && strings.TrimSpace(string(b)) == "0"
	}
	return false
}

var helperDied = &sandbox.SetupError{
	Layer: sandbox.LayerNamespaces, Step: "wait for the helper",
	Err: errors.New("it died before the program ran"), Hint: "look for an out-of-memory kill in the kernel's log",
}

// await returns when the program runs.
func (p *process) await(s *setup) error {
	pkt, err := p.receive()
	for err == nil && (pkt.Kind == helper.Shown || pkt.Kind == helper.Offered) {
		pkt, err = p.receive()
	}
	if err != nil {
		return helperDied
	}
	if pkt.Kind == helper.Running {
		return nil
	}
	errno := syscall.Errno(pkt.B)
	if pkt.A == helper.ForkFailed {
		hint := ""
		if errno == unix.EAGAIN {
			hint = "a limit on processes is too low"
		}
		return &sandbox.SetupError{Layer: layerExec, Step: "fork", Err: errno, Hint: hint}
	}
	st := s.at(int(pkt.A))
	for _, e := range st.absent {
		if e == errno {
			return &noNamespaces{st.what, errno}
		}
	}
	switch {
	case st.layer == layerExec:
		return &sandbox.ExecError{Path: strings.TrimPrefix(st.what, "execute "), Err: errno}
	case st.want != 0:
		return &sandbox.SetupError{
			Layer: st.layer, Step: st.what,
			Err: fmt.Errorf("it must fail with %q, got %q: the layer does not hold", st.want.Error(), errno.Error()),
		}
	}
	return &sandbox.SetupError{Layer: st.layer, Step: st.what, Err: errno}
}

// receive waits for a packet, and keeps the descriptors that come with it.
func (p *process) receive() (helper.Packet, error) {
	var pkt helper.Packet
	b := unsafe.Slice((*byte)(unsafe.Pointer(&pkt)), unsafe.Sizeof(pkt))
	var rights [4*maxHanded + 32]byte
	conn, err := p.sock.SyscallConn()
	if err != nil {
		return pkt, err
	}
	n, nrights := 0, 0
	var rerr error
	err = conn.Read(func(fd uintptr) bool {
		for {
			n, nrights, _, _, rerr = unix.Recvmsg(int(fd), b, rights[:], unix.MSG_CMSG_CLOEXEC)
			// A helper that ends without having read all that we told it makes
			// one read fail, before what it still said (unix(7)).
			if rerr != unix.EINTR && rerr != unix.ECONNRESET {
				return rerr != unix.EAGAIN
			}
		}
	})
	if err = errors.Join(err, rerr); err == nil && n != len(b) {
		err = errors.New("the helper is gone")
	}
	if nrights > 0 {
		msgs, _ := unix.ParseSocketControlMessage(rights[:nrights])
		for i := range msgs {
			fds, _ := unix.ParseUnixRights(&msgs[i])
			for _, fd := range fds {
				f := os.NewFile(uintptr(fd), "handed out by the helper")
				switch {
				case pkt.Kind == helper.Offered:
					p.sockets = append(p.sockets, f)
				case p.tree.proc == nil:
					p.tree.proc = f
				default:
					p.shown = append(p.shown, f)
				}
			}
		}
	}
	return pkt, err
}

// Signal implements [sandbox.Process].
func (p *process) Signal(sig syscall.Signal) error { return p.send(sig, 0) }

// SignalAll implements [sandbox.Process].
func (p *process) SignalAll(sig syscall.Signal) error { return p.send(sig, 1) }

func (p *process) send(sig syscall.Signal, all uint32) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.done {
		return os.ErrProcessDone
	}
	if all != 0 && p.alone {
		return p.tree.signal(sig)
	}
	return p.tell(helper.Packet{Kind: helper.Signal, A: uint32(sig), B: all})
}

func (p *process) tell(pkt helper.Packet) error {
	b := unsafe.Slice((*byte)(unsafe.Pointer(&pkt)), unsafe.Sizeof(pkt))
	// A helper that somebody stopped does not read.
	p.sock.SetWriteDeadline(time.Now().Add(time.Second))
	_, err := p.sock.Write(b)
	return err
}

// Stopped implements [sandbox.Process].
func (p *process) Stopped() <-chan syscall.Signal { return p.stopped }

// Kill implements [sandbox.Process]. The helper does it, so that it can still
// tell how the program ended; a helper that does not answer is killed too.
func (p *process) Kill() error {
	err := p.SignalAll(syscall.SIGKILL)
	if err == os.ErrProcessDone {
		return err
	}
	if err != nil {
		return p.killHelper()
	}
	time.AfterFunc(2*time.Second, func() {
		if p.alone { // what outlives the helper there is nobody's
			p.SignalAll(syscall.SIGKILL)
		}
		p.killHelper()
	})
	return nil
}

func (p *process) killHelper() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.reaped || p.pid == 0 { // 0 would mean our own process group
		return os.ErrProcessDone
	}
	return syscall.Kill(p.pid, syscall.SIGKILL)
}

// reap collects the helper. It waits for its end without collecting it first,
// so that no signal meets another process with its number.
func (p *process) reap() (syscall.Rusage, error) {
	for {
		err := unix.Waitid(unix.P_PID, p.pid, nil, unix.WEXITED|unix.WNOWAIT, nil)
		if err != unix.EINTR {
			break
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.reaped = true
	var ru syscall.Rusage
	for {
		_, err := syscall.Wait4(p.pid, nil, 0, &ru)
		if err != syscall.EINTR {
			return ru, err
		}
	}
}

// Wait implements [sandbox.Process].
func (p *process) Wait() (sandbox.Exit, error) {
	var exit sandbox.Exit
	pkt, err := p.receive()
	for err == nil && pkt.Kind == helper.Stopped {
		pkt, err = p.afterStop(pkt)
	}
	if err == nil && pkt.Kind == helper.Exited {
		exit.Status = syscall.WaitStatus(pkt.A)
		over := p.over.Load()
		exit.OOM, exit.PIDsMax = over == overMemory, over == overTasks
	} else {
		exit.Lost = true
	}
	p.mu.Lock()
	p.done = true
	p.mu.Unlock()
	close(p.ended)
	p.watching.Wait()
	ru, werr := p.reap()
	exit.Usage.Wall = time.Since(p.start)
	exit.Usage.CPU = time.Duration(ru.Utime.Nano() + ru.Stime.Nano())
	exit.Usage.MemoryPeak = ru.Maxrss * 1024 // of the largest process
	if p.cgroup != nil {
		mem, pids, cpu, oom, pidsMax := p.cgroup.usage()
		exit.OOM, exit.PIDsMax = oom, pidsMax
		if mem > 0 {
			exit.Usage.MemoryPeak = mem
		}
		exit.Usage.PIDsPeak = pids
		exit.Usage.CPU = max(exit.Usage.CPU, cpu)
	}
	if p.relay != nil {
		exit.Contacts = p.relay.Stop()
	}
	exit.Usage.MemoryLimit, exit.Usage.PIDsLimit = max(p.limits.Memory, 0), max(p.limits.PIDs, 0)
	return exit, errors.Join(werr, p.clean())
}

// afterStop delivers a stop of the program, unless it goes on right away: a
// terminal stops us too, and by the time that we read of it all is over.
func (p *process) afterStop(stop helper.Packet) (helper.Packet, error) {
	if stop.A == 0 {
		return p.receive()
	}
	p.sock.SetReadDeadline(time.Now().Add(50 * time.Millisecond))
	pkt, err := p.receive()
	p.sock.SetReadDeadline(time.Time{})
	if !errors.Is(err, os.ErrDeadlineExceeded) {
		return pkt, err
	}
	select {
	case p.stopped <- syscall.Signal(stop.A):
	default:
	}
	return p.receive()
}

// clean removes all that was made for the process.
func (p *process) clean() error {
	var errs []error
	if p.sock != nil {
		p.sock.Close()
	}
	if p.tree.proc != nil {
		p.tree.proc.Close()
	}
	for _, f := range append(p.shown, p.sockets...) {
		f.Close()
	}
	if p.cgroup != nil {
		if err := p.cgroup.delete(); err != nil {
			errs = append(errs, &sandbox.SetupError{Layer: sandbox.LayerCgroup, Step: "remove the cgroup", Err: err})
		}
	}
	if p.tmp != nil {
		if err := os.RemoveAll(p.tmp.Name()); err != nil {
			errs = append(errs, err)
		}
		p.tmp.Close()
	}
	return errors.Join(errs...)
}

// Report implements [sandbox.Process].
func (p *process) Report() sandbox.Report { return p.report }

// memoryFile is a file without a name.
func memoryFile() (*os.File, error) {
	const noexecSeal = 0x8 // MFD_NOEXEC_SEAL, Linux 6.3; a must where vm.memfd_noexec=2
	fd, err := unix.MemfdCreate("block", unix.MFD_CLOEXEC|noexecSeal)
	if err == unix.EINVAL {
		fd, err = unix.MemfdCreate("block", unix.MFD_CLOEXEC)
	}
	if err != nil {
		return nil, err
	}
	return os.NewFile(uintptr(fd), "block"), nil
}
