package profiles

import (
	"path"
	"reflect"
	"regexp"
	"strings"
	"testing"
)

// Every row says why it is there, and none is there twice.
func TestRows(t *testing.T) {
	for _, d := range dataFiles {
		rows := reflect.ValueOf(d.rows)
		if rows.Len() == 0 {
			t.Errorf("%s: %s is empty", d.file, d.key)
		}
		seen := map[string]bool{}
		for i := range rows.Len() {
			row := rows.Index(i)
			text := func(field string) string {
				if f := row.FieldByName(field); f.IsValid() {
					return f.String()
				}
				return ""
			}
			id := strings.Join([]string{text("OS"), text("In"), text("Env"), text("Path"), text("File"), text("Name"), text("Pattern")}, " ")
			if seen[id] {
				t.Errorf("%s: twice: %s", d.file, id)
			}
			seen[id] = true
			if row.FieldByName("Reason").IsValid() && text("Reason") == "" {
				t.Errorf("%s: no reason: %s", d.file, id)
			}
			if row.FieldByName("Source").IsValid() && text("Source") == "" {
				t.Errorf("%s: no source: %s", d.file, id)
			}
			if os := text("OS"); os != "" && os != "linux" && os != "darwin" {
				t.Errorf("%s: unknown system %q: %s", d.file, os, id)
			}
		}
	}
}

// A row for one system that another row has for both would count twice.
func TestRowsOfOneSystemAreNotForBoth(t *testing.T) {
	both := map[string]bool{}
	for _, row := range secretRows {
		if row.OS == "" && row.Env == "" {
			both[row.Path] = true
		}
	}
	for _, row := range secretRows {
		if row.OS != "" && both[row.Path] {
			t.Errorf("%s is there for %s and for both", row.Path, row.OS)
		}
	}
}

// A row below another one adds nothing.
func TestSecretsAreNotBelowOthers(t *testing.T) {
	for _, a := range secretRows {
		for _, b := range secretRows {
			if a.Env == "" && b.Env == "" && strings.HasPrefix(a.Path, b.Path+"/") && (b.OS == "" || b.OS == a.OS) {
				t.Errorf("%s is below %s", a.Path, b.Path)
			}
		}
	}
}

var variable = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

func TestRowsAreWellFormed(t *testing.T) {
	clean := func(file, p string) {
		if rooted(p) != nil {
			t.Errorf("%s: path %q", file, p)
		}
	}
	for _, row := range secretRows {
		switch {
		case row.Env == "":
			clean("secrets.toml", row.Path)
		case !variable.MatchString(row.Env) || path.IsAbs(row.Path) || strings.HasPrefix(row.Path, "~"):
			t.Errorf("secrets.toml: %+v", row)
		}
	}
	for _, row := range socketRows {
		switch {
		case (row.Env == "") == (row.Path == ""):
			t.Errorf("sockets.toml: want a path or a variable: %+v", row)
		case row.Env == "":
			clean("sockets.toml", strings.Replace(strings.Replace(row.Path, "{run}", "/run", 1), "{uid}", "1", 1))
		case !variable.MatchString(row.Env):
			t.Errorf("sockets.toml: %+v", row)
		}
	}
	for _, row := range protectedRows {
		if row.In != "" && row.In != "git" || row.Guard != "block" && row.Guard != "notice" || path.Clean(row.Name) != row.Name || path.IsAbs(row.Name) {
			t.Errorf("protected.toml: %+v", row)
		}
		if strings.ToLower(row.Name) == ".git" || strings.HasPrefix(row.Name, ".git/") {
			t.Errorf("protected.toml: %s belongs to in = \"git\"", row.Name)
		}
	}
	for _, row := range passRows {
		if !variable.MatchString(strings.TrimSuffix(row.Name, "*")) {
			t.Errorf("environment.toml: name %q", row.Name)
		}
		if secretName(row.Name) {
			t.Errorf("environment.toml: %s passes and looks like a secret", row.Name)
		}
		if prefix, all := strings.CutSuffix(row.Name, "*"); all {
			for _, other := range passRows {
				if other != row && strings.HasPrefix(other.Name, prefix) {
					t.Errorf("environment.toml: %s is one of %s", other.Name, row.Name)
				}
			}
		}
	}
	for _, row := range secretNameRows {
		if _, err := path.Match(row.Pattern, ""); err != nil || row.Pattern != strings.ToUpper(row.Pattern) {
			t.Errorf("environment.toml: pattern %q", row.Pattern)
		}
	}
	for _, row := range cacheRows {
		if !variable.MatchString(row.Name) || !strings.HasPrefix(row.Value, "{cache}/") && !strings.HasPrefix(row.Value, "{home}/") {
			t.Errorf("caches.toml: %+v", row)
		}
	}
	for _, row := range hostRows {
		file := regexp.MustCompile(`^(\$[A-Za-z_]+|\{git\})`).ReplaceAllString(row.File, "/x")
		switch {
		case row.Set == "" || (row.Env == "") == (row.File == ""):
			t.Errorf("hosts.toml: want a set, and a file or a variable: %+v", row)
		case row.Env == "":
			clean("hosts.toml", file)
		case !variable.MatchString(strings.TrimSuffix(row.Env, "*")) || row.Keys != "":
			t.Errorf("hosts.toml: %+v", row)
		}
		if row.Keys != strings.ToLower(row.Keys) {
			t.Errorf("hosts.toml: keys are compared in lower case: %+v", row)
		}
	}
	for _, row := range disposableRows {
		if path.Base(row.Name) != row.Name || row.Name == "." || row.Name == ".." || row.Name == ".git" {
			t.Errorf("disposable.toml: name %q", row.Name)
		}
		for _, keep := range []string{".git", "src", "lib", ".env", ".ssh", ".github"} {
			if row.Name == keep {
				t.Errorf("disposable.toml: %s is not made anew", keep)
			}
		}
	}
}
