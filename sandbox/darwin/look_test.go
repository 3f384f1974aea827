package darwin

import (
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"testing"
)

func TestLook(t *testing.T) {
	dir, err := os.MkdirTemp("/var/tmp", "look")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	real := "/private" + dir // there is no other place to write to that is none of a Mac's links
	for _, d := range []string{"a/b", "c"} {
		if err := os.MkdirAll(filepath.Join(dir, d), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for link, target := range map[string]string{
		"a/up": "../c", "direct": dir + "/a/b", "chain": "direct", "loop": "loop", "dead": "nothing/x", "crooked": "a/up/../a/b", "a/b/self": ".",
	} {
		if err := os.Symlink(target, filepath.Join(dir, link)); err != nil {
			t.Fatal(err)
		}
	}
	v := "/var" // on the way to all of them
	for path, want := range map[string]File{
		"/":                {Path: "/"},
		dir + "/a/b":       {Path: real + "/a/b", Links: []string{v}},
		dir + "/a/up":      {Path: real + "/c", Links: []string{v, real + "/a/up"}},
		dir + "/a/up/new":  {Path: real + "/c/new", Links: []string{v, real + "/a/up"}, Absent: true},
		dir + "/chain":     {Path: real + "/a/b", Links: []string{v, real + "/chain", real + "/direct", v}},
		dir + "/crooked":   {Path: real + "/a/b", Links: []string{v, real + "/crooked", real + "/a/up"}},
		dir + "/a/b/self":  {Path: real + "/a/b", Links: []string{v, real + "/a/b/self"}},
		dir + "/dead":      {Path: real + "/nothing/x", Links: []string{v, real + "/dead"}, Absent: true},
		dir + "/dead/more": {Path: real + "/nothing/x/more", Links: []string{v, real + "/dead"}, Absent: true},
		dir + "/none/x":    {Path: real + "/none/x", Links: []string{v}, Absent: true},
	} {
		if got := Look([]string{path})[path]; !reflect.DeepEqual(got, want) {
			t.Errorf("%s:\nis   %+v\nwant %+v", path, got, want)
		}
	}
	if f := Look([]string{dir + "/loop"})[dir+"/loop"]; !f.Absent {
		t.Errorf("a loop leads to %+v", f)
	}
	if runtime.GOOS != "darwin" {
		if f := Look([]string{"/etc/hosts"})["/etc/hosts"]; f.Path != "/private/etc/hosts" || f.Absent {
			t.Errorf("/etc/hosts is %+v", f)
		}
	}
}
