package policy

import (
	"net/netip"
	"path"
	"strconv"
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

// CheckHost judges a connection that the embedding program makes itself. Port
// 0 means any. A host that is no name and no address in the usual form is
// denied: what one reader takes for a name of a domain, another cuts short or
// reads as a number.
func (p *Policy) CheckHost(host string, port int, s Scope) Decision {
	j := newJudge(p, s)
	name := strings.ToLower(strings.TrimSuffix(host, "."))
	t := Target{Action: NetworkTo, Resource: name, Reason: NetworkAccess, Detail: "connects to a host"}
	if port != 0 {
		t.Resource += ":" + strconv.Itoa(port)
	}
	it := item{Target: t, risk: riskOutside}
	if !plainHost(name) || port < 0 || port > 65535 {
		it.Reason, it.Detail, it.risk = OddCharacter, "no host name or address in its usual form", riskBreaker
	}
	j.add(it)
	return j.decision("none")
}

// plainHost reports whether a host can be read in one way only: a name of
// letters, digits, hyphens and underscores whose last label is no number (RFC
// 3696, section 2), an IPv4 address of four decimal numbers, or an IPv6
// address in brackets without a zone.
func plainHost(host string) bool {
	if inner, ok := strings.CutPrefix(host, "["); ok {
		inner, ok = strings.CutSuffix(inner, "]")
		a, err := netip.ParseAddr(inner)
		return ok && err == nil && a.Is6() && a.Zone() == ""
	}
	labels := strings.Split(host, ".")
	if len(host) > 253 {
		return false
	}
	for _, l := range labels {
		if l == "" || len(l) > 63 || strings.Trim(l, "abcdefghijklmnopqrstuvwxyz0123456789-_") != "" || l[0] == '-' || l[len(l)-1] == '-' {
			return false
		}
	}
	last := labels[len(labels)-1]
	if last[0] < '0' || last[0] > '9' {
		return true
	}
	for _, l := range labels {
		if n, err := strconv.Atoi(l); err != nil || n > 255 || l != strconv.Itoa(n) {
			return false
		}
	}
	return len(labels) == 4
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
