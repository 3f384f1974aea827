package policy

import (
	"path"
	"strings"
)

// breakers are the programs that remove, and find, which can.
var breakers = map[string]bool{"rm": true, "grm": true, "srm": true, "rimraf": true, "find": true, "gfind": true}

// remover judges rm and its like: rm(1).
func (f *frame) remover(c *command, st *state) {
	recursive := c.argv[0].text == "rimraf" || path.Base(c.argv[0].text) == "rimraf"
	maybe := false
	var operands []word
	ended := false
	for _, a := range c.args() {
		switch {
		case ended || !a.mayBeOption() || a.text == "-" && a.literal():
			operands = append(operands, a)
		case a.text == "--" && a.literal():
			ended = true
		case !a.flagKnown() && (a.kind == globWord || a.below):
			operands = append(operands, a)
		case !a.flagKnown():
			maybe = maybe || a.split
			operands = append(operands, a)
		case strings.HasPrefix(a.text, "--"):
			name := a.text[2:]
			if strings.HasPrefix("recursive", name) || strings.HasPrefix("no-preserve-root", name) {
				recursive = true
			}
			maybe = maybe || !a.literal()
		default:
			recursive = recursive || strings.ContainsAny(a.text[:a.fixed], "rR")
			maybe = maybe || !a.literal()
		}
	}
	main := item{Target: Target{Reason: FileChange, Detail: "removes files"}, risk: riskUnproven}
	worsen := func(r risk, reason Reason, detail string) {
		if r > main.risk {
			main.risk, main.Reason, main.Detail = r, reason, detail
		}
	}
	for _, w := range operands {
		list := candidates(w, st, make([]string, 0, maxDirs))
		if w.kind == dynamicWord && !w.below {
			if recursive || maybe || c.appended || c.each {
				worsen(riskDanger, Destructive, "removal of what is known only when it runs")
			}
			if f.j.denyRules {
				f.addPath(c, FileWrite, w, w.text, DynamicPath, "the path is known only when it runs", riskUnproven, filePath{pattern: anyPath})
			}
			continue
		}
		if len(list) == 0 {
			if recursive || maybe {
				if w.kind == literalWord && f.j.disposableName(w.text) {
					continue
				}
				worsen(riskDanger, Destructive, "recursive removal in a folder that is known only when it runs")
			}
			continue
		}
		for i, raw := range list {
			lex := path.Clean(raw)
			if recursive || maybe {
				if reason := f.j.top(lex); reason != "" {
					if recursive {
						worsen(riskBreaker, reason, "removes "+lex)
					} else {
						worsen(riskDanger, Destructive, "may remove "+lex)
					}
					continue
				}
			}
			real := f.j.removed(raw)
			if recursive && real != lex && f.j.top(real) != "" {
				worsen(riskBreaker, f.j.top(real), "removes "+real+", to which "+lex+" leads")
				continue
			}
			if real != lex && !f.j.writable(real) {
				worsen(riskDanger, Destructive, "removes "+real+", to which "+lex+" leads")
			}
			if i >= max(st.likely, 1) && !recursive && !path.IsAbs(w.text) {
				continue
			}
			r := f.writeTo(c, w, raw, lex, real)
			switch {
			case r >= riskDanger:
				worsen(riskDanger, Destructive, "removes "+lex)
			case f.j.disposable(lex) || f.j.temporary(lex):
			case recursive:
				worsen(riskDanger, Destructive, "recursive removal of "+lex)
			case catchAll(path.Base(lex)), strings.HasSuffix(lex, "…"), w.kind == dynamicWord && c.each:
				worsen(riskDanger, Destructive, "removes everything in "+path.Dir(lex))
			}
		}
	}
	f.add(c, main)
}

// removed is what the removal of a path really removes: a link at its end is
// not followed, those before it are.
func (j *judge) removed(raw string) string {
	dir, base := path.Split(raw)
	if base == "" || base == "." || base == ".." {
		dir, base = raw, ""
	}
	fixed := dir
	if k := strings.IndexAny(dir, "*?["); k >= 0 {
		fixed = dir[:strings.LastIndexByte(dir[:k], '/')+1]
	}
	real := j.resolved(fixed)
	if real == "" {
		return path.Clean(raw)
	}
	return path.Join(real, dir[len(fixed):], base)
}

// findTests are the tests, options and actions of find that change nothing,
// with the number of words that follow: find(1), findutils 4.10.
var findTests = map[string]int{
	"-amin": 1, "-anewer": 1, "-atime": 1, "-cmin": 1, "-cnewer": 1, "-ctime": 1, "-empty": 0, "-executable": 0, "-false": 0,
	"-fstype": 1, "-gid": 1, "-group": 1, "-ilname": 1, "-iname": 1, "-inum": 1, "-ipath": 1, "-iregex": 1, "-iwholename": 1,
	"-links": 1, "-lname": 1, "-mmin": 1, "-mtime": 1, "-name": 1, "-newer": 1, "-nogroup": 0, "-nouser": 0, "-path": 1,
	"-perm": 1, "-readable": 0, "-regex": 1, "-samefile": 1, "-size": 1, "-type": 1, "-uid": 1, "-used": 1,
	"-user": 1, "-wholename": 1, "-writable": 0, "-xtype": 1, "-context": 1,
	"-not": 0, "!": 0, "-a": 0, "-and": 0, "-o": 0, "-or": 0, "(": 0, ")": 0, ",": 0,
}

// findNeutral do not filter.
var findNeutral = map[string]int{
	"-daystart": 0, "-depth": 0, "-d": 0, "-follow": 0, "-ignore_readdir_race": 0, "-noignore_readdir_race": 0, "-maxdepth": 1, "-mindepth": 1,
	"-mount": 0, "-noleaf": 0, "-nowarn": 0, "-warn": 0, "-xdev": 0, "-regextype": 1, "-true": 0, "-ls": 0,
	"-print": 0, "-print0": 0, "-printf": 1, "-prune": 0, "-quit": 0,
}

// find judges find(1): it lists, filters, and can remove, write and run.
func (f *frame) find(c *command, st *state, bare bool) output {
	args := c.args()
	i := 0
	for i < len(args) && args[i].literal() && (listed("-H -L -P -O0 -O1 -O2 -O3", args[i].text) || args[i].text == "-D") {
		if args[i].text == "-D" {
			i++
		}
		i++
	}
	var starts []word
	for i < len(args) && !expression(args[i]) {
		starts = append(starts, args[i])
		i++
	}
	if len(starts) == 0 {
		starts = []word{literal(".")}
	}
	loose := false
	for _, w := range starts {
		loose = loose || w.kind == globWord && w.fixed == 0 && !dotted(w)
	}
	main := item{Target: Target{Reason: ReadOnly}, risk: riskSafe}
	worsen := func(r risk, reason Reason, detail string) {
		if r > main.risk {
			main.risk, main.Reason, main.Detail = r, reason, detail
		}
	}
	if loose {
		worsen(riskUnproven, DynamicWord, "a name that the pattern matches could be a part of the expression; write ./ before it")
	}
	filtered, removes, names := false, false, true
	only, plain := "", true // the name that everything found has
	var runs [][]word
	for ; i < len(args); i++ {
		a := args[i]
		if !a.literal() {
			worsen(riskUnproven, DynamicWord, "a word of the expression is known only when it runs")
			main.Dynamic = true
			names = false
			continue
		}
		if n, ok := findNeutral[a.text]; ok {
			names = names && a.text != "-printf" && a.text != "-ls"
			for k := 1; k <= n && i+k < len(args); k++ {
				if args[i+k].split {
					worsen(riskUnproven, DynamicWord, "a word of the expression may become several")
				}
			}
			i += n
			continue
		}
		n, ok := findTests[a.text]
		if !ok && strings.HasPrefix(a.text, "-newer") && len(a.text) == len("-newerXY") {
			n, ok = 1, true
		}
		if ok {
			switch a.text {
			case "-name", "-iname", "-path", "-ipath", "-wholename", "-iwholename":
				filtered = filtered || i+1 >= len(args) || strings.Trim(args[i+1].text, "*/") != ""
				if a.text == "-name" && i+1 < len(args) && args[i+1].literal() {
					only = args[i+1].text
				}
			case "!", "-not", "-a", "-and", "-o", "-or", "(", ")", ",":
				filtered = filtered || a.text == "!" || a.text == "-not"
				plain = plain && (a.text == "-a" || a.text == "-and")
			default:
				filtered = true
			}
			for k := 1; k <= n && i+k < len(args); k++ {
				if w := args[i+k]; w.split && !dotted(w) {
					worsen(riskUnproven, DynamicWord, "a word of the expression may become several; quote it")
				} else if a.text == "-newer" || a.text == "-samefile" || a.text == "-anewer" || a.text == "-cnewer" {
					f.readPath(c, w, st, false)
				}
			}
			i += n
			continue
		}
		switch a.text {
		case "-delete":
			removes = true
		case "-exec", "-execdir", "-ok", "-okdir":
			var run []word
			for i++; i < len(args) && !(args[i].literal() && (args[i].text == ";" || args[i].text == "+" && len(run) > 0 && strings.Contains(run[len(run)-1].text, "{}"))); i++ {
				run = append(run, args[i])
			}
			runs = append(runs, run)
		case "-fprint", "-fprint0", "-fls", "-fprintf":
			if i++; i < len(args) {
				worsen(max(riskUnproven, f.writePath(c, args[i], st)), FileChange, "writes a list")
			}
			if a.text == "-fprintf" {
				i++
			}
		case "-files0-from":
			worsen(riskUnproven, UnknownOption, "start points come from a file")
			i++
		default:
			worsen(riskUnproven, UnknownOption, "not a test that is known: "+a.text)
		}
	}
	var tops Reason
	var topPath string
	anyOutside, anyDynamic := false, false
	for _, w := range starts {
		list := candidates(w, st, make([]string, 0, maxDirs))
		if len(list) == 0 || w.kind == dynamicWord && !w.below {
			anyDynamic = true
		}
		for _, raw := range list {
			if r := f.j.top(path.Clean(raw)); r != "" && w.kind != dynamicWord {
				tops, topPath = r, path.Clean(raw)
			}
			if lex := path.Clean(raw); !f.j.disposable(lex) && !f.j.temporary(lex) && !(plain && only != "" && f.j.disposable(lex+"/…/"+only)) {
				anyOutside = true
			}
		}
	}
	if removes {
		switch {
		case tops != "" && !filtered && !anyDynamic:
			worsen(riskBreaker, tops, "removes everything below "+topPath)
		case tops != "" || anyOutside || anyDynamic:
			worsen(riskDanger, Destructive, "removes every file that it finds")
		default:
			worsen(riskUnproven, FileChange, "removes files")
		}
	}
	for _, w := range starts {
		if r := f.readPath(c, w, st, false); r > riskSafe {
			names = false
		}
	}
	main.Target.Argv = nil
	f.add(c, main)
	tail := "…"
	if plain && only != "" && !strings.Contains(only, "/") {
		tail = "…/" + only
	}
	found := "./" + tail
	if len(starts) == 1 && starts[0].literal() {
		found = strings.TrimSuffix(starts[0].text, "/") + "/" + tail
	}
	for _, run := range runs {
		if len(run) == 0 {
			continue
		}
		base := path.Base(run[0].text)
		if tops != "" && !filtered && run[0].literal() && (breakers[base] || base == "shred" || base == "unlink") {
			f.add(c, item{Target: Target{Reason: tops, Detail: "removes everything below " + topPath}, risk: riskBreaker})
		}
		inner := &command{span: c.span, found: found, each: true, noFunc: true}
		inner.wrappers = append(c.wrappers[:len(c.wrappers):len(c.wrappers)], "find")
		inner.layers = append(c.layers[:len(c.layers):len(c.layers)], f.j.newTexts(c.argv))
		for _, w := range run {
			if k := strings.Index(w.text, "{}"); k >= 0 && w.literal() {
				if w.text == "{}" {
					w = word{text: found, fixed: len(found) - len(tail), kind: dynamicWord, below: tops == "" && !anyDynamic, pos: w.pos, end: w.end}
				} else {
					w = word{text: w.text, fixed: k, kind: dynamicWord, pos: w.pos, end: w.end}
				}
			}
			inner.argv = append(inner.argv, w)
		}
		sub := *st
		f.run(inner, &sub)
	}
	if names && main.risk == riskSafe {
		return output{kind: outNames, text: tail}
	}
	return output{}
}

// dotted reports a pattern with a dot in it: no word of the expression of find
// has one, so that no name that matches can be taken for one.
func dotted(w word) bool {
	return w.kind == globWord && strings.Contains(w.text, ".") && !strings.ContainsAny(w.text, "[")
}

// expression reports whether a word begins the expression of find.
func expression(w word) bool {
	if w.fixed == 0 {
		return false
	}
	return w.text[0] == '-' && len(w.text) > 1 || w.literal() && (w.text == "(" || w.text == "!" || w.text == ")" || w.text == ",")
}
