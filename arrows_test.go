// Package sandboxexec_test holds the packages to the directions in which they
// may import each other.
package sandboxexec_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const module = "github.com/sandbox-exec/sandbox-exec"

// imports says what each package may import besides the standard library; ours
// stand without the module's path. A package that is not here is not allowed.
var imports = map[string][]string{
	// The judge knows text, not systems.
	"policy": {"mvdan.cc/sh/v3/syntax"},
	// The vocabulary knows neither commands nor backends.
	"sandbox": {},

	// What backends share and nobody else needs.
	"sandbox/internal/rundir": {"golang.org/x/sys/unix"},

	// It is outside of the sandbox and reads what comes from inside.
	"sandbox/relay": {"sandbox", "golang.org/x/net/dns/dnsmessage"},

	"sandbox/linux": {
		"sandbox", "sandbox/internal/rundir", "sandbox/relay", "sandbox/linux/internal/helper",
		"github.com/containerd/cgroups/v3", "github.com/landlock-lsm/go-landlock/landlock/syscall", "golang.org/x/sys/unix",
	},
	// It is initialised before all others, so it has almost none.
	"sandbox/linux/internal/helper": {},
	"sandbox/linux/filters":         {"golang.org/x/sys/unix"},
	"sandbox/darwin":                {"sandbox", "sandbox/internal/rundir", "sandbox/darwin/internal/process", "golang.org/x/sys/unix"},
	// Its init starts the helpers of a Mac, so Linux must not import it.
	"sandbox/darwin/internal/process": {"sandbox", "golang.org/x/sys/unix"},

	"profiles": {"policy", "sandbox", "github.com/pelletier/go-toml/v2", "github.com/pelletier/go-toml/v2/unstable"},
	// Only the runner names a backend.
	"runner": {"policy", "profiles", "sandbox", "sandbox/linux", "sandbox/darwin", "golang.org/x/sys/unix"},
	// Only the command line prints, reads flags and exits.
	"cmd/sandbox-exec": {"cmd/sandbox-exec/selftest", "policy", "profiles", "runner", "sandbox", "github.com/urfave/cli/v2", "golang.org/x/sys/unix"},
	// It attacks the program from outside and knows it by its command line.
	"cmd/sandbox-exec/selftest": {"profiles", "sandbox", "golang.org/x/sys/unix"},

	"examples":           {},
	"examples/approve":   {"policy", "runner"},
	"examples/embed":     {"policy", "runner"},
	"scripts/bench":      {"runner", "golang.org/x/sys/unix"},
	"scripts/genseccomp": {"sandbox/linux/filters", "github.com/seccomp/libseccomp-golang", "golang.org/x/sys/unix"},
	"scripts/testsum":    {},
}

// Packages of the standard library that only some may use, because they act on
// the caller's terminal, arguments or processes.
var restricted = map[string][]string{
	"flag": {"cmd/sandbox-exec", "scripts/bench", "scripts/genseccomp", "scripts/testsum"},
	"log":  {"examples/approve", "examples/embed", "scripts/genseccomp", "scripts/testsum"},
	"os/exec": {
		"scripts/bench", "sandbox", "sandbox/linux", "sandbox/darwin", "sandbox/darwin/internal/process", "runner",
		"cmd/sandbox-exec", "cmd/sandbox-exec/selftest", "scripts/genseccomp",
	},
	"net":    {"sandbox/relay", "sandbox/linux"},
	"plugin": {},
}

// The one init function of a system starts the helper, before other packages have
// run.
var mayInit = []string{"sandbox/linux/internal/helper", "sandbox/darwin/internal/process"}

func TestImports(t *testing.T) {
	seen := map[string]bool{}
	eachFile(t, func(pkg, file string, syntax *ast.File) {
		seen[pkg] = true
		allowed, known := imports[pkg]
		if !known {
			t.Errorf("%s: package %s is in no arrow: add it to arrows_test.go and ARCHITECTURE.md", file, pkg)
			return
		}
		for _, spec := range syntax.Imports {
			name, err := strconv.Unquote(spec.Path.Value)
			if err != nil {
				t.Fatal(err)
			}
			name = strings.TrimPrefix(name, module+"/")
			if users, ok := restricted[name]; ok && !slices.Contains(users, pkg) {
				t.Errorf("%s: %s may not import %s", file, pkg, name)
			}
			if (strings.Contains(strings.Split(name, "/")[0], ".") || isOurs(name)) && !slices.Contains(allowed, name) {
				t.Errorf("%s: %s may not import %s", file, pkg, name)
			}
		}
	})
	for _, pkg := range []string{"policy", "profiles", "runner", "sandbox", "sandbox/linux", "cmd/sandbox-exec"} {
		if !seen[pkg] {
			t.Errorf("no file of %s was looked at", pkg)
		}
	}
}

func TestInit(t *testing.T) {
	eachFile(t, func(pkg, file string, syntax *ast.File) {
		for _, decl := range syntax.Decls {
			f, ok := decl.(*ast.FuncDecl)
			if ok && f.Recv == nil && f.Name.Name == "init" && !slices.Contains(mayInit, pkg) {
				t.Errorf("%s: an init function: it would run in every embedding program", file)
			}
		}
	})
}

// Nobody but the command line and the helper ends the process.
func TestExit(t *testing.T) {
	eachFile(t, func(pkg, file string, syntax *ast.File) {
		if strings.HasPrefix(pkg, "cmd/") || strings.HasPrefix(pkg, "scripts/") || strings.HasPrefix(pkg, "examples/") || strings.HasPrefix(pkg, "sandbox/") {
			return
		}
		ast.Inspect(syntax, func(n ast.Node) bool {
			if sel, ok := n.(*ast.SelectorExpr); ok {
				if x, ok := sel.X.(*ast.Ident); ok && x.Name == "os" && (sel.Sel.Name == "Exit" || sel.Sel.Name == "Args") {
					t.Errorf("%s: os.%s", file, sel.Sel.Name)
				}
			}
			return true
		})
	})
}

func isOurs(name string) bool {
	_, ok := imports[name]
	return ok
}

// eachFile parses the files of every package, of every system, without tests.
func eachFile(t *testing.T, visit func(pkg, file string, syntax *ast.File)) {
	t.Helper()
	err := filepath.WalkDir(".", func(file string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && file != "." && (strings.HasPrefix(d.Name(), ".") || d.Name() == "testdata" || d.Name() == "vendor"):
			return fs.SkipDir
		case d.IsDir() || path.Ext(file) != ".go" || strings.HasSuffix(file, "_test.go"):
			return nil
		}
		syntax, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		visit(filepath.ToSlash(filepath.Dir(file)), file, syntax)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}
