package darwin

import (
	"regexp"
	"testing"
)

func TestCheckPath(t *testing.T) {
	for _, path := range []string{"/", "/a", "/a b/c", `/a"b\c(d)`, "/Users/jörg", "/a/..b/.c"} {
		if err := checkPath(path); err != nil {
			t.Errorf("%q: %v", path, err)
		}
	}
	// Spellings with which a rule compiles and never matches, and what would end
	// a line.
	for _, path := range []string{"", "a", "/a/", "/a//b", "/a/./b", "/a/../b", "/a/..", "//", "/a\nb", "/a\x00", "/a\x7f", "/a\u0085b", "/a\u2028b", "/a\xff"} {
		if checkPath(path) == nil {
			t.Errorf("%q: no error", path)
		}
	}
}

func TestAnyCase(t *testing.T) {
	for _, test := range []struct {
		prefix, path string
		match, miss  []string
	}{
		{"/w", "/w/.git/hooks", []string{"/w/.GIT/Hooks", "/w/.git/hooks/x", "/w/.git/hoo\u212a\u017f"}, []string{"/W/.git/hooks", "/w/xgit/hooks", "/w/.git/hooks2", "/x/w/.git/hooks"}},
		{"/a+b", `/a+b/c.[{(*?|$^\]})d`, []string{`/a+b/C.[{(*?|$^\]})D/x`}, []string{`/aab/c.[{(*?|$^\]})d`}},
		{"/w", "/w/Ärger", []string{"/w/ärgER"}, []string{"/w/arger"}},
	} {
		re := regexp.MustCompile(anyCase(test.prefix, test.path))
		for _, path := range test.match {
			if !re.MatchString(path) {
				t.Errorf("%s does not match %s", re, path)
			}
		}
		for _, path := range test.miss {
			if re.MatchString(path) {
				t.Errorf("%s matches %s", re, path)
			}
		}
	}
}
