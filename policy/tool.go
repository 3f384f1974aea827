package policy

import (
	"path"
	"strings"
)

// UnknownTool is a tool of the embedding program that no rule names. No sandbox
// holds such a tool, so that it asks in mode allow too.
const UnknownTool Reason = "unknown-tool"

// CheckTool judges the use of a tool of the embedding program by its name.
// Rules with the action tool.invoke settle it; what none settles asks, and is
// denied in mode plan.
func (p *Policy) CheckTool(name string, s Scope) Decision {
	j := newJudge(p, s)
	t := Target{Action: Tool, Resource: name, Reason: UnknownTool, Detail: "a tool of the program that asks"}
	j.add(item{Target: t, risk: riskOutside})
	return j.decision("none")
}

// CheckHost judges a connection that the embedding program makes itself, or
// that it carries for a command. Port 0 means one that is not known. A host that
// ParseHost refuses is denied.
func (p *Policy) CheckHost(host string, port int, s Scope) Decision {
	j := newJudge(p, s)
	h, err := ParseHost(host)
	it := item{Target: Target{Action: NetworkTo, Resource: h.WithPort(port), Reason: NetworkAccess, Detail: "connects to a host"}, risk: riskOutside}
	switch {
	case err != nil:
		it.Resource, it.Reason, it.Detail, it.risk = host, OddCharacter, "no host name or address in its usual form: "+err.(*HostError).Problem, riskBreaker
	case port < 0 || port > 65535:
		it.Reason, it.Detail, it.risk = OddCharacter, "no port", riskBreaker
	}
	j.add(it)
	return j.decision("none")
}

// CheckRead judges the reading of a file by the embedding program itself, as
// that of a command. A relative path is below s.Cwd. The file may be another
// one by the time it is opened; runner.Tools opens what was judged.
func (p *Policy) CheckRead(file string, s Scope) Decision {
	return p.checkFile(file, s, FileRead)
}

// CheckWrite is CheckRead for a file that is written, made or removed.
func (p *Policy) CheckWrite(file string, s Scope) Decision {
	return p.checkFile(file, s, FileWrite)
}

func (p *Policy) checkFile(file string, s Scope, a Action) Decision {
	j := newJudge(p, s)
	f := frame{j: j, argsOnly: true}
	st := state{dirs: []string{j.scope.Cwd}, likely: 1}
	c := &command{}
	switch {
	case file == "" || strings.IndexByte(file, 0) >= 0:
		j.add(item{Target: Target{Action: a, Resource: file, Reason: OddCharacter, Detail: "no path"}, risk: riskBreaker})
	case a == FileRead:
		f.readPath(c, literal(file), &st, false)
	default:
		f.writePath(c, literal(file), &st)
	}
	if len(j.items) == 0 {
		if !path.IsAbs(file) {
			file = path.Join(j.scope.Cwd, file)
		}
		j.add(item{Target: Target{Action: a, Resource: path.Clean(file), Reason: InsideRoot}})
	}
	return j.decision("none")
}
