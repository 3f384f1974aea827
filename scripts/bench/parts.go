//go:build linux

package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

var sh = []string{"/bin/sh", "-c", "true"}

// workspace makes an empty one, with a git directory as most have.
func workspace(o *options) (string, error) {
	ws, err := os.MkdirTemp(o.dir, "ws-*")
	if err != nil {
		return "", err
	}
	return ws, exec.Command("git", "init", "-q", ws).Run()
}

// rowsOf are tools that start argv in ws, those that are refused namespaces in a
// worker of their own.
func rowsOf(o *options, list []tool, ws string, argv []string) (rows []measured, stop func(), err error) {
	var refused *worker
	stop = func() {
		if refused != nil {
			refused.stop()
		}
	}
	exe, err := os.Executable()
	if err != nil {
		return nil, stop, err
	}
	for _, t := range list {
		line := t.command(argv...)
		once := func() (float64, error) { return spawn(ws, line) }
		if t.refused {
			if refused == nil {
				if refused, err = startWorker(append(slices.Clone(o.refused), exe, "worker-spawn")...); err != nil {
					return nil, stop, err
				}
			}
			w := refused
			once = func() (float64, error) { return w.ask(spawnRequest{ws, line}) }
		}
		rows = append(rows, measured{name: t.name, once: once})
	}
	return rows, stop, nil
}

func start(o *options) ([]line, error) {
	ws, err := workspace(o)
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(ws)
	rows, stop, err := rowsOf(o, tools(o, ws), ws, sh)
	defer stop()
	if err != nil {
		return nil, err
	}
	exe, err := os.Executable()
	if err != nil {
		return nil, err
	}
	for _, build := range []struct{ name, exe string }{{"entry flag", exe}, {"plain build", o.plain}} {
		if build.exe == "" {
			continue
		}
		rows = append(rows, measured{
			name: "library, cold, " + build.name,
			once: func() (float64, error) { return spawn(ws, []string{build.exe, "library-once", ws}) },
		})
		for _, mib := range []int{4, 64, 1024} {
			w, err := startWorker(build.exe, "worker-library", strconv.Itoa(mib))
			if err != nil {
				return nil, err
			}
			defer w.stop()
			rows = append(rows, measured{
				name: fmt.Sprintf("library, %d MiB, %s", mib, build.name),
				once: func() (float64, error) { return w.ask(ws) },
			})
		}
	}
	lines := takeTurns(rows, o.rounds)
	compare(lines, "bare", "bwrap")
	return lines, nil
}

// throughput starts commands from 1, 2, 8 and 64 threads at once.
func throughput(o *options) ([]line, error) {
	ws, err := workspace(o)
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(ws)
	var lines []line
	const turns, turn = 5, time.Second
	for _, atOnce := range []int{1, 2, 8, 64} {
		var rows []measured
		var list []tool
		for _, t := range tools(o, ws) {
			if t.refused || strings.HasPrefix(t.name, "sandbox-exec ") && t.name != "sandbox-exec workspace" {
				continue
			}
			list = append(list, t)
		}
		failures := make([]atomic.Int64, len(list))
		for i, t := range list {
			argv := t.command(sh...)
			rows = append(rows, measured{name: fmt.Sprintf("%d at once: %s", atOnce, t.name), once: func() (float64, error) {
				var done atomic.Int64
				var all sync.WaitGroup
				begin := time.Now()
				for range atOnce {
					all.Go(func() {
						for time.Since(begin) < turn {
							if _, err := spawn(ws, argv); err != nil {
								failures[i].Add(1)
							} else {
								done.Add(1)
							}
						}
					})
				}
				all.Wait()
				return float64(done.Load()) / time.Since(begin).Seconds(), nil
			}})
		}
		samples := make([][]float64, len(rows))
		for range turns {
			for i := range rows {
				v, err := rows[i].once()
				if err != nil {
					return nil, err
				}
				samples[i] = append(samples[i], v)
			}
		}
		bwrap := 0.0
		for i, t := range list {
			l := summary(rows[i].name, samples[i])
			l.More = map[string]float64{"failed": float64(failures[i].Load())}
			if t.name == "bwrap" {
				bwrap = l.Median
			}
			lines = append(lines, l)
		}
		for i := range list { // here the ratio is that of the throughput itself
			if l := &lines[len(lines)-len(list)+i]; bwrap > 0 {
				l.Ratio = l.Median / bwrap
			}
		}
	}
	return lines, nil
}

// insideCosts does the same work bare and inside. Programs time themselves, so
// that the start is not in it. The ratio is to the bare row.
func insideCosts(o *options) ([]line, error) {
	ws, err := workspace(o)
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(ws)
	exe, err := os.Executable()
	if err != nil {
		return nil, err
	}
	if err := project(ws); err != nil {
		return nil, err
	}
	works := []struct {
		name string
		argv []string
	}{
		{"20,000 creates, µs each", []string{exe, "inside-creates", "20000"}},
		{"open+close, µs each", []string{exe, "inside-opens", "50000"}},
		{"git status, ms", []string{exe, "inside-time", "git", "status", "--porcelain"}},
	}
	if _, err := exec.LookPath("go"); err == nil {
		works = append(works, struct {
			name string
			argv []string
		}{"go build, ms", []string{exe, "inside-time", "sh", "-c", `date +"// %s %N" >>main.go && exec go build -buildvcs=false -o built .`}})
	}
	var lines []line
	for _, work := range works {
		var rows []measured
		for _, t := range tools(o, ws) {
			if t.refused || t.name == "sandbox-exec readonly" {
				continue
			}
			argv := t.command(work.argv...)
			rows = append(rows, measured{name: work.name + ": " + t.name, once: func() (float64, error) {
				var out, errOut bytes.Buffer
				cmd := &exec.Cmd{Path: argv[0], Args: argv, Dir: ws, Stdout: &out, Stderr: &errOut}
				if err := cmd.Run(); err != nil {
					return 0, fmt.Errorf("%w: %s", err, lastLine(errOut.Bytes()))
				}
				return strconv.ParseFloat(lastLine(out.Bytes()), 64)
			}})
		}
		got := takeTurns(rows, max(5, o.rounds/20))
		for i := range got {
			if got[i].Failed == "" && got[0].Median > 0 {
				got[i].Ratio = got[i].Median / got[0].Median
			}
		}
		lines = append(lines, got...)
	}
	return lines, nil
}

// project makes a repository of 500 files with a small Go program.
func project(ws string) error {
	for i := range 500 {
		name := filepath.Join(ws, "dir"+strconv.Itoa(i%20), "file"+strconv.Itoa(i))
		os.MkdirAll(filepath.Dir(name), 0o755)
		if err := os.WriteFile(name, []byte(strings.Repeat("text\n", 20)), 0o644); err != nil {
			return err
		}
	}
	os.WriteFile(filepath.Join(ws, "go.mod"), []byte("module example\n\ngo 1.21\n"), 0o644)
	os.WriteFile(filepath.Join(ws, "main.go"), []byte("package main\n\nimport \"fmt\"\n\nfunc main() { fmt.Println(\"built\") }\n"), 0o644)
	for _, argv := range [][]string{{"add", "-A"}, {"-c", "user.name=bench", "-c", "user.email=bench@example.org", "commit", "-qm", "first"}} {
		cmd := exec.Command("git", argv...)
		cmd.Dir = ws
		if out, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("git %s: %w: %s", argv[0], err, lastLine(out))
		}
	}
	return nil
}

// memory looks at what a tool keeps while a command waits, in MB: the median row
// is the proportional share (PSS), the columns are what is in none but it.
func memory(o *options) ([]line, error) {
	ws, err := workspace(o)
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(ws)
	exe, err := os.Executable()
	if err != nil {
		return nil, err
	}
	var lines []line
	for _, t := range tools(o, ws) {
		if t.refused || t.name == "bare" || t.name == "sandbox-exec readonly" {
			continue
		}
		argv := t.command(exe, "inside-wait")
		cmd := &exec.Cmd{Path: argv[0], Args: argv, Dir: ws}
		if err := cmd.Start(); err != nil {
			return nil, err
		}
		l := line{Row: t.name, Failed: "the command did not start"}
		for end := time.Now().Add(10 * time.Second); time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
			if _, found := keeps(cmd.Process.Pid); found {
				time.Sleep(200 * time.Millisecond) // what only starts has ended
				kept, _ := keeps(cmd.Process.Pid)
				l = summary(t.name, []float64{kept["PSS"]})
				l.More = kept
				break
			}
		}
		lines = append(lines, l)
		// The command waits below; where it outlives its tool, it is ended by itself.
		for _, pid := range tree(cmd.Process.Pid) {
			if p, err := os.FindProcess(pid); err == nil {
				p.Kill()
			}
		}
		cmd.Wait()
	}
	return lines, nil
}

// tree is pid and all its descendants.
func tree(pid int) []int {
	children := map[int][]int{}
	stats, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, name := range stats {
		data, err := os.ReadFile(name)
		if err != nil {
			continue
		}
		// pid (comm) state ppid, proc_pid_stat(5)
		rest := strings.Fields(string(data[bytes.LastIndexByte(data, ')')+1:]))
		id, _ := strconv.Atoi(filepath.Base(filepath.Dir(name)))
		parent, _ := strconv.Atoi(rest[1])
		children[parent] = append(children[parent], id)
	}
	list := []int{pid}
	for i := 0; i < len(list); i++ {
		list = append(list, children[list[i]]...)
	}
	return list
}

// keeps sums up the tree without the command, and says whether that was found.
func keeps(pid int) (map[string]float64, bool) {
	sum, found := map[string]float64{"PSS": 0, "private": 0, "processes": 0, "threads": 0}, false
	for _, id := range tree(pid) {
		proc := "/proc/" + strconv.Itoa(id)
		argv, _ := os.ReadFile(proc + "/cmdline")
		words := strings.Split(strings.TrimSuffix(string(argv), "\x00"), "\x00")
		if len(words) == 2 && words[1] == "inside-wait" {
			found = true
			continue
		}
		memory, _ := os.ReadFile(proc + "/smaps_rollup")
		for text := range strings.Lines(string(memory)) {
			f := strings.Fields(text)
			if len(f) < 2 {
				continue
			}
			kb, _ := strconv.ParseFloat(f[1], 64)
			switch f[0] {
			case "Pss:":
				sum["PSS"] += kb / 1024
			case "Private_Clean:", "Private_Dirty:":
				sum["private"] += kb / 1024
			}
		}
		tasks, _ := os.ReadDir(proc + "/task")
		sum["processes"]++
		sum["threads"] += float64(len(tasks))
	}
	return sum, found
}

// growth starts in a workspace without files and in one with many, and under
// profiles with more and more rules.
func growth(o *options) ([]line, error) {
	var rows []measured
	for _, files := range []int{0, o.files} {
		ws, err := workspace(o)
		if err != nil {
			return nil, err
		}
		defer os.RemoveAll(ws)
		for i := range files {
			dir := filepath.Join(ws, strconv.Itoa(i/50_000), strconv.Itoa(i/500))
			if i%500 == 0 {
				if err := os.MkdirAll(dir, 0o755); err != nil {
					return nil, err
				}
			}
			f, err := os.Create(filepath.Join(dir, strconv.Itoa(i)))
			if err != nil {
				return nil, err
			}
			f.Close()
		}
		argv := append([]string{o.program, "-q", "--"}, sh...)
		rows = append(rows, measured{name: fmt.Sprintf("%d files", files), once: func() (float64, error) { return spawn(ws, argv) }})
	}
	ws, err := workspace(o)
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(ws)
	hidden, err := os.MkdirTemp(o.dir, "hidden-*")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(hidden)
	for _, rules := range []int{0, 10, 100, 1000} {
		argv := []string{o.program, "-q"}
		for i := range rules {
			name := filepath.Join(hidden, strconv.Itoa(i))
			if err := os.WriteFile(name, nil, 0o600); err != nil {
				return nil, err
			}
			argv = append(argv, "--hide", name)
		}
		argv = append(append(argv, "--"), sh...)
		rows = append(rows, measured{name: fmt.Sprintf("%d rules more", rules), once: func() (float64, error) { return spawn(ws, argv) }})
	}
	lines := takeTurns(rows, max(20, o.rounds))
	for i := range lines {
		if lines[0].Failed == "" && lines[i].Failed == "" {
			lines[i].Ratio = lines[i].Median / lines[0].Median // to the empty workspace
		}
	}
	return lines, nil
}
