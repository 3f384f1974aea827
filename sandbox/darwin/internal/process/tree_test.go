package process

import (
	"slices"
	"testing"
)

func pids(list []entry) []int {
	out := []int{}
	for _, p := range list {
		out = append(out, p.pid)
	}
	slices.Sort(out)
	return out
}

// Each case is a sequence of what the system lists, and what lives of the tree
// of process 100 after each.
func TestTree(t *testing.T) {
	// The caller: shell 10 leads the session and a job of group 20, in which
	// helper 30 has a group of its own.
	foreign := []entry{
		{pid: 1, parent: 0, group: 1, session: 1, start: 1},
		{pid: 10, parent: 1, group: 10, session: 10, start: 2},
		{pid: 20, parent: 10, group: 20, session: 10, start: 3},
		{pid: 30, parent: 20, group: 30, session: 10, start: 4},
	}
	own := entry{pid: 100, parent: 30, group: 100, session: 100, start: 50}
	shared := entry{pid: 100, parent: 30, group: 20, session: 10, start: 50}
	type step struct {
		table []entry
		live  []int
	}
	for name, steps := range map[string][]step{
		"children and theirs": {
			{[]entry{own, {pid: 101, parent: 100, group: 100, session: 100, start: 51}, {pid: 102, parent: 101, group: 102, session: 102, start: 52}}, []int{100, 101, 102}},
		},
		"a child is listed before its parent": {
			{[]entry{{pid: 102, parent: 101, group: 102, session: 102, start: 52}, {pid: 101, parent: 100, group: 101, session: 100, start: 51}, own}, []int{100, 101, 102}},
		},
		"nothing of the caller's": {
			{[]entry{shared, {pid: 40, parent: 10, group: 40, session: 10, start: 60}, {pid: 41, parent: 20, group: 20, session: 10, start: 61}}, []int{100}},
		},
		"an orphan in the own session": {
			{[]entry{own}, []int{100}},
			{[]entry{own, {pid: 103, parent: 1, group: 100, session: 100, start: 53}}, []int{100, 103}},
		},
		"an orphan in a group of a process that was seen": {
			{[]entry{shared, {pid: 101, parent: 100, group: 101, session: 10, start: 51}}, []int{100, 101}},
			{[]entry{shared, {pid: 102, parent: 1, group: 101, session: 10, start: 52}}, []int{100, 102}},
			// The group lives on when the first of its orphans is gone too.
			{[]entry{shared, {pid: 103, parent: 1, group: 101, session: 10, start: 53}}, []int{100, 103}},
		},
		"an orphan that was seen with its parent": {
			{[]entry{shared, {pid: 101, parent: 100, group: 20, session: 10, start: 51}}, []int{100, 101}},
			{[]entry{{pid: 101, parent: 1, group: 20, session: 10, start: 51}}, []int{101}},
		},
		"a double fork whose middle is a zombie yet": {
			{[]entry{own, {pid: 101, parent: 100, group: 101, session: 101, start: 51, zombie: true}, {pid: 102, parent: 1, group: 101, session: 101, start: 52}}, []int{100, 102}},
		},
		"a double fork whose middle was never seen": { // does not hold: said in doc.go
			{[]entry{own}, []int{100}},
			{[]entry{own, {pid: 102, parent: 1, group: 101, session: 101, start: 52}}, []int{100}},
		},
		"the program is a zombie, its child is not": {
			{[]entry{own}, []int{100}},
			{[]entry{{pid: 100, parent: 30, group: 100, session: 100, start: 50, zombie: true}, {pid: 101, parent: 1, group: 100, session: 100, start: 51}}, []int{101}},
		},
		"a number that is another's now": {
			{[]entry{own, {pid: 101, parent: 100, group: 101, session: 101, start: 51}}, []int{100, 101}},
			{[]entry{own, {pid: 101, parent: 10, group: 101, session: 10, start: 70}, {pid: 104, parent: 101, group: 101, session: 10, start: 71}}, []int{100}},
		},
		"a number that was the tree's once, as a group": {
			{[]entry{own, {pid: 101, parent: 100, group: 101, session: 101, start: 51}}, []int{100, 101}},
			{[]entry{own}, []int{100}},
			{[]entry{own}, []int{100}},
			{[]entry{own, {pid: 104, parent: 10, group: 101, session: 10, start: 71}}, []int{100}},
		},
		"a process that is older than the program": {
			{[]entry{own, {pid: 99, parent: 1, group: 100, session: 10, start: 49}}, []int{100}},
		},
		"a list that has neither the parent any more nor the child yet": {
			{[]entry{own}, []int{100}},
			{nil, []int{}},
			{[]entry{{pid: 101, parent: 1, group: 100, session: 100, start: 51}}, []int{101}},
		},
		"all is gone": {
			{[]entry{own}, []int{100}},
			{nil, []int{}},
			{[]entry{{pid: 100, parent: 10, group: 100, session: 10, start: 90}}, []int{}},
		},
	} {
		tree := newTree(100)
		for i, s := range steps {
			live, _ := tree.look(append(slices.Clone(foreign), s.table...))
			if got := pids(live); !slices.Equal(got, s.live) {
				t.Errorf("%s: look %d: live are %v, want %v", name, i, got, s.live)
			}
		}
	}
}

func TestTreeTellsWhatIsNewOnce(t *testing.T) {
	tree := newTree(100)
	table := []entry{{pid: 100, parent: 30, group: 100, session: 100, start: 50}}
	if _, fresh := tree.look(table); !slices.Equal(pids(fresh), []int{100}) {
		t.Errorf("first look: %v", fresh)
	}
	table = append(table, entry{pid: 101, parent: 100, group: 100, session: 100, start: 51})
	if _, fresh := tree.look(table); !slices.Equal(pids(fresh), []int{101}) {
		t.Errorf("second look: %v", fresh)
	}
	if _, fresh := tree.look(table); len(fresh) > 0 {
		t.Errorf("third look: %v", fresh)
	}
}

func TestGroupsAreNeverTheCallers(t *testing.T) {
	tree := newTree(100)
	live, _ := tree.look([]entry{
		{pid: 20, parent: 10, group: 20, session: 10, start: 3},
		{pid: 100, parent: 30, group: 20, session: 10, start: 50},
		{pid: 101, parent: 100, group: 101, session: 10, start: 51},
		{pid: 102, parent: 101, group: 101, session: 10, start: 52},
		{pid: 103, parent: 101, group: 10, session: 10, start: 52}, // joined the shell's
	})
	if got := tree.groups(live); !slices.Equal(got, []int{101}) {
		t.Errorf("groups %v, want 101 alone", got)
	}
}

func TestOveruse(t *testing.T) {
	for _, c := range []struct{ memory, memoryLimit, processes, processLimit, want int64 }{
		{100, 0, 100, 0, 0},
		{100, 100, 10, 10, 0},
		{101, 100, 10, 10, overMemory},
		{100, 100, 11, 10, overProcesses},
		{101, 100, 11, 10, overProcesses},
	} {
		if got := overuse(c.memory, c.memoryLimit, c.processes, c.processLimit); got != c.want {
			t.Errorf("%+v: got %d", c, got)
		}
	}
}

// No sequence of lists makes process 1 or the caller's own a part of the tree.
func FuzzTree(f *testing.F) {
	f.Add([]byte{100, 30, 20, 10, 50, 0, 101, 100, 20, 10, 51, 0, 10, 1, 10, 10, 2, 0})
	f.Fuzz(func(t *testing.T, b []byte) {
		tree := newTree(100)
		for len(b) >= 6 {
			var table []entry
			for n := 0; n < 8 && len(b) >= 6; n++ {
				p := entry{pid: int(b[0]), parent: int(b[1]), group: int(b[2]), session: int(b[3]), start: int64(b[4]), zombie: b[5]&1 != 0}
				b = b[6:]
				if p.pid == 100 || p.pid > 100 && p.start > 0 {
					table = append(table, p)
				}
			}
			// Older than all of the tree, and in none of its groups.
			table = append(table, entry{pid: 1, start: 0}, entry{pid: 10, parent: 1, group: 10, session: 10, start: 0})
			live, _ := tree.look(table)
			for _, p := range live {
				if p.pid < 100 {
					t.Fatalf("%+v is taken for one of the tree", p)
				}
				if p.zombie {
					t.Fatalf("%+v lives", p)
				}
			}
			for _, g := range tree.groups(live) {
				if g <= 10 {
					t.Fatalf("group %d would be signalled", g)
				}
			}
		}
	})
}
