package policy

import (
	"path"
	"strconv"
	"strings"
)

// risk orders what is known about a target before the mode and the rules are
// asked.
type risk uint8

const (
	riskSafe     risk = iota // proven to change nothing
	riskUnproven             // the mode decides
	riskOutside              // reads outside the roots: a question in every mode
	riskDanger               // a question, above rules
	riskBreaker              // never
)

// riskNone is the risk of a wrapper that does nothing without a command.
const riskNone risk = 255

// item is a target with what the rules need to judge it.
type item struct {
	Target
	filePath
	risk     risk
	words    []word
	by       []string   // network: the words of the command that connects
	layers   [][]string // other words that ask and deny rules are tried on
	denyOnly bool
}

// add adds a target of a command.
func (f *frame) add(c *command, it item) {
	if it.Action == "" {
		it.Action = Exec
	}
	if c.unsure != "" && it.risk < riskDanger && it.Action == Exec {
		it.risk, it.Reason, it.Detail = riskDanger, c.unsure, "the name of the program comes out of a variable or a substitution"
	}
	if it.Argv == nil && it.Action == Exec && len(c.argv) > 0 {
		it.Argv = f.j.newTexts(c.argv)
		it.words = c.argv
		if base := path.Base(it.Argv[0]); base != it.Argv[0] && base != "/" && base != "." {
			it.layers = append(it.layers, append([]string{base}, it.Argv[1:]...))
		}
		for _, w := range c.argv {
			it.Dynamic = it.Dynamic || w.kind == dynamicWord || w.process
		}
	}
	it.Wrappers = append(f.wrappers[:len(f.wrappers):len(f.wrappers)], c.wrappers...)
	if len(it.Wrappers) == 0 {
		it.Wrappers = nil
	}
	it.layers = append(it.layers, c.layers...)
	if f.outer != nil {
		it.Span = *f.outer
	} else {
		it.Span = c.span
	}
	f.j.add(it)
}

func (f *frame) addPath(c *command, a Action, w word, resource string, reason Reason, detail string, r risk, at filePath) risk {
	for i := max(0, len(f.j.items)-4); i < len(f.j.items); i++ {
		if it := &f.j.items[i]; it.Action == a && it.Resource == resource && it.risk == r && it.Span == f.span(c.span[0], c.span[1]) && it.denyOnly == (f.j.denyOnly > 0) && it.pattern == at.pattern && sameStrings(it.names, at.names) {
			return r
		}
	}
	f.add(c, item{Target: Target{Action: a, Resource: resource, Reason: reason, Detail: detail, Dynamic: w.kind == dynamicWord}, risk: r, filePath: at})
	return r
}

func (j *judge) add(it item) {
	if j.dry > 0 {
		return
	}
	it.denyOnly = j.denyOnly > 0
	if it.denyOnly && it.risk < riskBreaker && !j.denyRules {
		return
	}
	if j.repeat > 0 {
		key := string(rune(it.risk)) + strconv.FormatBool(it.denyOnly) + string(it.Action) + "\x00" + string(it.Reason) + "\x00" + it.Resource + "\x00" + strings.Join(it.Argv, "\x00") + "\x00" + strings.Join(it.Wrappers, "\x00")
		if j.seen[key] {
			return
		}
		if j.seen == nil {
			j.seen = map[string]bool{}
		}
		j.seen[key] = true
	}
	j.items = append(j.items, it)
}

// note marks the call as opaque.
func (j *judge) note(reason Reason, detail string, span [2]int) {
	if j.denyOnly > 0 || j.dry > 0 && reason != TooManySteps {
		return
	}
	for _, r := range j.opaque {
		if r == reason {
			return
		}
	}
	j.opaque = append(j.opaque, reason)
	j.items = append(j.items, item{Target: Target{Action: Exec, Resource: "", Span: span, Reason: reason, Detail: detail, Dynamic: true}, risk: riskDanger})
}

func (r Reason) risk() risk {
	if r == ShadowedName {
		return riskDanger
	}
	return riskUnproven
}
