package process

// entry is a process as the system lists it.
type entry struct {
	pid, parent, group, session int
	start                       int64 // when it began, in the system's unit; tells two processes of one number apart
	zombie                      bool
}

// tree is the program and all that came from it. What lost its parent is known by
// its process group or its session: their number is no process's but their
// leader's for as long as anything is in them.
type tree struct {
	born  int64        // when the root began; 0 = it was not seen yet
	known map[int]mark // numbers of processes, and of groups and sessions that they lead
}

type mark struct {
	start  int64 // when the process began
	absent bool  // nothing had the number at the last look
}

func newTree(root int) *tree { return &tree{known: map[int]mark{root: {}}} }

// look compares the tree with the system's list. It returns what lives of it, and
// what of that is new.
func (t *tree) look(table []entry) (live, fresh []entry) {
	for _, p := range table {
		m, known := t.known[p.pid]
		switch {
		case known && m.start == 0: // the root, seen for the first time
			t.known[p.pid], t.born = mark{start: p.start}, p.start
			if !p.zombie {
				fresh = append(fresh, p)
			}
		case known && m.start != p.start:
			// The number is another's now.
			delete(t.known, p.pid)
		}
	}
	for found := true; found; {
		found = false
		for _, p := range table {
			if _, known := t.known[p.pid]; known || p.pid <= 1 || p.start < t.born || !t.related(p) {
				continue
			}
			t.known[p.pid] = mark{start: p.start}
			found = true
			if !p.zombie {
				fresh = append(fresh, p)
			}
		}
	}
	present := make(map[int]bool, len(t.known))
	for _, p := range table {
		if _, known := t.known[p.pid]; !known {
			continue
		}
		if !p.zombie {
			live = append(live, p)
		}
		present[p.pid], present[p.group], present[p.session] = true, true, true
	}
	for id, m := range t.known {
		switch {
		case present[id] || t.born == 0:
			m.absent = false
		case m.absent:
			// Free for a process that is none of ours.
			delete(t.known, id)
			continue
		default:
			// The list is not made at one moment: a process may be gone from it
			// already, and its child not be in it yet.
			m.absent = true
		}
		t.known[id] = m
	}
	return live, fresh
}

// related says whether a process comes from one of the tree.
func (t *tree) related(p entry) bool {
	for _, of := range [...]int{p.parent, p.group, p.session} {
		if _, known := t.known[of]; known {
			return true
		}
	}
	return false
}

// groups are the process groups of live whose leader is or was of the tree. All
// of a group can be signalled at once, before any of it can fork again. A program
// that shares the group of its caller's has none of its own.
func (t *tree) groups(live []entry) []int {
	var out []int
	seen := map[int]bool{}
	for _, p := range live {
		if _, ours := t.known[p.group]; ours && !seen[p.group] {
			seen[p.group] = true
			out = append(out, p.group)
		}
	}
	return out
}

// Why the watch ended the tree.
const (
	overMemory    = 1
	overProcesses = 2
)

// overuse says why a tree that uses so much has to end; 0 = it need not.
// A limit of 0 is none.
func overuse(memory, memoryLimit, processes, processLimit int64) int64 {
	switch {
	case processLimit > 0 && processes > processLimit:
		return overProcesses
	case memoryLimit > 0 && memory > memoryLimit:
		return overMemory
	}
	return 0
}
