package policy

import (
	"path"
	"strings"
	"sync"
)

// gitVerb is a sub-command of git that is read-only with the options listed.
type gitVerb struct {
	names string
	options
	need  string // one of these options must be there
	max   int    // operands at most; 0 = any, none = -1
	first string // the first operand must be one of these
	bare  bool   // without operands and needed options it is read-only too
}

// Options that several verbs share: git-diff(1), git-log(1), git-rev-list(1).
// Left out everywhere: --output, --ext-diff, --textconv, --no-index,
// --contents, --filters, --open-files-in-pager, --show-signature, -O.
const (
	gitDiffShort = "puszRawbWtc0123456789"
	gitDiffValue = "SGUl"
	gitDiffGlued = "MCBDX"
	gitDiffLong  = " patch no-patch unified= raw patch-with-raw minimal patience histogram diff-algorithm= anchored= indent-heuristic no-indent-heuristic stat? stat-width= stat-name-width= stat-count= stat-graph-width= compact-summary numstat shortstat dirstat? cumulative summary patch-with-stat name-only name-status submodule? color? no-color color-moved? color-moved-ws= no-color-moved word-diff? word-diff-regex= color-words? no-renames rename-empty check full-index binary abbrev? no-abbrev find-renames? find-copies? find-copies-harder break-rewrites? irreversible-delete diff-filter= find-object= pickaxe-all pickaxe-regex relative? no-relative text ignore-cr-at-eol ignore-space-at-eol ignore-space-change ignore-all-space ignore-blank-lines ignore-matching-lines= inter-hunk-context= function-context exit-code quiet no-ext-diff no-textconv ignore-submodules? src-prefix= dst-prefix= no-prefix line-prefix= cached staged merge-base cc combined-all-paths no-color-moved-ws default-prefix output-indicator-new= output-indicator-old= output-indicator-context="
	gitRevShort  = "iEFPgqnm0123456789"
	gitRevValue  = "nL"
	gitRevLong   = " max-count= skip= since= after= until= before= author= committer= grep= grep-reflog= all-match invert-grep regexp-ignore-case basic-regexp extended-regexp fixed-strings perl-regexp remove-empty merges no-merges min-parents= max-parents= no-min-parents no-max-parents first-parent exclude-first-parent-only not all branches? tags? remotes? glob= exclude= reflog alternate-refs single-worktree ignore-missing bisect cherry-mark cherry-pick left-only right-only cherry walk-reflogs merge boundary simplify-by-decoration show-pulls full-history dense sparse simplify-merges ancestry-path? date-order author-date-order topo-order reverse no-walk? do-walk pretty? format= oneline abbrev-commit no-abbrev-commit encoding= expand-tabs? no-expand-tabs notes? no-notes relative-date date= parents children left-right graph no-graph show-linear-break? decorate? no-decorate decorate-refs= decorate-refs-exclude= clear-decorations source mailmap no-mailmap use-mailmap follow full-diff log-size count timestamp show-notes? diff-merges= no-diff-merges dd remerge-diff"
)

var gitVerbs = []gitVerb{
	{names: "status", options: options{short: "sbvz", glued: "uM", long: "short branch no-branch porcelain? long verbose untracked-files? ignored? ignore-submodules? column? no-column ahead-behind no-ahead-behind renames no-renames find-renames? show-stash null"}},
	{names: "log show whatchanged", options: options{short: gitDiffShort + gitRevShort, value: gitDiffValue + gitRevValue, glued: gitDiffGlued, long: gitDiffLong + gitRevLong}},
	{names: "diff", options: options{short: gitDiffShort, value: gitDiffValue, glued: gitDiffGlued, long: gitDiffLong}},
	{names: "diff-tree diff-index diff-files", options: options{short: gitDiffShort + "rmv", value: "SGUl", glued: gitDiffGlued, long: gitDiffLong + " root pretty? format= no-commit-id always merge-base oneline"}},
	{names: "blame annotate", options: options{short: "bltfnsewcp", value: "LS", glued: "MC", long: "root show-stats score-debug show-name show-number show-email porcelain line-porcelain incremental encoding= since= abbrev= date= ignore-rev= color-lines color-by-age minimal progress no-progress first-parent reverse"}},
	{names: "grep", options: options{short: "aiIwvhHEGFPnlLzcoqrpW0123456789", value: "eABCm", long: "cached untracked no-exclude-standard exclude-standard recurse-submodules text ignore-case word-regexp invert-match max-depth= extended-regexp basic-regexp perl-regexp fixed-strings line-number column files-with-matches name-only files-without-match null only-matching count color? no-color break heading show-function context= after-context= before-context= function-context max-count= threads= and or not all-match quiet full-name"}},
	{names: "ls-files", options: options{short: "cdmoikstuvfz", value: "xX", long: "cached deleted modified others ignored stage unmerged killed directory no-empty-directory eol resolve-undo exclude= exclude-standard error-unmatch with-tree= full-name recurse-submodules abbrev? debug deduplicate sparse format="}},
	{names: "ls-tree", options: options{short: "dtrlz", long: "long name-only name-status object-only abbrev? full-name full-tree format="}},
	{names: "rev-parse", options: options{short: "q", long: "revs-only no-revs flags no-flags default= quiet verify short? symbolic symbolic-full-name abbrev-ref? all branches? tags? remotes? glob= exclude= show-toplevel show-prefix show-cdup show-superproject-working-tree git-dir absolute-git-dir git-common-dir is-inside-git-dir is-inside-work-tree is-bare-repository is-shallow-repository show-object-format? show-ref-format since= after= until= before= path-format= git-path= local-env-vars not sq"}},
	{names: "rev-list", options: options{short: gitRevShort, value: gitRevValue, long: gitRevLong + " header objects objects-edge unpacked use-bitmap-index no-object-names missing= disk-usage? quiet no-commit-header abbrev? "}},
	{names: "merge-base", options: options{short: "a", long: "all octopus independent is-ancestor fork-point"}},
	{names: "describe", options: options{long: "all tags contains abbrev? candidates= exact-match long match= exclude= always first-parent dirty? broken? debug"}},
	{names: "name-rev", options: options{long: "tags refs= exclude= all name-only no-undefined always"}},
	{names: "shortlog", options: options{short: "nsec0123456789", value: "L", glued: "w", long: "numbered summary email committer group= format= since= until= after= before= all branches? no-merges merges max-count= author= grep="}},
	{names: "cat-file", options: options{short: "ptse"}, need: "-p -t -s -e"},
	{names: "branch", options: options{short: "avrqi", long: "all remotes list show-current verbose color? no-color column? no-column sort= merged? no-merged? contains? no-contains? points-at= format= abbrev= no-abbrev ignore-case omit-empty"}, need: "--list --show-current --merged --no-merged --contains --no-contains --points-at", max: 1, bare: true},
	{names: "tag", options: options{glued: "n", short: "li", long: "list sort= color? column? no-column contains? no-contains? merged? no-merged? points-at= format= ignore-case omit-empty"}, need: "-l -n --list --contains --no-contains --merged --no-merged --points-at", bare: true},
	{names: "remote", options: options{short: "v", long: "verbose"}, first: "get-url", bare: true},
	{names: "stash", options: options{short: gitDiffShort, value: gitDiffValue, long: gitDiffLong + gitRevLong}, first: "list show"},
	{names: "reflog", options: options{short: gitDiffShort + gitRevShort, value: "n", long: gitDiffLong + gitRevLong}, first: "show list exists", bare: true},
	{names: "worktree", options: options{short: "vz", long: "porcelain verbose"}, first: "list"},
	{names: "config", options: options{short: "lz", long: "get get-all get-regexp get-urlmatch list local global system worktree show-origin show-scope name-only null type= bool int bool-or-int path default= includes no-includes"}, need: "-l --get --get-all --get-regexp --list --get-urlmatch"},
	{names: "for-each-ref", options: options{short: "spq", long: "count= sort= format= points-at= merged? no-merged? contains? no-contains? ignore-case color? exclude= omit-empty"}},
	{names: "show-ref", options: options{short: "dsqh", long: "head branches heads tags dereference hash? verify quiet abbrev? exists"}},
	{names: "check-ignore", options: options{short: "qvnz", long: "quiet verbose non-matching no-index"}},
	{names: "check-attr", options: options{short: "az", long: "all cached"}},
	{names: "count-objects", options: options{short: "vH", long: "verbose human-readable"}},
	{names: "cherry", options: options{short: "v", long: "abbrev?"}},
	{names: "range-diff", options: options{short: gitDiffShort, value: gitDiffValue, long: gitDiffLong + " creation-factor= left-only right-only no-dual-color"}},
	{names: "var", first: "GIT_AUTHOR_IDENT GIT_COMMITTER_IDENT GIT_DEFAULT_BRANCH"},
	{names: "version", options: options{long: "build-options"}, max: none},
}

var gitTable = sync.OnceValue(func() map[string]*gitVerb {
	table := map[string]*gitVerb{}
	for i := range gitVerbs {
		eachName(gitVerbs[i].names, func(name string) { table[name] = &gitVerbs[i] })
	}
	return table
})

// gitNames are verbs that write names of files.
const gitNames = "ls-files"

// git judges a call of git: git(1).
func (f *frame) git(c *command, st *state) output {
	args := c.args()
	dir := *st
	refuse := func(reason Reason, detail string) output {
		f.add(c, item{Target: Target{Reason: reason, Detail: detail}, risk: riskUnproven})
		return output{}
	}
	i := 0
	for ; i < len(args) && args[i].mayBeOption(); i++ {
		a := args[i]
		switch {
		case !a.literal():
			return refuse(DynamicWord, "an option that is known only when it runs")
		case listed("--no-pager -P --no-optional-locks --literal-pathspecs --no-replace-objects --icase-pathspecs --glob-pathspecs --noglob-pathspecs --no-lazy-fetch", a.text):
		case a.text == "-C" && i+1 < len(args):
			i++
			dir.cwd(f.chdir(args[i], &dir))
			if r := f.readPath(c, args[i], st, false); r > riskSafe {
				return refuse(OutsideRead, "a repository outside the readable roots")
			}
		default:
			return refuse(UnknownOption, "an option of git that is not on the read-only list: "+a.text)
		}
	}
	if i >= len(args) {
		return refuse(UnknownOption, "no sub-command")
	}
	if !args[i].literal() {
		f.add(c, item{Target: Target{Reason: DynamicName, Detail: "the sub-command is known only when it runs"}, risk: riskDanger})
		return output{}
	}
	verb := gitTable()[args[i].text]
	if verb == nil {
		return refuse(UnknownProgram, "git "+args[i].text+" is not on the read-only list")
	}
	scan := optionScan{options: verb.options, argv: args[i+1:], noDash: "-e --grep"}
	needed := verb.need == ""
	operands := f.j.newWords(len(args))
	literalPaths := false
	for {
		r := scan.step()
		if r == scanEnd {
			break
		}
		switch r {
		case scanUnknown:
			if scan.bad.literal() {
				return refuse(UnknownOption, "an option that is not on the read-only list: "+scan.bad.text)
			}
			return refuse(DynamicWord, "a word that is known only when it runs could be an option")
		case scanOption:
			o := scan.buf
			needed = needed || listed(verb.need, o.name)
			if o.has && o.value.split && o.value.kind == dynamicWord {
				return refuse(DynamicWord, "the value of an option may become several words")
			}
			if o.has && (o.name == "--format" || o.name == "--pretty") && (strings.Contains(o.value.text, "%G") || strings.Contains(o.value.text, "signature")) {
				return refuse(RepositoryState, "shows signatures, which runs a program")
			}
			if o.name == "-X" && args[i].text == "ls-files" {
				return refuse(UnknownOption, "reads patterns from a file")
			}
			if (o.name == "-S" && (args[i].text == "blame" || args[i].text == "annotate")) || o.name == "--git-path" {
				return refuse(UnknownOption, "reads a file")
			}
		case scanOperand:
			operands = append(operands, scan.argv[scan.next-1])
			literalPaths = literalPaths || scan.ended
		}
	}
	switch {
	case verb.first != "":
		if len(operands) == 0 && verb.bare {
			break
		}
		if len(operands) == 0 || !operands[0].literal() || !listed(verb.first, operands[0].text) {
			return refuse(UnknownOption, "git "+args[i].text+" only in its listing forms")
		}
		operands = operands[1:]
	case !needed && (!verb.bare || len(operands) > 0):
		return refuse(UnknownOption, "git "+args[i].text+" only in its listing forms")
	case verb.max == none && len(operands) > 0, verb.max > 0 && len(operands) > verb.max:
		return refuse(UnknownOption, "more operands than a read-only call has")
	}
	if args[i].text == "shortlog" && len(operands) == 0 && c.in.kind == stdinInherited {
		// Without a revision it reads standard input, which is harmless.
		needed = true
	}
	for _, w := range operands {
		// A path outside the working tree makes git compare or read it there.
		if !w.literal() {
			if w.kind == dynamicWord && !w.below && !literalPaths {
				return refuse(DynamicWord, "a word that is known only when it runs")
			}
			continue
		}
		if strings.HasPrefix(w.text, "/") || strings.HasPrefix(w.text, "../") || strings.Contains(w.text, "/../") {
			if r := f.readPath(c, w, &dir, false); r > riskSafe {
				return refuse(OutsideRead, "a path outside the readable roots")
			}
		}
	}
	if len(dir.dirs) == 0 {
		return refuse(DynamicPath, "a repository that is known only when it runs")
	}
	for _, d := range dir.dirs[:min(len(dir.dirs), max(dir.likely, 1))] {
		if !f.j.readable(d) || f.j.scope.Resolver == nil && !inside(d, f.j.scope.Workspace) {
			return refuse(OutsideRead, "a repository outside the readable roots")
		}
		if detail := f.j.repositoryRuns(d); detail != "" {
			return refuse(RepositoryState, detail)
		}
	}
	f.j.git = true
	f.add(c, f.withEnv(c, item{Target: Target{Reason: ReadOnly}}))
	if listed(gitNames, args[i].text) || args[i].text == "grep" && needed && hasFlag(args[i+1:], "-l --files-with-matches --name-only") || strings.HasPrefix(args[i].text, "diff") && hasFlag(args[i+1:], "--name-only") {
		return output{kind: outNames}
	}
	return output{}
}

func hasFlag(args []word, flags string) bool {
	for _, a := range args {
		if a.literal() && flagMatches(flags, a.text) {
			return true
		}
	}
	return false
}

const maxConfig = 1 << 20 // bytes of a git configuration that are read

// repositoryRuns says why the configuration of the repository around dir can
// start a program that the overrides of a read-only call do not switch off.
// Without a Resolver nothing is known, and the overrides have to do.
func (j *judge) repositoryRuns(dir string) string {
	r := j.scope.Resolver
	if r == nil {
		return ""
	}
	if why, ok := j.repositories[dir]; ok {
		return why
	}
	why := scanRepository(r, dir)
	if j.repositories == nil {
		j.repositories = map[string]string{}
	}
	j.repositories[dir] = why
	return why
}

// scanRepository looks at the repository around dir and at its submodules, in
// which git runs itself without the overrides.
func scanRepository(r Resolver, dir string) string {
	for d := path.Clean(dir); ; d = path.Dir(d) {
		if config, why := repositoryConfig(r, d); config != "" || why != "" {
			if why == "" {
				why = configRuns(config, false)
			}
			if why != "" {
				return why
			}
			return scanSubmodules(r, d, 0)
		}
		if d == "/" || d == "." {
			return ""
		}
	}
}

// repositoryConfig returns the configuration of the repository whose top is d,
// or why it is not understood: gitrepository-layout(5).
func repositoryConfig(r Resolver, d string) (config, why string) {
	gitDir := d + "/.git"
	if link, err := r.ReadFile(gitDir, 4096); err == nil {
		to, ok := strings.CutPrefix(strings.TrimSpace(string(link)), "gitdir: ")
		if !ok {
			return "", "a .git file that is not understood"
		}
		if !path.IsAbs(to) {
			to = d + "/" + to
		}
		gitDir = to
	} else if bareRepository(r, d) {
		gitDir = d
	}
	text, err := r.ReadFile(gitDir+"/config", maxConfig)
	if err != nil {
		common, err := r.ReadFile(gitDir+"/commondir", 4096)
		if err != nil {
			return "", ""
		}
		dir := strings.TrimSpace(string(common))
		if !path.IsAbs(dir) {
			dir = gitDir + "/" + dir
		}
		if text, err = r.ReadFile(dir+"/config", maxConfig); err != nil {
			return "", "a configuration that cannot be read"
		}
	}
	if len(text) >= maxConfig {
		return "", "a configuration that is too long"
	}
	extra, err := r.ReadFile(gitDir+"/config.worktree", maxConfig)
	if err != nil {
		extra = nil
	}
	return string(text) + "\n" + string(extra) + "\n", ""
}

const maxSubmodules = 64

func scanSubmodules(r Resolver, top string, depth int) string {
	text, err := r.ReadFile(top+"/.gitmodules", maxConfig)
	if err != nil {
		return ""
	}
	n := 0
	for _, line := range strings.Split(string(text), "\n") {
		key, value, ok := strings.Cut(line, "=")
		if !ok || strings.ToLower(strings.TrimSpace(key)) != "path" {
			continue
		}
		if n++; n > maxSubmodules || depth > 4 {
			return "too many submodules"
		}
		d := path.Join(top, strings.Trim(strings.TrimSpace(value), "\""))
		if !inside(d, top) {
			return "a submodule outside the repository"
		}
		config, why := repositoryConfig(r, d)
		if why == "" {
			why = configRuns(config, true)
		}
		if why == "" {
			why = scanSubmodules(r, d, depth+1)
		}
		if why != "" {
			return "in the submodule " + value + ": " + why
		}
	}
	return ""
}

func bareRepository(r Resolver, d string) bool {
	_, err := r.ReadFile(d+"/HEAD", 4096)
	if err != nil {
		return false
	}
	_, err = r.ReadFile(d+"/config", maxConfig)
	return err == nil
}

// configRuns names the first key of a git configuration that starts a program
// or leads to another file, and that ReadOnlyEnv does not override:
// git-config(1). Strict: the overrides do not hold either.
func configRuns(text string, strict bool) string {
	section := ""
	text = strings.TrimPrefix(text, "\ufeff")
	for text != "" {
		var line string
		line, text, _ = strings.Cut(text, "\n")
		line = strings.TrimSpace(line)
		for strings.HasPrefix(line, "[") {
			end := sectionEnd(line)
			if end < 0 {
				return "a configuration that is not understood"
			}
			section = strings.ToLower(line[1:end])
			line = strings.TrimSpace(line[end+1:])
		}
		if line == "" || line[0] == '#' || line[0] == ';' {
			continue
		}
		// A line that continues a value is looked at like any other; that can
		// only find too much.
		key := line
		if k := strings.IndexAny(line, "= \t#;"); k >= 0 {
			key = line[:k]
		}
		key = strings.ToLower(key)
		name := section
		if k := strings.IndexAny(name, " \t\"."); k >= 0 {
			name = name[:k]
		}
		if configKeyRuns(name, key) || strict && name == "core" && key == "fsmonitor" {
			return "the repository's configuration sets " + strings.ReplaceAll(section, "\"", "") + " " + key
		}
	}
	return ""
}

func sectionEnd(line string) int {
	quoted := false
	for i := 1; i < len(line); i++ {
		switch {
		case line[i] == '\\' && quoted:
			i++
		case line[i] == '"':
			quoted = !quoted
		case line[i] == ']' && !quoted:
			return i
		}
	}
	return -1
}

// configKeys are sections and the keys in them that run programs or lead
// elsewhere.
var configKeys = map[string]string{
	"core":        "sshcommand gitproxy alternaterefscommand worktree askpass editor",
	"diff":        "command external textconv",
	"filter":      "clean smudge process",
	"include":     "path",
	"includeif":   "path",
	"gpg":         "program",
	"remote":      "promisor partialclonefilter vcs uploadpack",
	"extensions":  "partialclone",
	"pager":       "log show diff status blame grep branch tag reflog stash",
	"interactive": "difffilter",
	"merge":       "driver",
	"submodule":   "update",
}

func configKeyRuns(section, key string) bool {
	return section == "pretty" || listed(configKeys[section], key)
}
