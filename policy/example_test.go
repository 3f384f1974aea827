package policy_test

import (
	"errors"
	"fmt"

	"github.com/sandbox-exec/sandbox-exec/policy"
)

var scope = policy.Scope{Cwd: "/work/app", Workspace: "/work/app", Home: "/home/me", User: "me"}

func ExamplePolicy_Decide() {
	p := &policy.Policy{}
	for _, script := range []string{
		"git status && rg -n deprecated src | head",
		"npm test",
		"cd / && rm -rf *",
	} {
		d := p.Decide(script, scope)
		fmt.Printf("%-5v %s\n", d.Verdict, script)
	}
	// Output:
	// allow git status && rg -n deprecated src | head
	// ask   npm test
	// deny  cd / && rm -rf *
}

func ExamplePolicy_DecideArgs() {
	p := &policy.Policy{Mode: policy.ModeAllow}
	fmt.Println(p.DecideArgs([]string{"echo", "$(rm -rf /)"}, scope).Verdict)
	fmt.Println(p.DecideArgs([]string{"sh", "-c", "echo $(rm -rf /)"}, scope).Verdict)
	// Output:
	// allow
	// deny
}

func ExampleDecision_Err() {
	p := &policy.Policy{Mode: policy.ModeAllow}
	err := p.Decide("make && git push --force", scope).Err()
	var needs *policy.NeedsApprovalError
	if errors.As(err, &needs) {
		fmt.Println(err)
	}
	// Output:
	// needs approval: git push --force: changes another repository; no rule or mode lifts this question; answer it for this call, or run something narrower
}

func ExamplePolicy_Check() {
	p := &policy.Policy{Rules: []policy.Rule{{
		Verdict:  policy.Deny,
		Pattern:  "git push",
		Reason:   "a person pushes",
		Match:    []string{"git -C lib push origin main", "sudo git push"},
		NotMatch: []string{"git pull"},
		Source:   "profile.toml:12",
	}}}
	fmt.Println(p.Check())
	fmt.Println(p.Decide("ls; git push", scope).Err())
	// Output:
	// <nil>
	// denied: git push: a person pushes; a rule denies it: profile.toml:12
}

func ExampleDecision_Explain() {
	script := "cd src && sudo make install"
	d := (&policy.Policy{Mode: policy.ModeAllow}).Decide(script, scope)
	fmt.Print(d.Explain(script))
	// Output:
	// ask (mode allow, shell bash)
	//
	//   cd src && sudo make install
	//   ~~~~~~
	//   process.exec  cd src
	//   allow, readonly: read-only
	//
	//   cd src && sudo make install
	//             ~~~~~~~~~~~~~~~~~
	//   process.exec  sudo make install
	//   ask, danger: privilege: runs with other privileges
	//   no rule or mode lifts this question; answer it for this call, or run something narrower
	//
	//   cd src && sudo make install
	//             ~~~~~~~~~~~~~~~~~
	//   process.exec  make install  (through sudo)
	//   allow, default: unknown-program: not known to be read-only
}

func ExamplePolicy_Suggest() {
	p := &policy.Policy{}
	for _, r := range p.Suggest("go test ./... && make lint", scope) {
		fmt.Println(r.Verdict, r.Pattern)
	}
	// Output:
	// allow go test *
	// allow make lint
}
