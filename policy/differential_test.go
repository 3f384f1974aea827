package policy_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/sandbox-exec/sandbox-exec/policy"
	"github.com/sandbox-exec/sandbox-exec/profiles"
	"github.com/sandbox-exec/sandbox-exec/runner"
)

// The judge and the real shells must read a text alike. Texts are run by bash
// and by /bin/sh in our own sandbox, where every program is a stub that records
// how it was started. Each start must be among the commands that the judge
// listed, and each file that a redirection made or changed among the files that
// it listed as written, unless it said that it could not know.

// opaqueReasons say that what runs cannot be known from the text, as do the
// notes in Decision.Opaque. A script in a file, or in one that a variable names,
// is known to run, but not what it starts.
var opaqueReasons = []policy.Reason{
	policy.DynamicName, policy.DynamicCode, policy.PipedCode, policy.ForeignShell, policy.UnknownWrapper,
	policy.ShadowedName, policy.ArithmeticCode, policy.DynamicExpansion, policy.Script, policy.EnvInjection,
}

func opaque(d policy.Decision) bool {
	return len(d.Opaque) > 0 || slices.ContainsFunc(d.Targets, func(t policy.Target) bool { return slices.Contains(opaqueReasons, t.Reason) })
}

// listed reports whether the judge said that s is started: its name, and its
// arguments where all words were known.
func listed(d policy.Decision, s start) bool {
	name := path.Base(s.path)
	for _, t := range d.Targets {
		switch {
		case t.Action != policy.Exec:
		case slices.Contains(t.Wrappers, name):
			return true
		case len(t.Argv) == 0 || path.Base(t.Argv[0]) != name:
		case t.Dynamic || slices.ContainsFunc(t.Argv, func(w string) bool { return strings.ContainsAny(w, "*?[(") }):
			return true // a pattern, or the same characters in quotes
		case slices.EqualFunc(t.Argv[1:], s.argv[1:], sameWord):
			return true
		}
	}
	return false
}

// covered reports whether the judge said that a file is written.
func covered(d policy.Decision, text, file string) bool {
	return slices.ContainsFunc(d.Targets, func(t policy.Target) bool {
		switch {
		case t.Action != policy.FileWrite:
			return false
		case t.Resource == file, t.Dynamic, t.Reason == policy.DynamicPath, strings.ContainsAny(t.Resource, "*?[("):
			return true
		}
		// Of the directories in which a text can be, the judge lists those in
		// which it is when each cd worked.
		return path.Base(t.Resource) == path.Base(file) && (strings.Contains(text, "cd") || strings.Contains(text, "pushd"))
	})
}

// sameWord compares words, of which the shell numbers those that stand for
// process substitutions.
func sameWord(listed, started string) bool {
	return listed == started || strings.HasPrefix(listed, "/dev/fd/") && strings.HasPrefix(started, "/dev/fd/")
}

// arena is the place where texts run: stubs, shells and a directory in a
// sandbox in which no program of the system can be started.
type arena struct {
	dir     string
	profile *profiles.Profile
	log     string
	files   map[string]string // what a text finds in its directory
	clean   map[string]bool   // directories that are as a text finds them
}

func newArena(t testing.TB) *arena {
	t.Helper()
	unavailable := func(format string, args ...any) {
		t.Helper()
		if os.Getenv("CI") == "true" {
			t.Fatalf(format, args...)
		}
		t.Skipf(format, args...)
	}
	if runtime.GOOS != "linux" || runtime.GOARCH != "amd64" {
		t.Skip("the recording stub is a program for linux/amd64")
	}
	// Not in /tmp, which a sandbox has of its own.
	dir, err := os.MkdirTemp("/var/tmp", "differential-*")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	a := &arena{dir: dir, log: filepath.Join(dir, "w", ".log")}
	for _, sub := range []string{"bin", "home", "w"} {
		if err := os.Mkdir(filepath.Join(dir, sub), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range slices.Concat([]string{"bash", "dash"}, real) {
		file, err := exec.LookPath(name)
		if err != nil {
			unavailable("%s is needed: %v", name, err)
		}
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if err := a.program(filepath.Join("bin", name), data); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("dash", filepath.Join(dir, "bin", "sh")); err != nil {
		t.Fatal(err)
	}
	record := stub(a.log)
	a.clean = map[string]bool{}
	a.files = map[string]string{"x.txt": "x\n", "d/e": "e\n", "d/a": string(record)}
	for _, name := range slices.Concat(programs, odd, stubbed, functions) {
		if name == "." || name == ".." {
			continue
		}
		if err := a.program(filepath.Join("bin", name), record); err != nil {
			t.Fatal(err)
		}
	}
	a.profile, err = profiles.Load("workspace")
	if err != nil {
		t.Fatal(err)
	}
	a.profile.Mode, a.profile.Ask, a.profile.Stdin, a.profile.Tmp = policy.ModeAllow, "allow", "null", "private"
	a.profile.Limits.PIDs, a.profile.Limits.Memory = 200, 1<<30
	// A text can ask for the default path or give a whole path.
	a.profile.Hide = append(a.profile.Hide, "/usr/bin", "/usr/sbin", "/usr/local", "/usr/games", "/opt", "/etc/profile", "/etc/bash.bashrc")
	if effects, _, err := a.run(t.Context(), policy.Bash, []string{"a works >made"}); err != nil {
		unavailable("the sandbox does not start: %v", err)
	} else if e := effects[0]; len(e.starts) != 1 || !slices.Equal(e.starts[0].argv, []string{"a", "works"}) || !slices.Equal(e.written, []string{filepath.Join(a.place(0), "made")}) {
		t.Fatalf("in the sandbox a text did %v", e)
	}
	return a
}

func (a *arena) program(name string, data []byte) error {
	return os.WriteFile(filepath.Join(a.dir, name), data, 0o755)
}

// scope is where the text of that number runs.
func (a *arena) scope(shell policy.Shell, n int) policy.Scope {
	return policy.Scope{Cwd: a.place(n), Workspace: filepath.Join(a.dir, "w"), Home: filepath.Join(a.dir, "home"), Shell: shell}
}

func (a *arena) place(n int) string { return filepath.Join(a.dir, "w", fmt.Sprintf("text%04d", n)) }

// clear makes the directories of the texts from the first on as they are at
// the start. Those that the last texts left so are used again.
func (a *arena) clear(first, end int) error {
	w := filepath.Join(a.dir, "w")
	if err := os.MkdirAll(w, 0o755); err != nil {
		return err
	}
	entries, err := os.ReadDir(w)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if !a.clean[e.Name()] {
			if err := os.RemoveAll(filepath.Join(w, e.Name())); err != nil {
				return err
			}
		}
	}
	for n := first; n < end; n++ {
		if a.clean[filepath.Base(a.place(n))] {
			continue
		}
		if err := os.MkdirAll(filepath.Join(a.place(n), "d"), 0o755); err != nil {
			return err
		}
		for name, text := range a.files {
			mode := fs.FileMode(0o644)
			if name == "d/a" {
				mode = 0o755
			}
			if err := os.WriteFile(filepath.Join(a.place(n), name), []byte(text), mode); err != nil {
				return err
			}
		}
	}
	if err := os.WriteFile(a.log, nil, 0o644); err != nil {
		return err
	}
	return syscall.Mkfifo(filepath.Join(w, ".end"), 0o600)
}

// written are the files that are not as they were in the directory of a text.
func (a *arena) written(n int) (list []string, err error) {
	top := a.place(n)
	err = filepath.WalkDir(top, func(file string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		name, err := filepath.Rel(top, file)
		if err != nil {
			return err
		}
		if was, ok := a.files[name]; ok {
			if now, err := os.ReadFile(file); err != nil || string(now) == was {
				return err
			}
		}
		list = append(list, file)
		return nil
	})
	return list, err
}

// effect is what a text did.
type effect struct {
	starts  []start
	written []string
}

const (
	stall  = 8 * time.Second // a text that takes longer is given up
	maxLog = 64 << 20
)

// run runs the texts one after the other, each in a subshell of its own that is
// waited for with all that it started. It returns what each text did, and the
// texts of which that is not known because they did not end.
func (a *arena) run(ctx context.Context, shell policy.Shell, list []string) (effects []effect, lost []int, err error) {
	effects = make([]effect, len(list))
	for first := 0; first <= len(list); {
		log, err := a.drive(ctx, shell, list, first)
		if err != nil {
			return nil, nil, err
		}
		at := -1
		for _, s := range log {
			if len(s.argv) == 0 {
				if at, err = strconv.Atoi(s.path); err != nil || at < first || at > len(list) {
					return nil, nil, errLog
				}
			} else if at >= 0 && at < len(list) {
				effects[at].starts = append(effects[at].starts, s)
			}
		}
		if at < first {
			return nil, nil, errors.New("the driver did not start")
		}
		if at < len(list) {
			lost = append(lost, at)
		}
		clear(a.clean)
		for n := first; n < at; n++ {
			if effects[n].written, err = a.written(n); err != nil {
				return nil, nil, err
			}
			a.clean[filepath.Base(a.place(n))] = effects[n].written == nil
		}
		first = at + 1
	}
	return effects, lost, nil
}

// drive runs the texts from the first on until one of them does not end.
func (a *arena) drive(ctx context.Context, shell policy.Shell, list []string, first int) ([]start, error) {
	if err := a.clear(first, len(list)); err != nil {
		return nil, err
	}
	driver := filepath.Join(a.dir, "driver")
	if err := os.WriteFile(driver, a.driver(shell, list, first), 0o644); err != nil {
		return nil, err
	}
	name := "bash"
	if shell == policy.POSIX {
		name = "dash"
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var lines progress
	watched := make(chan struct{})
	go func() {
		defer close(watched)
		lines.watch(ctx, cancel, a.log)
	}()
	w := filepath.Join(a.dir, "w")
	profile := *a.profile
	_, err := runner.Run(ctx, runner.Command{
		Args: []string{filepath.Join(a.dir, "bin", name), driver}, Dir: w, Workspace: w, Profile: &profile, Wrapper: true,
		Env:    []string{"HOME=" + filepath.Join(a.dir, "home"), "PATH=" + filepath.Join(a.dir, "bin"), "LANG=C.UTF-8"},
		Stdout: &lines, Stderr: io.Discard, Grace: time.Millisecond,
	})
	cancel()
	<-watched
	if err != nil {
		return nil, err
	}
	log, err := os.ReadFile(a.log)
	if err != nil {
		return nil, err
	}
	return readLog(log)
}

// driver writes the script that runs the texts from the first on. In bash a
// function records the names that are not found; other shells start only what
// has a stub.
func (a *arena) driver(shell policy.Shell, list []string, first int) []byte {
	b := new(bytes.Buffer)
	end := filepath.Join(a.dir, "w", ".end")
	mark := func(n int) {
		fmt.Fprintf(b, `printf '\0\0\0\0\0\0\0\0%%s\0' %d >>%s; echo`+"\n", n, a.log)
	}
	if shell == policy.Bash {
		fmt.Fprintf(b, `command_not_found_handle() {
	local f='%%s\0' a
	for a; do f+='%%s\0'; done
	builtin printf -v a '\\%%o\\%%o' $(($# %% 256)) $(($# / 256))
	builtin printf "$a\0\0\0\0\0\0$f" "$1" "$@" >>%s
	return $(($# %% 2))
}
FUNCNEST=20
`, a.log)
	}
	fmt.Fprintf(b, "PATH=%s/bin HOME=%s/home\nulimit -c 0; ulimit -t 2\n", a.dir, a.dir)
	for n := first; n < len(list); n++ {
		mark(n)
		// The subshell and all its children hold the other end of the pipe.
		fmt.Fprintf(b, "( exec 9>%s 2>/dev/null >/dev/null; cd %s; eval '%s' ) & read x <%s\n", end, a.place(n), strings.ReplaceAll(list[n], "'", `'\''`), end)
	}
	mark(len(list))
	return b.Bytes()
}

// progress counts the lines that the driver writes, one a text.
type progress struct{ lines atomic.Int64 }

func (p *progress) Write(b []byte) (int, error) {
	p.lines.Add(int64(len(b)))
	return len(b), nil
}

// watch gives up when the driver does not go on.
func (p *progress) watch(ctx context.Context, cancel func(), log string) {
	tick := time.NewTicker(stall)
	defer tick.Stop()
	for last := int64(-1); ; {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		info, err := os.Stat(log)
		now := p.lines.Load()
		if now == last || err != nil || info.Size() > maxLog {
			cancel()
			return
		}
		last = now
	}
}

// unsafeText names what a text must not hold, because it would end the driver
// or wait without end; the sandbox holds what else a text could do.
var unsafeText = words("kill fg suspend ulimit logout prlimit /proc /sys /dev/tty /dev/pts .log .end")

func safe(text string) bool {
	if (strings.Contains(text, "while") || strings.Contains(text, "until")) && !strings.Contains(text, "break") {
		return false
	}
	return !slices.ContainsFunc(unsafeText, func(s string) bool { return strings.Contains(text, s) })
}

type figures struct {
	made, grammar, grammarOpaque, mutated, mutatedOpaque, ran, started, written, lost int
}

func (f *figures) add(o figures) {
	f.made += o.made
	f.grammar += o.grammar
	f.grammarOpaque += o.grammarOpaque
	f.mutated += o.mutated
	f.mutatedOpaque += o.mutatedOpaque
	f.ran += o.ran
	f.started += o.started
	f.written += o.written
	f.lost += o.lost
}

// miss is a start that the judge did not list. Rows of misses.jsonl have the
// same form.
type miss struct {
	Text    string   `json:"text"`
	Shell   string   `json:"shell"`
	Started []string `json:"started,omitempty"` // its name and arguments
	Wrote   string   `json:"wrote,omitempty"`   // below the directory of the text
}

// unlisted is the first thing that a text did and the judge did not list, or
// nil.
func (a *arena) unlisted(text string, shell policy.Shell, n int, e effect) *miss {
	d := (&policy.Policy{}).Decide(text, a.scope(shell, n))
	for _, s := range e.starts {
		if !listed(d, s) {
			return &miss{Text: text, Shell: shell.String(), Started: append([]string{path.Base(s.path)}, s.argv[1:]...)}
		}
	}
	for _, file := range e.written {
		if !covered(d, text, file) {
			return &miss{Text: text, Shell: shell.String(), Wrote: strings.TrimPrefix(file, a.place(n)+"/")}
		}
	}
	return nil
}

// compare makes texts from one seed, and runs those that are not opaque.
func (a *arena) compare(t testing.TB, seed uint64, n int, corpus []string) (f figures, misses []miss, err error) {
	shell := policy.Bash
	if seed%4 == 3 {
		shell = policy.POSIX
	}
	g := newTexts(seed, shell == policy.POSIX, corpus)
	p := &policy.Policy{}
	var list []string
	for f.made < n {
		mutated := g.chance(25)
		text := ""
		if mutated {
			text = g.mutated()
		} else {
			text = g.text()
			if len(g.earlier) < 500 {
				g.earlier = append(g.earlier, text)
			}
		}
		if !safe(text) {
			continue
		}
		d := p.Decide(text, a.scope(shell, len(list)))
		if slices.ContainsFunc(d.Targets, func(t policy.Target) bool { return t.Reason == policy.ForkBomb }) {
			continue
		}
		f.made++
		dark := opaque(d)
		switch {
		case mutated && dark:
			f.mutated++
			f.mutatedOpaque++
		case mutated:
			f.mutated++
		case dark:
			f.grammar++
			f.grammarOpaque++
		default:
			f.grammar++
		}
		if !dark {
			list = append(list, text)
		}
	}
	effects, lost, err := a.run(t.Context(), shell, list)
	if errors.Is(err, errLog) {
		t.Logf("seed %d: %v", seed, err)
		f.lost = len(list)
		return f, nil, nil
	}
	if err != nil {
		return f, nil, err
	}
	f.ran, f.lost = len(list)-len(lost), len(lost)
	for i, text := range list {
		f.started += len(effects[i].starts)
		f.written += len(effects[i].written)
		if m := a.unlisted(text, shell, i, effects[i]); m != nil {
			misses = append(misses, *m)
		}
	}
	for _, i := range lost {
		t.Logf("did not end: %q", list[i])
	}
	return f, misses, nil
}

// missed returns the texts that did what the judge did not list.
func (a *arena) missed(ctx context.Context, shell policy.Shell, list []string) (misses []*miss, err error) {
	p := &policy.Policy{}
	var texts []string
	for _, text := range list {
		if !opaque(p.Decide(text, a.scope(shell, len(texts)))) {
			texts = append(texts, text)
		}
	}
	effects, _, err := a.run(ctx, shell, texts)
	if err != nil {
		return nil, err
	}
	for i, text := range texts {
		if m := a.unlisted(text, shell, i, effects[i]); m != nil {
			misses = append(misses, m)
		}
	}
	return misses, nil
}

// again says whether a text shows the miss when it runs alone, at least once in
// three times.
func (a *arena) again(ctx context.Context, m miss) bool {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	shell := policy.Bash
	if m.Shell != shell.String() {
		shell = policy.POSIX
	}
	for range 3 {
		if missed, err := a.missed(ctx, shell, []string{m.Text}); err == nil && len(missed) > 0 {
			return true
		}
	}
	return false
}

// minimal cuts pieces out of the text of a miss as long as it stays one, for a
// few seconds.
func (a *arena) minimal(ctx context.Context, m miss) miss {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	shell := policy.Bash
	if m.Shell != shell.String() {
		shell = policy.POSIX
	}
	for tries := []string{m.Text}; len(tries) > 0; {
		missed, err := a.missed(ctx, shell, tries)
		if err != nil {
			break
		}
		shorter := ""
		for _, s := range missed {
			if shorter == "" || len(s.Text) < len(shorter) {
				shorter, m = s.Text, *s
			}
		}
		tries = nil
		for size := len(shorter) / 2; size > 0; size /= 2 {
			for i := 0; i+size <= len(shorter); i += max(1, size/2) {
				if text := shorter[:i] + shorter[i+size:]; safe(text) && text != "" {
					tries = append(tries, text)
				}
			}
		}
	}
	return m
}

func readCorpus(t testing.TB) (list []string) {
	t.Helper()
	for _, name := range []string{"corpus.jsonl", "allow-mode.jsonl"} {
		file, err := os.Open("../testdata/policy/" + name)
		if err != nil {
			t.Fatal(err)
		}
		defer file.Close()
		s := bufio.NewScanner(file)
		s.Buffer(nil, 1<<20)
		for s.Scan() {
			var row struct{ Cmd string }
			if err := json.Unmarshal(s.Bytes(), &row); err != nil {
				t.Fatal(err)
			}
			if row.Cmd != "" && len(row.Cmd) < 300 {
				list = append(list, row.Cmd)
			}
		}
	}
	return list
}

// TestDifferential runs 10,000 texts, or as many as SANDBOX_EXEC_DIFFERENTIAL
// says, beginning with the seed SANDBOX_EXEC_DIFFERENTIAL_SEED.
func TestDifferential(t *testing.T) {
	total, seed := 10000, uint64(0)
	if v := os.Getenv("SANDBOX_EXEC_DIFFERENTIAL"); v != "" {
		n, err := strconv.Atoi(v)
		if err != nil {
			t.Fatal(err)
		}
		total = n
	}
	if v := os.Getenv("SANDBOX_EXEC_DIFFERENTIAL_SEED"); v != "" {
		n, err := strconv.ParseUint(v, 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		seed = n
	}
	const each = 2500
	corpus := readCorpus(t)
	workers := min(2, runtime.NumCPU())
	arenas := make([]*arena, workers)
	for i := range arenas {
		arenas[i] = newArena(t)
	}
	var (
		mu     sync.Mutex
		sum    figures
		misses []miss
		next   atomic.Uint64
		wait   sync.WaitGroup
	)
	begin := time.Now()
	for _, a := range arenas {
		wait.Go(func() {
			for {
				k := next.Add(1) - 1
				if k*each >= uint64(total) {
					return
				}
				f, found, err := a.compare(t, seed+k, min(each, total-int(k)*each), corpus)
				if err != nil {
					t.Errorf("seed %d: %v", seed+k, err)
					return
				}
				mu.Lock()
				sum.add(f)
				misses = append(misses, found...)
				mu.Unlock()
			}
		})
	}
	wait.Wait()
	// What a text left running may write where a later one looks.
	found := len(misses)
	misses = slices.DeleteFunc(misses, func(m miss) bool { return !arenas[0].again(t.Context(), m) })
	t.Logf("%d texts, %.1f %% not opaque (of the grammar %.1f %%, mutated %.1f %%); %d ran, started %d programs and wrote %d files, %d unknown; %d misses, and %d that were none when run alone; %.0f texts/s",
		sum.made, share(sum.made, sum.grammarOpaque+sum.mutatedOpaque), share(sum.grammar, sum.grammarOpaque), share(sum.mutated, sum.mutatedOpaque),
		sum.ran, sum.started, sum.written, sum.lost, len(misses), found-len(misses), float64(sum.made)/time.Since(begin).Seconds())
	if sum.started < sum.made/4 {
		t.Errorf("only %d programs were started by %d texts", sum.started, sum.made)
	}
	if sum.written < sum.made/50 {
		t.Errorf("only %d files were written by %d texts", sum.written, sum.made)
	}
	if found-len(misses) > sum.made/1000 {
		t.Errorf("too many misses are none when run alone")
	}
	if sum.lost > sum.made/50 {
		t.Errorf("of too many texts it is not known what they started")
	}
	if share(sum.made, sum.grammarOpaque+sum.mutatedOpaque) < 70 {
		t.Errorf("less than 70 %% of the texts are not opaque")
	}
	for i, m := range misses {
		row, _ := json.Marshal(m)
		t.Errorf("not listed: %s", row)
		if i < 5 {
			row, _ = json.Marshal(arenas[0].minimal(t.Context(), m))
			t.Logf("shorter: %s", row)
		}
	}
}

func share(all, dark int) float64 { return 100 * float64(all-dark) / float64(max(all, 1)) }

// TestDifferentialMisses runs what was once missed.
func TestDifferentialMisses(t *testing.T) {
	file, err := os.Open("../testdata/policy/differential/misses.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	var rows []miss
	s := bufio.NewScanner(file)
	for s.Scan() {
		var m miss
		if err := json.Unmarshal(s.Bytes(), &m); err != nil {
			t.Fatal(err)
		}
		rows = append(rows, m)
	}
	a := newArena(t)
	p := &policy.Policy{}
	for _, shell := range []policy.Shell{policy.Bash, policy.POSIX} {
		var texts []string
		var want []miss
		for _, m := range rows {
			if m.Shell == shell.String() {
				texts, want = append(texts, m.Text), append(want, m)
			}
		}
		effects, _, err := a.run(t.Context(), shell, texts)
		if err != nil {
			t.Fatal(err)
		}
		for i, text := range texts {
			if m := a.unlisted(text, shell, i, effects[i]); m != nil && !opaque(p.Decide(text, a.scope(shell, i))) {
				t.Errorf("%v: %q does what is not listed: %+v", shell, text, *m)
			}
			started := want[i].Started == nil || slices.ContainsFunc(effects[i].starts, func(s start) bool { return path.Base(s.path) == want[i].Started[0] })
			wrote := want[i].Wrote == "" || slices.Contains(effects[i].written, filepath.Join(a.place(i), want[i].Wrote))
			if !started || !wrote {
				t.Errorf("%v: %q does not do it: %+v", shell, text, want[i])
			}
		}
	}
}
