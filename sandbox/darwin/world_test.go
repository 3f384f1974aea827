package darwin

import (
	"fmt"
	"path"
	"slices"
	"strings"
)

// world is as much of a Mac as a verdict depends on: what the calls of a program
// ask the sandbox, and about which path.
type world struct {
	policy *sbpl
	links  map[string]string // symbolic link -> target
	there  map[string]bool   // files that are there
	setuid map[string]bool
	folds  bool // the volume takes A and a for one letter
}

func newWorld(p *sbpl) *world {
	return &world{policy: p, links: map[string]string{}, there: map[string]bool{}, setuid: map[string]bool{}}
}

// fact takes "link A -> B", "file A", "setuid A" or "folds".
func (w *world) fact(words []string) error {
	switch {
	case len(words) == 4 && words[0] == "link" && words[2] == "->":
		w.links[words[1]] = words[3]
	case len(words) == 2 && words[0] == "file":
		for p := words[1]; p != "/"; p = path.Dir(p) {
			w.there[p] = true
		}
	case len(words) == 2 && words[0] == "setuid":
		w.setuid[words[1]] = true
	case len(words) == 1 && words[0] == "folds":
		w.folds = true
	default:
		return fmt.Errorf("no fact of a Mac: %q", words)
	}
	return nil
}

// stored is the name under which a path is kept on the volume.
func (w *world) stored(p string) string {
	if w.folds {
		for have := range w.there {
			if strings.EqualFold(have, p) {
				return have
			}
		}
	}
	return p
}

// resolve follows the links in p. Each asks for its metadata.
func (w *world) resolve(p string, last bool) (string, []request) {
	var asks []request
	done := ""
	names := strings.Split(strings.Trim(p, "/"), "/")
	for hops := 0; len(names) > 0 && hops < 32; {
		next := w.stored(done + "/" + names[0])
		names = names[1:]
		target, isLink := w.links[next]
		if !isLink || len(names) == 0 && !last {
			done = next
			continue
		}
		asks = append(asks, request{op: "file-read-metadata", path: next})
		if !path.IsAbs(target) {
			target = path.Join(path.Dir(next), target)
		}
		names = append(strings.Split(strings.Trim(target, "/"), "/"), names...)
		done, hops = "", hops+1
	}
	if done == "" {
		done = "/"
	}
	return done, asks
}

// asks is what the kernel asks for one call.
func (w *world) asks(words []string) ([]request, error) {
	file := func(p string, last bool, ops ...string) []request {
		real, asks := w.resolve(p, last)
		for _, op := range ops {
			asks = append(asks, request{op: op, path: real})
		}
		return asks
	}
	create := func(p string) []request { return file(p, false, "file-write-create") }
	switch verb, args := words[0], words[1:]; {
	case len(args) == 1 && verb == "read" || len(args) == 1 && verb == "list":
		return file(args[0], true, "file-read-data"), nil
	case len(args) == 1 && verb == "stat":
		return file(args[0], true, "file-read-metadata"), nil
	case len(args) == 1 && verb == "readlink":
		return file(args[0], false, "file-read-metadata"), nil
	case len(args) == 1 && verb == "access":
		return file(args[0], true, "file-test-existence"), nil
	case len(args) == 1 && verb == "write":
		return file(args[0], true, "file-write-data"), nil
	case len(args) == 1 && verb == "create":
		return append(file(args[0], true, "file-write-create"), file(args[0], true, "file-write-data")...), nil
	case len(args) == 1 && verb == "mkdir":
		return create(args[0]), nil
	case len(args) == 1 && verb == "remove":
		return file(args[0], false, "file-write-unlink"), nil
	case len(args) == 1 && verb == "chmod":
		return file(args[0], true, "file-write-mode"), nil
	case len(args) == 2 && verb == "rename":
		asks := append(file(args[0], false, "file-write-unlink"), create(args[1])...)
		if real, _ := w.resolve(args[1], false); w.there[real] {
			asks = append(asks, file(args[1], false, "file-write-unlink")...)
		}
		return asks, nil
	case len(args) == 2 && verb == "link":
		return append(file(args[0], false, "file-link"), create(args[1])...), nil
	case len(args) == 2 && verb == "symlink":
		return create(args[1]), nil
	case len(args) == 1 && verb == "exec":
		if w.setuid[args[0]] {
			return nil, nil // forbidden-exec-sugid, whatever the profile says
		}
		return file(args[0], true, "process-exec*", "file-map-executable", "file-read-data"), nil
	case len(args) == 1 && verb == "tty": // of a terminal that the program made itself
		return []request{{op: "file-write-data", path: args[0], extension: "com.apple.sandbox.pty"}}, nil
	case len(args) == 2 && verb == "connect" && args[0] == "unix":
		real, asks := w.resolve(args[1], true)
		return append(asks, request{op: "system-socket", name: "AF_UNIX"}, request{op: "network-outbound", path: real, transport: "unix"}), nil
	case len(args) == 2 && verb == "bind" && args[0] == "unix":
		real, asks := w.resolve(args[1], true)
		return append(asks, request{op: "system-socket", name: "AF_UNIX"}, request{op: "network-bind", path: real, transport: "unix"},
			request{op: "file-write-create", path: real}), nil
	case len(args) == 2 && (verb == "connect" || verb == "bind" || verb == "accept") && (args[0] == "tcp" || args[0] == "udp"):
		host, port := args[1][:strings.LastIndexByte(args[1], ':')], args[1][strings.LastIndexByte(args[1], ':')+1:]
		op := map[string]string{"connect": "network-outbound", "bind": "network-bind", "accept": "network-inbound"}[verb]
		return []request{{op: op, transport: args[0], host: host, port: port}}, nil
	case len(args) == 1 && verb == "socket":
		return []request{{op: "system-socket", name: args[0]}}, nil
	case len(args) == 1 && verb == "signal":
		return []request{{op: "signal", target: args[0]}}, nil
	case len(args) == 1 && verb == "procargs": // arguments and variables of a process, sysctl(3) KERN_PROCARGS2
		return []request{{op: "process-info-pidinfo", target: args[0]}}, nil
	case len(args) == 0 && verb == "fork":
		return []request{{op: "process-fork"}}, nil
	case len(args) == 1 && verb == "lookup":
		return []request{{op: "mach-lookup", name: args[0]}}, nil
	case len(args) == 1 && verb == "sysctl":
		return []request{{op: "sysctl-read", name: args[0]}}, nil
	case len(args) == 1 && verb == "shm":
		return []request{{op: "ipc-posix-shm-write*", name: args[0]}}, nil
	case verb == "apply": // a sandbox in the sandbox
		return nil, nil
	case len(args) <= 1 && parents[verb] != "": // an operation by its own name
		r := request{op: verb}
		if len(args) == 1 && !path.IsAbs(args[0]) {
			r.name = args[0]
		} else if len(args) == 1 {
			real, asks := w.resolve(args[0], true)
			r.path, r.kind = real, "REGULAR-FILE"
			if strings.HasSuffix(args[0], "/") {
				r.kind = "DIRECTORY"
			}
			return append(asks, r), nil
		}
		return []request{r}, nil
	}
	return nil, fmt.Errorf("no call: %q", words)
}

// allows says whether a call succeeds, and by which rules.
func (w *world) allows(words []string) (bool, string, error) {
	asks, err := w.asks(words)
	if err != nil {
		return false, "", err
	}
	if len(asks) == 0 {
		return false, "the kernel refuses it in every sandbox", nil
	}
	var why []string
	for _, r := range asks {
		ok, rule := w.policy.allows(r)
		why = append(why, fmt.Sprintf("%s %s%s: %s", r.op, r.path, r.name, rule))
		if !ok {
			return false, why[len(why)-1], nil
		}
	}
	return true, strings.Join(why, "; "), nil
}

// words splits a line at blanks; "…" holds blanks.
func words(line string) []string {
	var out []string
	for i, part := range strings.Split(line, `"`) {
		if i%2 == 1 {
			out = append(out, part)
		} else {
			out = append(out, strings.Fields(part)...)
		}
	}
	return out
}

// block is one case of a file of verdicts: rules, facts and what is asked.
type block struct {
	line    int
	title   string
	profile string // name of a built-in profile, instead of rules
	rules   string
	facts   [][]string
	asks    []ask
}

type ask struct {
	line  int
	words []string
	want  string
	note  string
}

// readBlocks reads a file of verdicts; testdata/README.md has its form.
func readBlocks(text string) ([]block, error) {
	var blocks []block
	for i, line := range strings.Split(text, "\n") {
		line = strings.TrimSpace(line)
		if strings.HasPrefix(line, "# ") {
			blocks = append(blocks, block{line: i + 1, title: line[2:]})
			continue
		}
		if line == "" || strings.HasPrefix(line, "##") {
			continue
		}
		if len(blocks) == 0 {
			return nil, fmt.Errorf("line %d: before the first title", i+1)
		}
		b := &blocks[len(blocks)-1]
		switch {
		case strings.HasPrefix(line, "("):
			b.rules += line + "\n"
		case strings.HasPrefix(line, "! "):
			b.facts = append(b.facts, words(line[2:]))
		case strings.HasPrefix(line, "profile "):
			b.profile = strings.TrimSpace(line[len("profile "):])
		default:
			call, want, ok := strings.Cut(line, " = ")
			if !ok {
				return nil, fmt.Errorf("line %d: want CALL = allow|deny", i+1)
			}
			want, note, _ := strings.Cut(want, " ")
			if !slices.Contains([]string{"allow", "deny", "error"}, want) {
				return nil, fmt.Errorf("line %d: want allow, deny or error, not %q", i+1, want)
			}
			b.asks = append(b.asks, ask{i + 1, words(call), want, strings.Trim(note, "() ")})
		}
	}
	return blocks, nil
}
