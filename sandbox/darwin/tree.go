package darwin

import (
	"errors"
	"path"
	"slices"
	"syscall"

	"github.com/sandbox-exec/sandbox-exec/sandbox"
)

// tree is what a Spec says about files, in the order in which it is written.
type tree struct {
	rules     []sandbox.FileRule // shallow before deep
	protected []sandbox.FileRule // read-only, with no rule below
	hidden    []sandbox.FileRule // None, with no rule below
	folds     map[string]string  // protected path -> itself in letters of either case; "" = not needed
	onTheWay  []string           // may be looked at although they are hidden
	pinned    []string
	sockets   []string
	tmp       string
}

// treeOf resolves every path and puts the rules in order.
func treeOf(spec sandbox.Spec, h Host) (tree, error) {
	t := tree{folds: map[string]string{}, tmp: h.Tmp}
	if h.Tmp == "" {
		return t, &sandbox.SpecError{Field: "tmp", Value: h.Tmp, Err: errors.New("there is no directory for temporary files")}
	}
	var rules []sandbox.FileRule
	add := func(path string, access sandbox.Access, sort sandbox.Sort, reason string) {
		rules = append(rules, sandbox.FileRule{Path: path, Access: access, Sort: sort, Reason: reason})
	}
	var links, hops []string // all of them, and those on the way to what is open
	for _, r := range spec.Files {
		f := h.file(r.Path)
		if f.Absent && r.Access == sandbox.ReadWrite {
			return t, &sandbox.SpecError{
				Field: "writable path", Value: r.Path, Err: syscall.ENOENT,
				Hint: "make it first, or leave it out",
			}
		}
		add(f.Path, r.Access, r.Sort, r.Reason)
		links = append(links, f.Links...)
		if r.Access != sandbox.None {
			hops = append(hops, f.Links...)
		}
	}
	for _, s := range spec.Sockets {
		f := h.file(s)
		t.sockets = append(t.sockets, f.Path)
		links, hops = append(links, f.Links...), append(hops, f.Links...)
	}
	for _, row := range sharedRows {
		if !slices.ContainsFunc(rules, func(r sandbox.FileRule) bool { return r.Path == row.path }) {
			add(row.path, sandbox.None, sandbox.Normal, row.why)
		}
	}
	add(h.Tmp, sandbox.ReadWrite, sandbox.Hard, "temporary files")
	if h.UserTmp != "" {
		// Read-only: git, cc and make of the person run what it names.
		add(h.UserTmp+"/xcrun_db", sandbox.ReadOnly, sandbox.Normal, "where xcrun found the tools of Xcode")
	}
	if h.Self != "" {
		add(h.Self, sandbox.ReadOnly, sandbox.Hard, "starts the program")
	}
	for _, n := range spec.Protect {
		f := h.file(n.Path)
		root := writableAbove(rules, f.Path)
		if n.Guard != sandbox.Block || root == "" && sandbox.AccessOf(rules, f.Path) != sandbox.ReadWrite {
			continue
		}
		t.folds[f.Path] = ""
		if f.Absent && root != "" {
			t.folds[f.Path] = anyCase(root, f.Path)
		}
		add(f.Path, sandbox.ReadOnly, sandbox.Normal, n.Reason) // without effect where it is hidden
		links = append(links, f.Links...)
	}
	for _, l := range links {
		// Whoever moves it chooses what the next command is given, or what the
		// person's programs find there.
		if sandbox.AccessOf(rules, l) == sandbox.ReadWrite {
			add(l, sandbox.ReadOnly, sandbox.Normal, "a link that has to stay")
		}
	}
	rules = sandbox.Effective(rules)
	if len(rules) == 0 || rules[0].Path != "/" || rules[0].Access != sandbox.ReadOnly {
		return t, &sandbox.SpecError{
			Field: "file rule", Value: "/", Err: errors.New("must be read-only"),
			Hint: "grant the root read-only and hide what must not be seen",
		}
	}
	t.sort(rules)
	for _, r := range rules {
		if r.Access != sandbox.None {
			t.pass(rules, path.Dir(r.Path))
		}
		if r.Access != sandbox.ReadWrite {
			t.pin(rules, path.Dir(r.Path))
		} else {
			t.pin(rules, r.Path)
		}
	}
	for _, l := range hops {
		t.pass(rules, l)
	}
	return t, nil
}

func (h Host) file(path string) File {
	if f, ok := h.Files[path]; ok {
		return f
	}
	return File{Path: path}
}

// sort puts apart the rules below which there are none: nothing in them is
// opened or closed again, so that they can be read as lists.
func (t *tree) sort(rules []sandbox.FileRule) {
	for i, r := range rules {
		below := slices.ContainsFunc(rules[i+1:], func(o sandbox.FileRule) bool { return sandbox.Covers(r.Path, o.Path) })
		_, protected := t.folds[r.Path]
		switch {
		case !below && r.Access == sandbox.None:
			t.hidden = append(t.hidden, r)
		case !below && r.Access == sandbox.ReadOnly && protected:
			t.protected = append(t.protected, r)
		default:
			t.rules = append(t.rules, r)
		}
	}
}

// pass lets file and the directories above be looked at where they are hidden:
// programs that resolve a path by hand look at each.
func (t *tree) pass(rules []sandbox.FileRule, file string) {
	for ; file != "/"; file = path.Dir(file) {
		if sandbox.AccessOf(rules, file) == sandbox.None && !slices.Contains(t.onTheWay, file) {
			t.onTheWay = append(t.onTheWay, file)
		}
	}
}

// pin keeps file and the writable directories above where they are. One that
// was moved away would take what is hidden or protected in it to another path,
// and leave its place to another.
func (t *tree) pin(rules []sandbox.FileRule, file string) {
	for ; sandbox.AccessOf(rules, file) == sandbox.ReadWrite; file = path.Dir(file) {
		if !slices.Contains(t.pinned, file) {
			t.pinned = append(t.pinned, file)
		}
	}
}

// writableAbove is the topmost directory above file that can be written to,
// without a break; "" if there is none.
func writableAbove(rules []sandbox.FileRule, file string) string {
	top := ""
	for p := path.Dir(file); sandbox.AccessOf(rules, p) == sandbox.ReadWrite; p = path.Dir(p) {
		top = p
	}
	return top
}
