package sandbox

import (
	"sort"
	"strings"
)

// Covers says whether dir is path or an ancestor of it. Both must be clean and
// absolute.
func Covers(dir, path string) bool {
	return dir == path || dir == "/" || strings.HasPrefix(path, dir) && path[len(dir)] == '/'
}

// AccessOf says what rules give for path: of the rules that cover it the
// highest sort decides, within a sort the longest path, of two rules for the
// same path the stricter. A path that no rule covers has no access.
func AccessOf(rules []FileRule, path string) Access {
	best, found := FileRule{}, false
	for _, r := range rules {
		if Covers(r.Path, path) && (!found || outranks(r, best)) {
			best, found = r, true
		}
	}
	return best.Access
}

func outranks(a, b FileRule) bool {
	switch {
	case a.Sort != b.Sort:
		return a.Sort > b.Sort
	case len(a.Path) != len(b.Path):
		return len(a.Path) > len(b.Path)
	}
	return a.Access < b.Access
}

// Effective reduces rules to those that count, shallow before deep, so that a
// backend that applies them in order, each to its whole subtree, ends with what
// AccessOf says.
func Effective(rules []FileRule) []FileRule {
	var out []FileRule
	for _, r := range rules {
		if counts(rules, r) {
			out = append(out, r)
		}
	}
	sort.SliceStable(out, func(i, j int) bool {
		return out[i].Path != out[j].Path && depth(out[i].Path) < depth(out[j].Path)
	})
	// One rule a path, and none that only repeats its parent.
	kept := out[:0]
	for _, r := range out {
		parent, covered := inherited(kept, r.Path)
		if covered && parent.Access == r.Access || len(kept) > 0 && same(kept, r.Path) {
			continue
		}
		kept = append(kept, r)
	}
	return kept
}

// counts is false for a rule that another one overrules everywhere.
func counts(rules []FileRule, r FileRule) bool {
	for _, o := range rules {
		if Covers(o.Path, r.Path) && (o.Sort > r.Sort || o.Path == r.Path && outranks(o, r)) {
			return false
		}
	}
	return true
}

func inherited(rules []FileRule, path string) (FileRule, bool) {
	best, found := FileRule{}, false
	for _, r := range rules {
		if Covers(r.Path, path) && r.Path != path && (!found || len(r.Path) > len(best.Path)) {
			best, found = r, true
		}
	}
	return best, found
}

func same(rules []FileRule, path string) bool {
	for _, r := range rules {
		if r.Path == path {
			return true
		}
	}
	return false
}

func depth(path string) int {
	if path == "/" {
		return 0
	}
	return strings.Count(path, "/")
}
