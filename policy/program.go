package policy

import "strings"

// program judges a call of a program that is neither a builtin, nor a wrapper
// nor a shell.
func (f *frame) program(base string, bare bool, c *command, st *state) output {
	trusted := bare || f.j.systemProgram(c.argv[0].text)
	if base == "find" || base == "gfind" {
		f.localProgram(c, bare)
		return f.find(c, st, bare)
	}
	if breakers[base] {
		f.remover(c, st)
		return output{}
	}
	if trusted && f.isVersionCall(base, c.args(), st) && !c.appended {
		f.add(c, f.withEnv(c, item{Target: Target{Reason: ReadOnly, Detail: "prints its version"}}))
		return output{}
	}
	if row := danger(base, c.args()); row != nil {
		spec := specTable()[base]
		if spec == nil || !trusted || !f.proven(spec, c, st) {
			f.add(c, item{Target: Target{Reason: row.reason, Detail: row.detail}, risk: riskDanger})
			f.written(base, c, st)
			return output{}
		}
	}
	switch {
	case base == "git" && setsProgram(c.args()):
		f.add(c, item{Target: Target{Reason: Persistence, Detail: "makes git run a program later"}, risk: riskDanger})
		return output{}
	case base == "rsync" && remoteOperand(c.args()):
		f.add(c, item{Target: Target{Reason: RemoteEffect, Detail: "copies files to or from another machine"}, risk: riskDanger})
		f.written(base, c, st)
		return output{}
	}
	if base == "kill" || base == "pkill" || base == "killall" {
		f.kill(c)
		return output{}
	}
	if code, ok := interpreterCode(base); ok {
		f.interpreter(c, code)
		return output{}
	}
	f.setuid(base, c)
	if specTable()[base] == nil && base != "git" {
		f.forwarded(c)
	}
	if !trusted {
		f.add(c, item{Target: Target{Reason: LocalProgram, Detail: "a program that is not one of the system's"}, risk: riskUnproven})
		f.written(base, c, st)
		return output{}
	}
	if base == "git" {
		return f.git(c, st)
	}
	if base == "mktemp" {
		f.add(c, item{Target: Target{Reason: FileChange, Detail: "makes a temporary file"}, risk: riskUnproven})
		f.written(base, c, st)
		if len(c.args()) == 0 || len(c.args()) == 1 && c.args()[0].literal() && (c.args()[0].text == "-d" || c.args()[0].text == "-q") {
			return output{kind: outTemp}
		}
		return output{}
	}
	if s := specTable()[base]; s != nil {
		it, out := f.readOnly(s, c, st)
		if it.risk == riskUnproven {
			f.written(base, c, st)
			if f.j.fileRules && s.args != argText {
				f.operandsRead(c, c.args(), st)
			}
		}
		f.add(c, f.withEnv(c, it))
		return out
	}
	t := Target{Reason: UnknownProgram, Detail: "not known to be read-only"}
	if listed("curl wget http https ping dig host nslookup traceroute nc ncat telnet apt apt-get dnf yum apk pacman brew pip pip3 npm pnpm yarn cargo gem go", base) {
		t.Detail = "not known to be read-only, and may use the network"
	}
	f.add(c, item{Target: t, risk: riskUnproven})
	f.written(base, c, st)
	return output{}
}

// forwarded tries the rules that ask and deny on the words behind the name of a
// program of which nothing is known: it may start them.
func (f *frame) forwarded(c *command) {
	if len(f.j.policy.Rules) == 0 {
		return
	}
	for i, w := range c.argv[1:min(len(c.argv), 9)] {
		if w.literal() && !w.mayBeOption() {
			c.layers = append(c.layers[:len(c.layers):len(c.layers)], f.j.newTexts(c.argv[i+1:]))
		}
	}
}

// operandsRead tries the rules about files on words that are no options.
func (f *frame) operandsRead(c *command, words []word, st *state) {
	for _, w := range words {
		if w.fixed == 0 || w.text[0] != '-' {
			f.readPath(c, w, st, false)
		}
	}
}

// withEnv withdraws the proof of a program that runs with a changed
// environment.
func (f *frame) withEnv(c *command, it item) item {
	if c.env && it.risk == riskSafe {
		it.risk, it.Reason, it.Detail = riskUnproven, Environment, "runs with a changed environment"
	}
	return it
}

// proven reports whether a call is read-only, without adding targets.
func (f *frame) proven(s *spec, c *command, st *state) bool {
	n := len(f.j.items)
	it, _ := f.readOnly(s, c, st)
	worst := it.risk
	for _, path := range f.j.items[n:] {
		worst = max(worst, path.risk)
	}
	f.j.items = f.j.items[:n]
	return worst == riskSafe
}

// interpreter judges the run of code in another language.
func (f *frame) interpreter(c *command, codeFlags string) {
	t := Target{Reason: Script, Detail: "runs a script"}
	program := false
	for _, a := range c.args() {
		switch {
		case a.fixed > 0 && a.text[0] == '-' && len(a.text) > 1:
			name, _, _ := strings.Cut(a.text, "=")
			if listed(codeFlags, name) || len(name) > 2 && name[1] != '-' && listed(codeFlags, name[:2]) {
				t.Reason, t.Detail, program = Code, "runs code from its arguments", true
			}
		case a.literal() && (a.text == "-" || strings.HasPrefix(a.text, "/dev/")):
		case a.process:
			f.add(c, item{Target: Target{Reason: PipedCode, Detail: "runs what comes out of a process substitution"}, risk: riskDanger})
			return
		default:
			program = true
		}
	}
	if !program && (c.in.kind == stdinUnknown || c.in.kind == stdinNames) {
		f.add(c, item{Target: Target{Reason: PipedCode, Detail: "runs what comes out of a pipe"}, risk: riskDanger})
		return
	}
	f.add(c, item{Target: t, risk: riskUnproven})
}

// setuid asks before a program is given the rights of its owner: chmod(1).
func (f *frame) setuid(base string, c *command) {
	if base != "chmod" || len(c.args()) == 0 {
		return
	}
	for _, a := range c.args() {
		if a.literal() && !strings.HasPrefix(a.text, "/") && (strings.Contains(a.text, "+s") || strings.Contains(a.text, "=s") || len(a.text) == 4 && isNumber(a.text) && a.text[0] != '0' && a.text[0] != '1') {
			f.add(c, item{Target: Target{Reason: Privilege, Detail: "lets a program run with the rights of its owner"}, risk: riskDanger})
			return
		}
	}
}
