// Testsum sums up runs of the tests: it prints what failed, and what was run by
// none of the runs and why, then one line. The same tests are run as different
// users; a test that one of them skips must be run by another.
//
//	go test -json ./... > one.json; testsum [-skips FILE] one.json …
//
// It fails if a test or a build failed, if nothing was run, and if a test that
// no run has run is not in FILE, which holds a name and a reason a line. Seeds
// that a fuzz target passes over do not count.
package main

import (
	"bufio"
	"encoding/json"
	"flag"
	"fmt"
	"log"
	"os"
	"slices"
	"strings"
)

// event is a line of go test -json; see go doc test2json.
type event struct {
	Action, Package, Test, Output, ImportPath, FailedBuild string
}

// test is what all runs say of one test.
type test struct {
	passed, failed, skipped bool
	output                  []string
}

func main() {
	log.SetFlags(0)
	log.SetPrefix("testsum: ")
	skips := flag.String("skips", "", "`file` that names the tests that may be skipped everywhere")
	flag.Parse()

	tests := map[string]*test{}
	var broken []string
	for _, file := range flag.Args() {
		if err := read(file, tests, &broken); err != nil {
			log.Fatal(err)
		}
	}
	may, err := mayBeSkipped(*skips)
	if err != nil {
		log.Fatal(err)
	}

	var passed, failed, skipped, surprising int
	var names []string
	for name := range tests {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		switch t := tests[name]; {
		case t.failed:
			failed++
			fmt.Printf("FAIL %s\n%s", name, strings.Join(t.output, ""))
		case t.passed:
			passed++
		case t.skipped && strings.Contains(name, "/seed#"):
		case t.skipped:
			skipped++
			reason, ok := may[name]
			if !ok {
				surprising++
				reason = "NOT EXPECTED: " + strings.TrimSpace(strings.Join(t.output, " "))
			}
			fmt.Printf("skip %s: %s\n", name, reason)
		default:
			failed++
			fmt.Printf("FAIL %s did not end\n%s", name, strings.Join(t.output, ""))
		}
	}
	for _, text := range broken {
		fmt.Print(text)
	}

	verdict := "ok"
	if failed > 0 || surprising > 0 || len(broken) > 0 || passed == 0 {
		verdict = "FAIL"
	}
	fmt.Printf("%s: %d tests passed, %d failed, %d skipped (%d unexpected), %d packages broken, in %d runs\n",
		verdict, passed, failed, skipped, surprising, len(broken), flag.NArg())
	if verdict != "ok" {
		os.Exit(1)
	}
}

func read(file string, tests map[string]*test, broken *[]string) error {
	f, err := os.Open(file)
	if err != nil {
		return err
	}
	defer f.Close()
	outside := map[string][]string{} // output of packages and builds
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 16<<20)
	for lines.Scan() {
		var e event
		if err := json.Unmarshal(lines.Bytes(), &e); err != nil {
			return fmt.Errorf("%s: %v: %.200s", file, err, lines.Text())
		}
		if e.Test == "" {
			switch e.Action {
			case "output":
				outside[e.Package] = append(outside[e.Package], e.Output)
			case "build-output":
				outside[e.ImportPath] = append(outside[e.ImportPath], e.Output)
			case "fail":
				if e.FailedBuild != "" || !anyFailed(tests, e.Package) {
					*broken = append(*broken, fmt.Sprintf("FAIL %s in %s\n%s", e.Package, file,
						strings.Join(append(outside[e.FailedBuild], outside[e.Package]...), "")))
				}
			}
			continue
		}
		name := e.Package + "." + e.Test
		t := tests[name]
		if t == nil {
			t = &test{}
			tests[name] = t
		}
		switch e.Action {
		case "run":
			if !t.failed {
				t.output = nil
			}
		case "output":
			if !strings.HasPrefix(e.Output, "=== ") && !strings.HasPrefix(strings.TrimSpace(e.Output), "--- ") {
				t.output = append(t.output, e.Output)
			}
		case "pass":
			t.passed = true
		case "fail":
			t.failed = true
			t.output = append([]string{"in " + file + "\n"}, t.output...)
		case "skip":
			t.skipped = true
		}
	}
	return lines.Err()
}

func anyFailed(tests map[string]*test, pkg string) bool {
	for name, t := range tests {
		if t.failed && strings.HasPrefix(name, pkg+".") {
			return true
		}
	}
	return false
}

func mayBeSkipped(file string) (map[string]string, error) {
	may := map[string]string{}
	if file == "" {
		return may, nil
	}
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	for i, line := range strings.Split(string(data), "\n") {
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		name, reason, ok := strings.Cut(line, " ")
		if reason = strings.TrimSpace(reason); !ok || reason == "" {
			return nil, fmt.Errorf("%s:%d: want a name and a reason", file, i+1)
		}
		may[name] = reason
	}
	return may, nil
}
