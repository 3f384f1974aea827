package policy

import (
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// differences looks for what the parser understands as it is written, and a
// shell does not. Each was seen when both got the same text.
func (f *frame) differences(list []*syntax.Stmt) {
	if !strings.Contains(f.text, "<<") && !strings.Contains(f.text, "esac") && !strings.Contains(f.text, "coproc") {
		return
	}
	for _, s := range list {
		syntax.Walk(s, func(n syntax.Node) bool {
			switch n := n.(type) {
			case *syntax.CmdSubst:
				if !n.Backquotes {
					f.printed(n, n.Stmts)
				}
			case *syntax.ProcSubst:
				f.printed(n, n.Stmts)
			case *syntax.CaseItem:
				for _, p := range n.Patterns {
					if p.Lit() == "esac" {
						f.j.note(ShellDifference, "a pattern that is the end of the case", f.spanOf(p))
					}
				}
			case *syntax.CoprocClause:
				call, ok := n.Stmt.Cmd.(*syntax.CallExpr)
				if strings.Contains(f.node(n), "#") || ok && len(call.Args) > 0 && strings.Contains(f.node(call.Args[0]), "[") {
					f.j.note(ShellDifference, "a coprocess with a comment or a bracket", f.spanOf(n))
				}
			case *syntax.Redirect:
				f.documentLine(n)
			}
			return true
		})
	}
}

// printed is a substitution, which bash 5.2 parses, prints and parses again.
// What it prints loses a semicolon that comes after a here-document.
func (f *frame) printed(n syntax.Node, list []*syntax.Stmt) {
	if f.lang == syntax.LangPOSIX || !strings.Contains(f.node(n), "<<") {
		return
	}
	document, more := false, len(list) > 1
	for _, s := range list {
		syntax.Walk(s, func(n syntax.Node) bool {
			switch n := n.(type) {
			case *syntax.Redirect:
				document = document || n.Op == syntax.Hdoc || n.Op == syntax.DashHdoc
			case *syntax.Stmt:
				more = more || n.Background || n.Cmd != nil && compound(n.Cmd)
			case *syntax.FuncDecl:
				more = true
			}
			return true
		})
	}
	if document && more {
		f.j.note(ShellDifference, "a here-document and more commands in a substitution", f.spanOf(n))
	}
}

// documentLine looks at the rest of the line on which a here-document is
// announced. Behind ]] the parser takes the body for commands, and it joins a
// continued line where bash does not.
func (f *frame) documentLine(r *syntax.Redirect) {
	if r.Op != syntax.Hdoc && r.Op != syntax.DashHdoc {
		return
	}
	line, _, _ := strings.Cut(f.text[f.at(r.OpPos):], "\n")
	if strings.Contains(line, "[[") || strings.HasSuffix(line, "\\") {
		f.j.note(ShellDifference, "a here-document on a line that ends in another way", f.spanOf(r))
	}
}
