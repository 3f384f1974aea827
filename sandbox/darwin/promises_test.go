package darwin

import (
	"os"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// onMac is a Mac with the directories of mac, and the paths of its tables.
type onMac struct {
	*world
	roots map[string]string
}

func newMac(s *sbpl, h Host) onMac {
	w := newWorld(s)
	w.folds = true
	for _, link := range []string{"tmp", "var", "etc"} {
		w.links["/"+link] = "private/" + link
	}
	w.setuid["/usr/bin/su"] = true
	return onMac{w, map[string]string{"~": "/Users/u", "w": "/Users/u/work", "t": h.Tmp}}
}

// real puts directories for ~, w and t.
func (m onMac) real(words []string) []string {
	out := slices.Clone(words)
	for i, word := range out[1:] {
		if root, rest, _ := strings.Cut(word, "/"); m.roots[root] != "" {
			out[1+i] = path.Join(m.roots[root], rest)
		}
	}
	return out
}

// The promises of testdata/promises.txt hold by the generated profile, whichever
// way Seatbelt decides; where they do not, docs/macos.md says so.
func TestPromises(t *testing.T) {
	data, err := os.ReadFile("../../testdata/promises.txt")
	if err != nil {
		t.Fatal(err)
	}
	spec, h := mac(t, "workspace", nil)
	p := compileOrFail(t, spec, h)
	place := strings.NewReplacer("{outside}", "x", "{host}", "127.0.0.1:1024", "{sock}", "/Users/u/sock")
	differences := map[string]bool{}
	for model, s := range models(t, p) {
		m := newMac(s, h)
		for i, line := range strings.Split(string(data), "\n") {
			fields := strings.Split(place.Replace(line), "|")
			if strings.HasPrefix(line, "! ") {
				if err := m.fact(m.real(words(fields[0]))[1:]); err != nil {
					t.Fatalf("line %d: %v", i+1, err)
				}
				continue
			}
			if line == "" || line[0] == '#' {
				continue
			}
			if len(fields) < 3 {
				t.Fatalf("line %d: want CALL | Linux | macOS", i+1)
			}
			linux, want := strings.TrimSpace(fields[1]), strings.TrimSpace(fields[2])
			if (linux != want) != (len(fields) > 3) {
				t.Errorf("line %d: a difference has a name, and only that", i+1)
			}
			if len(fields) > 3 {
				differences[strings.TrimSpace(fields[3])] = true
			}
			got, why := true, ""
			for _, call := range macCalls(m.real(words(fields[0]))) {
				ok, reason, err := m.allows(call)
				if err != nil {
					t.Fatalf("line %d: %v", i+1, err)
				}
				if !ok {
					got, why = false, reason
				}
			}
			if got != (want == "allow") {
				t.Errorf("line %d, %s: %q is allowed: %v, want %s: %s", i+1, model, fields[0], got, want, why)
			}
		}
	}
	named := named(t, "docs/macos.md")
	for id := range differences {
		if !named[id] {
			t.Errorf("docs/macos.md does not say how macOS differs in %q", id)
		}
		delete(named, id)
	}
	for id := range named {
		t.Errorf("docs/macos.md has a difference %q that no promise shows", id)
	}
}

// named are the differences that the document has rows for.
func named(t *testing.T, doc string) map[string]bool {
	t.Helper()
	text, err := os.ReadFile("../../" + doc)
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]bool{}
	for _, row := range regexp.MustCompile("(?m)^\\| `([a-z-]+)` \\|").FindAllStringSubmatch(string(text), -1) {
		out[row[1]] = true
	}
	return out
}

// What others were told of their profiles is asked of ours. What stays open is
// told.
func TestReports(t *testing.T) {
	doc, err := os.ReadFile("../../docs/macos.md")
	if err != nil {
		t.Fatal(err)
	}
	type made struct {
		host Host
		by   map[string]*sbpl
	}
	built := map[string]made{}
	for _, name := range expressible(t) {
		spec, h := mac(t, name, nil)
		built[name] = made{h, models(t, compileOrFail(t, spec, h))}
	}
	for _, b := range blocksOf(t, "testdata/reports.txt") {
		t.Run(b.title, func(t *testing.T) {
			if built[b.profile].by == nil {
				t.Fatalf("line %d: no profile %q", b.line, b.profile)
			}
			for model, s := range built[b.profile].by {
				m := newMac(s, built[b.profile].host)
				for _, a := range b.asks {
					if a.words[0] == "load" {
						continue // it was read
					}
					got, why, err := m.allows(m.real(a.words))
					if err != nil {
						t.Fatalf("line %d: %v", a.line, err)
					}
					if got != (a.want == "allow") {
						t.Errorf("line %d, %s: %q is allowed: %v, want %s: %s", a.line, model, a.words, got, a.want, why)
					}
				}
			}
			sources, _, _ := strings.Cut(b.title, ": ")
			for source := range strings.SplitSeq(sources, ", ") {
				open := slices.ContainsFunc(b.asks, func(a ask) bool { return a.note == "open" })
				if open && !strings.Contains(string(doc), source) {
					t.Errorf("docs/macos.md does not have %s, which stays open", source)
				}
			}
		})
	}
}

// macCalls are the calls of the evaluator's Mac for one of the table.
func macCalls(call []string) [][]string {
	switch {
	case call[0] == "write" && !strings.HasPrefix(call[1], "/dev/"): // a new file or an old one
		return [][]string{{"create", call[1]}}
	case call[0] == "serve" && call[1] == "tcp":
		return [][]string{{"socket", "AF_INET"}, {"bind", "tcp", "localhost:0"}, {"accept", "tcp", "localhost:0"}, {"connect", "tcp", "localhost:0"}}
	case call[0] == "serve":
		return [][]string{slices.Concat([]string{"bind"}, call[1:]), slices.Concat([]string{"connect"}, call[1:])}
	case call[0] == "shm-sysv":
		return [][]string{{"ipc-sysv-shm"}}
	case call[0] == "pty":
		return [][]string{{"pseudo-tty"}, {"write", "/dev/ptmx"}, {"tty", "/dev/ttys009"}}
	}
	return [][]string{call}
}
