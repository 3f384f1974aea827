// Package policy judges shell commands by their syntax tree: allow, ask or deny.
//
// A text passes gates on its raw bytes (gate.go), is parsed in the dialect of
// the shell that will run it, and is lowered to simple commands with what is
// known about directories, variables and functions at that point (lower.go,
// words.go, state.go, shellexpr.go). Builtins, wrappers and nested shells are
// peeled (builtins.go, run.go, wrappers.go), and each command is compared with
// tables: programs and options that are proven read-only (readonly.go,
// readonly_git.go), dangers (danger.go), hosts (network.go, host.go), environment variables (env.go) and the
// removal of the root or of home (breaker.go). What was found goes through one
// fixed order of stages with the rules and the mode of the policy (decide.go,
// rule.go). Most growth is a row in a table.
//
// It starts no process and expands nothing by running it. What it cannot know is
// opaque, and opaque is never allowed without a question. It is not a sandbox: a
// verdict is a reason to ask, not a reason to trust.
package policy
