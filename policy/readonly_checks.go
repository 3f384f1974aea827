package policy

import (
	"path"
	"strings"
)

// noResponseFile refuses @file operands, from which binutils read options.
func noResponseFile(s *specCall) (Reason, string) {
	for _, w := range s.operands {
		if strings.HasPrefix(w.text, "@") || w.mayBeOption() && !w.below {
			return UnknownOption, "options come from a file"
		}
	}
	return "", ""
}

// keepsFiles asks before the last of several modes can be the one that
// replaces files: xz(1), zstd(1) and bzip2(1) take the last mode that is given.
func keepsFiles(s *specCall) (Reason, string) {
	if s.has("-d --decompress") && !s.has("-c --stdout --to-stdout") {
		return UnknownOption, "replaces files"
	}
	return "", ""
}

func grepCheck(s *specCall) (Reason, string) {
	if len(s.operands) > 0 && s.operands[0].kind == dynamicWord && s.operands[0].mayBeOption() {
		return DynamicWord, "a pattern that is known only when it runs could be an option; put -e before it"
	}
	for _, o := range s.opts {
		if (o.name == "-d" || o.name == "-D" || o.name == "--directories" || o.name == "--devices") && o.value.text == "recurse" && len(s.operands) < 2 {
			return UnknownOption, "recurses"
		}
	}
	if s.has("-r -R --recursive --dereference-recursive") {
		return s.hiddenBelow()
	}
	return "", ""
}

func rgCheck(s *specCall) (Reason, string) { return s.hiddenBelow() }

// hiddenBelow asks before a search through a folder that holds hidden files.
func (s *specCall) hiddenBelow() (Reason, string) {
	for _, w := range s.operands {
		for _, p := range candidates(w, s.st, make([]string, 0, maxDirs)) {
			for _, h := range s.f.j.scope.Hidden {
				if inside(h, path.Clean(p)) && !s.f.j.readable(h) {
					return OutsideRead, "searches a folder with hidden files below it"
				}
			}
		}
	}
	return "", ""
}

// jqCheck refuses modules, which are read from elsewhere: jq(1), MODULES.
func jqCheck(s *specCall) (Reason, string) {
	for _, w := range s.operands[:min(1, len(s.operands))] {
		if strings.Contains(w.text, "import") || strings.Contains(w.text, "include") {
			return UnknownOption, "the program loads a module"
		}
		if w.kind != literalWord && w.mayBeOption() {
			return DynamicWord, ""
		}
	}
	return "", ""
}

// yqCheck refuses operators that read files, the environment or run programs,
// and the sub-commands of yq 4 that are not eval.
func yqCheck(s *specCall) (Reason, string) {
	if len(s.operands) > 0 && s.operands[0].literal() && listed("e eval ea eval-all", s.operands[0].text) {
		s.operands = s.operands[1:]
	}
	for _, w := range s.operands[:min(1, len(s.operands))] {
		for _, op := range [...]string{"load", "system", "eval", "env", "include", "import", "split_doc", "envsubst"} {
			if strings.Contains(w.text, op) {
				return UnknownOption, "the program uses " + op
			}
		}
		if w.kind != literalWord {
			return DynamicWord, ""
		}
	}
	return "", ""
}

// sedCheck accepts programs that only print or delete lines: a list of
// addresses with p, =, d, q, Q, n, N, D, P, h, H, g, G, x, l, and s without the flags w
// and e. What writes, reads or runs (w, W, r, R, e, F with a file) is refused:
// sed(1).
func sedCheck(s *specCall) (Reason, string) {
	programs := s.operands[:min(1, len(s.operands))]
	if s.has("-e --expression") {
		programs = nil
		for _, o := range s.opts {
			if o.name == "-e" || o.name == "--expression" {
				programs = append(programs, o.value)
			}
		}
	}
	if len(programs) == 0 {
		return UnknownOption, "no program"
	}
	for _, w := range programs {
		if !w.literal() {
			return DynamicWord, "the program is known only when it runs"
		}
		if !harmlessSed(w.text) {
			return UnknownOption, "the program may write or run something"
		}
	}
	return "", ""
}

// harmlessSed reads a sed program and accepts what it fully understands.
func harmlessSed(p string) bool {
	for i := 0; ; {
		for i < len(p) && strings.IndexByte(" \t\n;{}", p[i]) >= 0 {
			i++
		}
		if i >= len(p) {
			return true
		}
		if p[i] == '#' {
			return false
		}
		for range 2 { // addresses
			n, ok := sedAddress(p[i:])
			if !ok {
				return false
			}
			i += n
			if n == 0 || i >= len(p) || p[i] != ',' {
				break
			}
			i++
		}
		for i < len(p) && (p[i] == ' ' || p[i] == '!') {
			i++
		}
		if i >= len(p) {
			return false
		}
		switch c := p[i]; c {
		case '{':
			i++
			continue
		case 'p', '=', 'd', 'n', 'N', 'D', 'P', 'h', 'H', 'g', 'G', 'x':
			i++
		case ':', 'b', 't', 'T': // a label
			for i++; i < len(p) && (p[i] == ' ' || p[i] == '_' || p[i] >= '0' && p[i] <= '9' || p[i] >= 'A' && p[i] <= 'Z' || p[i] >= 'a' && p[i] <= 'z'); i++ {
			}
		case 'q', 'Q', 'l':
			i++
			for i < len(p) && (p[i] == ' ' || p[i] >= '0' && p[i] <= '9') {
				i++
			}
		case 's', 'y':
			n, ok := sedSubstitute(p[i:])
			if !ok {
				return false
			}
			i += n
		default:
			return false
		}
		for i < len(p) && p[i] == ' ' {
			i++
		}
		if i < len(p) && p[i] != ';' && p[i] != '\n' && p[i] != '}' {
			return false
		}
	}
}

func sedAddress(p string) (int, bool) {
	i := 0
	switch {
	case p == "":
		return 0, true
	case p[0] >= '0' && p[0] <= '9', p[0] == '+', p[0] == '~':
		for i < len(p) && (p[i] >= '0' && p[i] <= '9' || p[i] == '~' || p[i] == '+') {
			i++
		}
		return i, true
	case p[0] == '$':
		return 1, true
	case p[0] == '/':
		n := delimited(p[1:], '/')
		if n < 0 {
			return 0, false
		}
		i = n + 2
		for i < len(p) && (p[i] == 'I' || p[i] == 'M') {
			i++
		}
		return i, true
	}
	return 0, true
}

// delimited returns the position of the delimiter that ends a pattern. A
// bracket expression may hold the delimiter in some versions; then it is not
// understood.
func delimited(p string, d byte) int {
	for i := 0; i < len(p); i++ {
		switch p[i] {
		case '\\':
			i++
		case '\n':
			return -1
		case '[':
			k := strings.IndexByte(p[i:], ']')
			if k < 0 || strings.IndexByte(p[i:i+k+1], d) >= 0 {
				return -1
			}
		case d:
			return i
		}
	}
	return -1
}

func sedSubstitute(p string) (int, bool) {
	if len(p) < 2 || strings.IndexByte("/|,#:@%!+_~;=", p[1]) < 0 {
		return 0, false
	}
	d := p[1]
	n := delimited(p[2:], d)
	if n < 0 {
		return 0, false
	}
	i := 2 + n + 1
	for i < len(p) && p[i] != d { // the replacement has no brackets
		if p[i] == '\\' {
			i++
		} else if p[i] == '\n' {
			return 0, false
		}
		i++
	}
	if i >= len(p) {
		return 0, false
	}
	i++
	for i < len(p) && (strings.IndexByte("gpiIM", p[i]) >= 0 || p[i] >= '0' && p[i] <= '9') {
		if p[0] == 'y' {
			return 0, false
		}
		i++
	}
	return i, true
}

// awkCheck accepts programs that can neither run nor write nor read anything
// else: no pipes, no redirections, no system, getline or extensions (gawk(1)).
func awkCheck(s *specCall) (Reason, string) {
	if len(s.operands) == 0 {
		return UnknownOption, "no program"
	}
	w := s.operands[0]
	if !w.literal() {
		return DynamicWord, "the program is known only when it runs"
	}
	p := strings.ReplaceAll(w.text, "||", "  ")
	p = strings.ReplaceAll(p, ">=", "  ")
	if strings.ContainsAny(p, "|>@") {
		return UnknownOption, "the program may write or run something"
	}
	for _, word := range [...]string{"system", "getline", "ARGV", "ARGC", "ENVIRON", "PROCINFO", "extension"} {
		if strings.Contains(p, word) {
			return UnknownOption, "the program uses " + word
		}
	}
	for _, o := range s.opts {
		if o.name == "-v" || o.name == "--assign" {
			if k := strings.IndexByte(o.value.text, '='); k <= 0 || k > o.value.fixed || strings.HasPrefix(o.value.text, "ARG") {
				return DynamicWord, "an assignment that is known only when it runs"
			}
		}
	}
	for _, w := range s.operands[1:] {
		if strings.HasPrefix(w.text, "ARG") {
			return UnknownOption, "sets what is read"
		}
	}
	return "", ""
}

func dateCheck(s *specCall) (Reason, string) {
	for _, w := range s.operands {
		if w.fixed == 0 || w.text[0] != '+' || w.split {
			return UnknownOption, "an operand that is not a format sets the clock"
		}
	}
	for _, o := range s.opts {
		if o.name == "-r" && !isNumber(o.value.text) {
			if r := s.f.readPath(s.c, o.value, s.st, false); r > riskSafe {
				return OutsideRead, "reads the date of a file"
			}
		}
	}
	return "", ""
}

// psCheck accepts the BSD letters that do not show environments.
func psCheck(s *specCall) (Reason, string) {
	for _, w := range s.operands {
		if !w.literal() || strings.Trim(w.text, "auxfjlwrtvhHLmTnc0123456789,") != "" {
			return UnknownOption, "may show the environment of processes"
		}
	}
	return "", ""
}

func ipCheck(s *specCall) (Reason, string) {
	ops := s.f.j.newTexts(s.operands)
	if len(ops) == 0 || !listed("a addr address r route l link n neigh neighbor neighbour rule maddr", ops[0]) || !s.operands[0].literal() {
		return UnknownOption, "not a query"
	}
	if len(ops) > 1 && !listed("show list ls s sh", ops[1]) || len(ops) > 4 {
		return UnknownOption, "not a query"
	}
	for _, w := range s.operands {
		if !w.literal() || strings.HasPrefix(w.text, "-") {
			return UnknownOption, "not a query"
		}
	}
	return "", ""
}

func getentCheck(s *specCall) (Reason, string) {
	if len(s.operands) == 0 || !listed("passwd group services protocols shells", s.operands[0].text) {
		return UnknownOption, "may ask the network"
	}
	return "", ""
}

// tarList accepts only the listing of an archive. tar has many options that
// run programs, a host before ":" is one (tar(1), --rsh-command).
func tarList(s *specCall) (Reason, string) {
	list, valueNext := false, false
	for i, w := range s.operands {
		if !w.literal() && !(valueNext && w.fixed > 0 && w.text[0] != '-') {
			return DynamicWord, ""
		}
		t := w.text
		switch {
		case valueNext:
			if strings.Contains(t, ":") {
				return UnknownOption, "a host before the name of the archive"
			}
			if r := s.f.readPath(s.c, w, s.st, false); t != "-" && r > riskSafe {
				return OutsideRead, "reads outside the readable roots"
			}
			valueNext = false
		case t == "--list":
			list = true
		case strings.HasPrefix(t, "--file="):
			if strings.Contains(t, ":") {
				return UnknownOption, "a host before the name of the archive"
			}
			if r := s.f.readPath(s.c, w.from(len("--file=")), s.st, false); r > riskSafe {
				return OutsideRead, "reads outside the readable roots"
			}
		case t == "--verbose", t == "--gzip", t == "--bzip2", t == "--xz", t == "--zstd":
		case strings.HasPrefix(t, "--"):
			return UnknownOption, "an option that is not on the read-only list: " + t
		case i == 0 || strings.HasPrefix(t, "-"):
			for k, c := range strings.TrimPrefix(t, "-") {
				switch c {
				case 't':
					list = true
				case 'v', 'z', 'j', 'J', 'a', 'w', 'p':
				case 'f':
					if rest := strings.TrimPrefix(t, "-")[k+1:]; strings.HasPrefix(t, "-") && rest != "" {
						return UnknownOption, "write -f last"
					}
					valueNext = true
				default:
					return UnknownOption, "an option that is not on the read-only list"
				}
			}
		}
	}
	if !list || valueNext {
		return UnknownOption, "not the listing of an archive"
	}
	return "", ""
}

// goCheck: go help. The go command runs the C compiler, VCS tools and the tool
// chain that go.mod names when it loads or builds packages; version, env
// without -w and -u, doc, and list without building are left.
func goCheck(s *specCall) (Reason, string) {
	if len(s.operands) == 0 || !s.operands[0].literal() {
		return UnknownOption, "not a query"
	}
	rest := s.operands[1:]
	flags, operand := "", false
	switch s.operands[0].text {
	case "version":
		flags = "-m -v"
	case "env":
		flags = "-json -changed"
	case "doc":
		flags = "-all -c -cmd -short -src -u"
	case "help":
	case "list":
		flags = "-f -json -m -deps -test -e -find -u=false"
	default:
		return UnknownOption, "not a query"
	}
	if s.operands[0].text == "list" && len(s.st.dirs) > 0 {
		// It asks git about the state of the working tree.
		if why := s.f.j.repositoryRuns(s.st.dirs[0]); why != "" {
			return RepositoryState, why
		}
		s.f.j.git = true
	}
	for i, w := range rest {
		switch {
		case !w.literal() && w.mayBeOption():
			return DynamicWord, ""
		case strings.HasPrefix(w.text, "-") && !(i > 0 && rest[i-1].text == "-f"):
			if !listed(flags, w.text) && !(strings.HasPrefix(w.text, "-f=") && s.operands[0].text == "list") && !(strings.HasPrefix(w.text, "-json=") && s.operands[0].text == "list") || operand {
				return UnknownOption, "an option that is not on the read-only list: " + w.text
			}
		default:
			if s.operands[0].text == "version" {
				if r := s.f.readPath(s.c, w, s.st, false); r > riskSafe {
					return OutsideRead, "reads outside the readable roots"
				}
			}
			if s.operands[0].text == "list" && strings.Contains(w.text, "@") {
				return NetworkAccess, "asks the module proxy"
			}
		}
	}
	return "", ""
}

// npmCheck: npm-ls(1) reads node_modules and runs no scripts.
func npmCheck(s *specCall) (Reason, string) {
	if len(s.operands) == 0 || !listed("ls list ll la", s.operands[0].text) || !s.operands[0].literal() {
		return UnknownOption, "not a query"
	}
	for _, w := range s.operands[1:] {
		if w.mayBeOption() {
			name, _, _ := strings.Cut(w.text, "=")
			if !w.literal() || !listed("--depth -a --all --json --long -l --parseable -p --omit --include --link --prod --dev -g --global", name) {
				return UnknownOption, "an option that is not on the read-only list: " + w.text
			}
		} else if !w.literal() {
			return DynamicWord, ""
		}
	}
	return "", ""
}
