//go:build linux

// Bench measures what a sandbox costs, beside the bare command and every peer
// that is installed: rows take turns in a shuffled order, round after round, so
// that what else the machine does hits all of them alike. Trust the ratios of one
// run. See bench.sh.
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// options are the flags.
type options struct {
	rounds  int
	parts   []string
	program string // sandbox-exec
	plain   string // this program, built without the linker's flag
	dir     string // of workspaces
	refused []string
	files   int
	json    string
}

// A part is a question, answered by a table.
type part struct {
	name, what string
	run        func(*options) ([]line, error)
}

var parts = []part{
	{"start", "start-up: sh -c true, ms", start},
	{"throughput", "throughput: commands a second, in one shared workspace", throughput},
	{"inside", "cost inside: the same work, µs an operation or ms", insideCosts},
	{"memory", "kept while a command runs, its own left out", memory},
	{"growth", "start-up with the size of the workspace and the number of rules, ms", growth},
}

// line is one line of a table. Values are in the part's own unit.
type line struct {
	Part     string             `json:"part"`
	Row      string             `json:"row"`
	N        int                `json:"n"`
	Median   float64            `json:"median"`
	Low      float64            `json:"low"` // of the median, with 95 % confidence
	High     float64            `json:"high"`
	P95      float64            `json:"p95"`
	Overhead float64            `json:"overhead,omitempty"` // median less that of the bare row
	Ratio    float64            `json:"ratio,omitempty"`    // see the table's head
	More     map[string]float64 `json:"more,omitempty"`
	Failed   string             `json:"failed,omitempty"`
}

func main() {
	if len(os.Args) > 1 {
		if helper, ok := helpers[os.Args[1]]; ok {
			if err := helper(os.Args[2:]); err != nil {
				fmt.Fprintln(os.Stderr, "bench:", err)
				os.Exit(1)
			}
			return
		}
	}
	var o options
	var only, refused string
	flag.IntVar(&o.rounds, "rounds", 200, "rounds of start-up; other parts take a share of them")
	flag.StringVar(&only, "parts", "start,throughput,inside,memory,growth", "what is measured")
	flag.StringVar(&o.program, "program", "", "sandbox-exec")
	flag.StringVar(&o.plain, "plain", "", "this program, built without the linker's flag")
	flag.StringVar(&o.dir, "dir", "", "where workspaces are made")
	flag.StringVar(&refused, "refused", "", "command line, blank-separated, whose children get no namespaces")
	flag.IntVar(&o.files, "files", 500_000, "files of the large workspace")
	flag.StringVar(&o.json, "json", "", "also write `FILE`")
	flag.Parse()
	o.parts, o.refused = strings.Split(only, ","), strings.Fields(refused)
	if err := bench(&o); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func bench(o *options) error {
	m := describe(o)
	fmt.Print(m.text())
	var all []line
	for _, p := range parts {
		if !slices.Contains(o.parts, p.name) {
			continue
		}
		lines, err := p.run(o)
		if err != nil {
			return fmt.Errorf("%s: %w", p.name, err)
		}
		for i := range lines {
			lines[i].Part = p.name
		}
		all = append(all, lines...)
		fmt.Printf("\n## %s\n\n", p.what)
		table(lines)
	}
	if o.json == "" {
		return nil
	}
	data, err := json.MarshalIndent(struct {
		Machine machineInfo `json:"machine"`
		Lines   []line      `json:"lines"`
	}{m, all}, "", " ")
	if err != nil {
		return err
	}
	return os.WriteFile(o.json, append(data, '\n'), 0o644)
}

type machineInfo struct {
	Date       string            `json:"date"`
	Kernel     string            `json:"kernel"`
	Processors int               `json:"processors"`
	Model      string            `json:"model"`
	UID        int               `json:"uid"`
	FileSystem string            `json:"file_system"`
	Load       string            `json:"load"`
	Go         string            `json:"go"`
	Versions   map[string]string `json:"versions"`
}

func describe(o *options) machineInfo {
	var name unix.Utsname
	unix.Uname(&name)
	m := machineInfo{
		Date: time.Now().Format("2006-01-02 15:04"), Kernel: unix.ByteSliceToString(name.Release[:]),
		Processors: runtime.NumCPU(), UID: os.Getuid(), Go: runtime.Version(), Versions: map[string]string{},
	}
	cpu, _ := os.ReadFile("/proc/cpuinfo")
	for text := range strings.Lines(string(cpu)) {
		if _, model, ok := strings.Cut(text, ": "); ok && strings.HasPrefix(text, "model name") {
			m.Model = strings.TrimSpace(model)
			break
		}
	}
	load, _ := os.ReadFile("/proc/loadavg")
	m.Load = strings.Join(strings.Fields(string(load))[:3], " ")
	var fs unix.Statfs_t
	if unix.Statfs(o.dir, &fs) == nil {
		m.FileSystem = map[int64]string{unix.TMPFS_MAGIC: "tmpfs", unix.EXT4_SUPER_MAGIC: "ext4", unix.XFS_SUPER_MAGIC: "xfs", unix.BTRFS_SUPER_MAGIC: "btrfs", unix.OVERLAYFS_SUPER_MAGIC: "overlay"}[int64(fs.Type)]
	}
	for _, t := range tools(o, o.dir) {
		if t.version != "" {
			m.Versions[filepath.Base(t.argv[0])] = t.version
		}
	}
	return m
}

func (m machineInfo) text() string {
	var versions []string
	for name, v := range m.Versions {
		versions = append(versions, name+" "+v)
	}
	slices.Sort(versions)
	return fmt.Sprintf("%s, kernel %s, %d × %s, uid %d, workspaces on %s, load %s, %s\n%s\n",
		m.Date, m.Kernel, m.Processors, m.Model, m.UID, m.FileSystem, m.Load, m.Go, strings.Join(versions, ", "))
}

// summary makes a line of samples.
func summary(row string, samples []float64) line {
	s := slices.Sorted(slices.Values(samples))
	n := len(s)
	if n == 0 {
		return line{Row: row, Failed: "no sample"}
	}
	at := func(i float64) float64 { return s[min(max(int(math.Round(i)), 0), n-1)] }
	// The ranks between which the median lies with 95 % confidence (binomial, as normal).
	half := 0.98 * math.Sqrt(float64(n))
	middle := float64(n-1) / 2
	return line{Row: row, N: n, Median: (at(math.Floor(middle)) + at(math.Ceil(middle))) / 2, Low: at(middle - half), High: at(middle + half), P95: at(0.95 * float64(n-1))}
}

// compare fills in what is told beside the line called base: the overhead over it.
func compare(lines []line, bare, peer string) {
	find := func(name string) *line {
		for i := range lines {
			if lines[i].Row == name && lines[i].Failed == "" {
				return &lines[i]
			}
		}
		return nil
	}
	b, p := find(bare), find(peer)
	for i := range lines {
		l := &lines[i]
		if b == nil || l.Failed != "" || l.Row == bare {
			continue
		}
		l.Overhead = l.Median - b.Median
		if p != nil {
			l.Ratio = l.Overhead / (p.Median - b.Median)
		}
	}
}

func table(lines []line) {
	var keys []string
	for _, l := range lines {
		for k := range l.More {
			if !slices.Contains(keys, k) {
				keys = append(keys, k)
			}
		}
	}
	slices.Sort(keys)
	fmt.Printf("| %-34s | %9s | %19s | %9s | %9s | %7s | %5s |", "row", "median", "95 % of the median", "p95", "over bare", "ratio", "n")
	for _, k := range keys {
		fmt.Printf(" %s |", k)
	}
	fmt.Printf("\n|---|--:|--:|--:|--:|--:|--:|%s\n", strings.Repeat("--:|", len(keys)))
	for _, l := range lines {
		if l.Failed != "" {
			fmt.Printf("| %-34s | failed: %s |\n", l.Row, l.Failed)
			continue
		}
		over, ratio := "", ""
		if l.Overhead != 0 {
			over = fmt.Sprintf("%.3f", l.Overhead)
		}
		if l.Ratio != 0 {
			ratio = fmt.Sprintf("%.2f", l.Ratio)
		}
		fmt.Printf("| %-34s | %9.3f | %8.3f – %8.3f | %9.3f | %9s | %7s | %5d |", l.Row, l.Median, l.Low, l.High, l.P95, over, ratio, l.N)
		for _, k := range keys {
			if v, ok := l.More[k]; ok {
				fmt.Printf(" %.1f |", v)
			} else {
				fmt.Print(" |")
			}
		}
		fmt.Println()
	}
}

// measured is something that can be timed again and again.
type measured struct {
	name  string
	once  func() (float64, error)
	every int // round in which it takes part; slow ones do not in all
}

// slowMS is how many milliseconds a row may take in every round.
const slowMS = 40

// takeTurns times rows in rounds, in a new order each.
func takeTurns(rows []measured, rounds int) []line {
	samples := make([][]float64, len(rows))
	failed := make([]string, len(rows))
	for i := range rows {
		least := math.Inf(1)
		for range 3 { // caches fill
			v, err := rows[i].once()
			if err != nil {
				failed[i] = err.Error()
				break
			}
			least = min(least, v)
		}
		if slow := rounds / 20; slow > 1 && least > slowMS {
			rows[i].every = min(slow, int(least/slowMS)) // it still takes part twenty times
		}
		rows[i].every = max(rows[i].every, 1)
	}
	for round := range rounds {
		for _, i := range rand.Perm(len(rows)) {
			if failed[i] != "" || round%rows[i].every != 0 {
				continue
			}
			v, err := rows[i].once()
			if err != nil {
				failed[i] = err.Error()
				continue
			}
			samples[i] = append(samples[i], v)
		}
	}
	lines := make([]line, len(rows))
	for i, r := range rows {
		lines[i] = summary(r.name, samples[i])
		if failed[i] != "" {
			lines[i] = line{Row: r.name, Failed: failed[i]}
		}
	}
	return lines
}
