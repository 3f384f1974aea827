package sandbox

import (
	"math/rand/v2"
	"testing"
)

func TestAccessOf(t *testing.T) {
	rules := []FileRule{
		{Path: "/", Access: ReadOnly},
		{Path: "/home/u", Access: ReadWrite},
		{Path: "/home/u/.ssh", Access: None, Sort: Secret},
		{Path: "/home/u/.ssh/known_hosts", Access: ReadOnly},
		{Path: "/home/u/.npmrc", Access: ReadOnly, Sort: Secret},
		{Path: "/home/u/.state", Access: None, Sort: Hard},
		{Path: "/home/u/.state/x", Access: ReadWrite, Sort: Secret},
	}
	for path, want := range map[string]Access{
		"/etc":                     ReadOnly,
		"/home/u":                  ReadWrite,
		"/home/uv":                 ReadOnly,
		"/home/u/a":                ReadWrite,
		"/home/u/.ssh/id":          None,
		"/home/u/.ssh/known_hosts": None, // a normal rule does not reopen a secret
		"/home/u/.npmrc":           ReadOnly,
		"/home/u/.state/x":         None,
	} {
		if got := AccessOf(rules, path); got != want {
			t.Errorf("%s: %v, want %v", path, got, want)
		}
	}
	if got := AccessOf(nil, "/"); got != None {
		t.Errorf("no rules: %v, want none", got)
	}
}

// Applying the effective rules in order, each to its subtree, gives AccessOf
// for every path.
func TestEffectiveIsAccessOf(t *testing.T) {
	names := []string{"/", "/a", "/b", "/ab", "/a/x", "/a/y", "/a/x/1", "/b/x", "/a/x/1/2"}
	rnd := rand.New(rand.NewPCG(1, 2))
	for range 20_000 {
		var rules []FileRule
		for range rnd.IntN(8) {
			rules = append(rules, FileRule{
				Path:   names[rnd.IntN(len(names))],
				Access: Access(rnd.IntN(3)), Sort: Sort(rnd.IntN(3)),
			})
		}
		got := map[string]Access{}
		for _, r := range Effective(rules) {
			for _, p := range names {
				if Covers(r.Path, p) {
					got[p] = r.Access
				}
			}
		}
		for _, p := range names {
			if want := AccessOf(rules, p); got[p] != want {
				t.Fatalf("%v\neffective %v\n%s: %v, want %v", rules, Effective(rules), p, got[p], want)
			}
		}
	}
}
