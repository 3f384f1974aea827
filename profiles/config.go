package profiles

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"path/filepath"
	"slices"
	"syscall"
	"time"

	"github.com/sandbox-exec/sandbox-exec/policy"
	"github.com/sandbox-exec/sandbox-exec/sandbox"
)

// Config is the person's own configuration. It holds for every profile that
// they use. The zero value changes nothing.
type Config struct {
	File string // "" where there is none

	// Profile is used when none is named; "" = "workspace". In the file, a
	// relative name of a file is one beside it.
	Profile string
	Mode    *policy.Mode // used with that profile; nil = its own
	Rules   []policy.Rule

	Read, Write, Hide  []string // as in Profile
	GitConfig, GitSign string   // "" = the profile's
	Toolchains         map[string]string
	AllowHosts         []string // as in Profile
	DenyHosts          []string
	Pass               []string
	Set                map[string]string

	// Reviewer is a program with its arguments that settles, in mode auto, what
	// only the mode's default asks; nil = none. ReviewTimeout is how long it
	// may take; 0 = the runner's default.
	Reviewer      []string
	ReviewTimeout time.Duration
}

type configFile struct {
	Profile    string   `toml:"profile"`
	Mode       string   `toml:"mode"`
	AllowHosts []string `toml:"allow-hosts"`
	DenyHosts  []string `toml:"deny-hosts"`
	Files      struct {
		Read  []string `toml:"read"`
		Write []string `toml:"write"`
		Hide  []string `toml:"hide"`
	} `toml:"files"`
	Git         gitKeys           `toml:"git"`
	Toolchains  map[string]string `toml:"toolchains"`
	Environment environment       `toml:"environment"`
	Auto        struct {
		Reviewer []string `toml:"reviewer"`
		Timeout  string   `toml:"timeout"`
	} `toml:"auto"`
	Rules []rule `toml:"rule"`
}

// LoadConfig reads the person's configuration; a file that is not there is the
// zero Config. The error is an *Error.
func LoadConfig(file string) (*Config, error) {
	data, err := readFile(file, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return &Config{}, nil
	}
	if err != nil {
		return nil, &Error{File: file, Err: err, Hint: "make it a file that you can read, or remove it; inside a sandbox it is hidden"}
	}
	return ParseConfig(file, data)
}

// ParseConfig decodes the person's configuration. The name stands in messages
// and in the sources of rules.
func ParseConfig(name string, data []byte) (*Config, error) {
	doc := document{file: name, data: data}
	var in configFile
	if err := doc.decode(&in); err != nil {
		return nil, err
	}
	check := checker{doc: &doc}
	c := &Config{
		File:          name,
		Profile:       in.Profile,
		Mode:          check.mode(in.Mode),
		Rules:         check.rules(in.Rules),
		Read:          in.Files.Read,
		Write:         in.Files.Write,
		Hide:          in.Files.Hide,
		GitConfig:     in.Git.Config,
		GitSign:       in.Git.Sign,
		Toolchains:    in.Toolchains,
		AllowHosts:    in.AllowHosts,
		DenyHosts:     in.DenyHosts,
		Reviewer:      in.Auto.Reviewer,
		ReviewTimeout: check.duration(in.Auto.Timeout, "auto", "timeout"),
	}
	if isFile(c.Profile) && !filepath.IsAbs(c.Profile) {
		c.Profile = filepath.Join(filepath.Dir(name), c.Profile) // not in a directory that a command can write
	}
	check.git(in.Git)
	check.toolchains(in.Toolchains)
	check.hosts(in.AllowHosts, in.DenyHosts)
	check.each(c.Read, rooted, "files", "read")
	check.each(c.Write, rooted, "files", "write")
	check.each(c.Hide, rootedOrName, "files", "hide")
	c.Pass, c.Set = check.environment(in.Environment)
	if len(c.Reviewer) > 0 && !path.IsAbs(c.Reviewer[0]) && filepath.Base(c.Reviewer[0]) != c.Reviewer[0] {
		check.that(fmt.Errorf("%q: want a program's name or its absolute path", c.Reviewer[0]), "auto", "reviewer")
	}
	if check.err != nil {
		return nil, check.err
	}
	return c, nil
}

// Apply adds to a profile what holds for all profiles: everything but Profile,
// Mode and Reviewer.
func (c *Config) Apply(p *Profile) {
	p.Rules = slices.Concat(p.Rules, c.Rules)
	p.Read = slices.Concat(p.Read, c.Read)
	p.Write = slices.Concat(p.Write, c.Write)
	p.Hide = slices.Concat(p.Hide, c.Hide)
	p.GitConfig, p.GitSign = cmp.Or(c.GitConfig, p.GitConfig), cmp.Or(c.GitSign, p.GitSign)
	p.setToolchains(c.Toolchains)
	p.AllowHosts = slices.Concat(p.AllowHosts, c.AllowHosts)
	p.DenyHosts = slices.Concat(p.DenyHosts, c.DenyHosts)
	p.addEnvironment(c.Pass, c.Set)
}

func (p *Profile) setToolchains(modes map[string]string) {
	if len(modes) > 0 {
		all := maps.Clone(p.Toolchains)
		if all == nil {
			all = map[string]string{}
		}
		maps.Copy(all, modes)
		p.Toolchains = all
	}
}

func (p *Profile) addEnvironment(pass []string, set map[string]string) {
	p.Pass = slices.Concat(p.Pass, pass)
	if len(set) > 0 {
		all := maps.Clone(p.Set)
		if all == nil {
			all = map[string]string{}
		}
		maps.Copy(all, set)
		p.Set = all
	}
}

// ProjectFile is the name of a project's own file, in the workspace's root.
const ProjectFile = ".sandbox-exec.toml"

// Project is what a workspace says of itself. Whoever can write to the
// workspace can write it, so that until the person trusts exactly this content
// it can only tighten.
type Project struct {
	File   string
	SHA256 string // of the file's content, in hexadecimal

	Mode    *policy.Mode     // nil = the profile's
	Network *sandbox.Network // nil = the profile's
	// As in Profile.
	AllowHosts, DenyHosts []string

	Rules []policy.Rule

	Hide, Protect          []string // as in Profile
	Read, Write, Unprotect []string
	GitConfig, GitSign     string // "" = the profile's
	Toolchains             map[string]string
	Pass                   []string
	Set                    map[string]string

	Limits      sandbox.Limits // zero = the profile's
	MemoryShare float64
}

type projectFile struct {
	Mode       string   `toml:"mode"`
	Network    *string  `toml:"network"`
	AllowHosts []string `toml:"allow-hosts"`
	DenyHosts  []string `toml:"deny-hosts"`
	Files      struct {
		Hide      []string `toml:"hide"`
		Protect   []string `toml:"protect"`
		Read      []string `toml:"read"`
		Write     []string `toml:"write"`
		Unprotect []string `toml:"unprotect"`
	} `toml:"files"`
	Git         gitKeys           `toml:"git"`
	Toolchains  map[string]string `toml:"toolchains"`
	Limits      limits            `toml:"limits"`
	Environment environment       `toml:"environment"`
	Rules       []rule            `toml:"rule"`
}

// LoadProject reads the project's file of a workspace; nil if there is none.
// What the sandboxed command may have put there in its place (a link, a FIFO,
// a device) is an error and is not followed. The error is an *Error.
func LoadProject(workspace string) (*Project, error) {
	file := path.Join(workspace, ProjectFile)
	data, err := readFile(file, syscall.O_NOFOLLOW)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if errors.Is(err, syscall.ELOOP) || errors.Is(err, syscall.EMLINK) { // EMLINK on FreeBSD, open(2)
		err = errors.New("it is a symbolic link")
	}
	if err != nil {
		return nil, &Error{File: file, Err: err, Hint: "make it a file of its own that you can read, or remove it"}
	}
	return ParseProject(file, data)
}

// ParseProject decodes a project's file. The name stands in messages and in
// the sources of rules.
func ParseProject(name string, data []byte) (*Project, error) {
	doc := document{file: name, data: data}
	var in projectFile
	if err := doc.decode(&in); err != nil {
		return nil, err
	}
	check := checker{doc: &doc}
	sum := sha256.Sum256(data)
	p := &Project{
		File:       name,
		SHA256:     hex.EncodeToString(sum[:]),
		Mode:       check.mode(in.Mode),
		Rules:      check.rules(in.Rules),
		Hide:       in.Files.Hide,
		Protect:    in.Files.Protect,
		Read:       in.Files.Read,
		Write:      in.Files.Write,
		Unprotect:  in.Files.Unprotect,
		GitConfig:  in.Git.Config,
		GitSign:    in.Git.Sign,
		Toolchains: in.Toolchains,
		AllowHosts: in.AllowHosts,
		DenyHosts:  in.DenyHosts,
	}
	check.git(in.Git)
	check.toolchains(in.Toolchains)
	check.hosts(in.AllowHosts, in.DenyHosts)
	if in.Network != nil {
		n := sandbox.Network(check.choice(*in.Network, networkNames, "network"))
		p.Network = &n
	}
	check.each(p.Hide, rootedOrName, "files", "hide")
	check.each(p.Protect, inWorkspace, "files", "protect")
	check.each(p.Read, rooted, "files", "read")
	check.each(p.Write, rooted, "files", "write")
	check.each(p.Unprotect, protectedName, "files", "unprotect")
	p.Limits, p.MemoryShare = check.limits(in.Limits)
	p.Pass, p.Set = check.environment(in.Environment)
	if check.err != nil {
		return nil, check.err
	}
	return p, nil
}

// Apply changes a profile as the project says. Without trust it only tightens
// it and returns what it left out, each as a line for people: "files.read ~/x".
func (p *Project) Apply(to *Profile, trusted bool) (left []string, err error) {
	// may says whether a change is made; each that loosens needs trust.
	may := func(loosens bool, format string, args ...any) bool {
		if loosens && !trusted {
			left = append(left, fmt.Sprintf(format, args...))
		}
		return !loosens || trusted
	}
	if p.Mode != nil && may(strictness(*p.Mode) < strictness(to.Mode), "mode = %q", p.Mode) {
		to.Mode = *p.Mode
	}
	if p.Network != nil && may(*p.Network > to.Network, "network = %q", networkNames[*p.Network]) {
		to.Network = *p.Network
	}
	if p.GitConfig != "" && may(p.GitConfig == "checked" && to.GitConfig != "checked", "git.config = %q", p.GitConfig) {
		to.GitConfig = p.GitConfig
	}
	switch p.GitSign {
	case "off":
		to.GitSign = "off"
	case "agent": // an agent is a secret, which only the person opens
		if to.GitSign != "agent" {
			left = append(left, `git.sign = "agent"`)
		}
	}
	for _, chain := range slices.Sorted(maps.Keys(p.Toolchains)) {
		want := p.Toolchains[chain]
		loosens := slices.Index(toolchainModes, want) > slices.Index(toolchainModes, to.toolchainMode(chain))
		if may(loosens, "toolchains.%s = %q", chain, want) {
			to.setToolchains(map[string]string{chain: want})
		}
	}
	for _, r := range p.Rules {
		if may(r.Verdict == policy.Allow, "rule allow %s", r.Pattern) {
			to.Rules = append(to.Rules[:len(to.Rules):len(to.Rules)], r)
		}
	}

	to.Hide = slices.Concat(to.Hide, p.Hide)
	to.Protect = slices.Concat(to.Protect, p.Protect)
	to.DenyHosts = slices.Concat(to.DenyHosts, p.DenyHosts)
	for _, list := range []struct {
		key    string
		values []string
		add    *[]string
	}{
		{"allow-hosts", p.AllowHosts, &to.AllowHosts},
		{"files.read", p.Read, &to.ProjectRead},
		{"files.write", p.Write, &to.ProjectWrite},
		{"files.unprotect", p.Unprotect, &to.Unprotect},
		{"environment.pass", p.Pass, &to.Pass},
	} {
		for _, v := range list.values {
			if may(true, "%s %s", list.key, v) {
				*list.add = append((*list.add)[:len(*list.add):len(*list.add)], v)
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(p.Set)) {
		if may(true, "environment.set %s = %q", name, p.Set[name]) {
			to.addEnvironment(nil, map[string]string{name: p.Set[name]})
		}
	}

	want := p.Limits
	if want.Memory, err = bytesOf(want.Memory, p.MemoryShare); err != nil {
		return left, err
	}
	if want.Memory != 0 {
		have, err := bytesOf(to.Limits.Memory, to.MemoryShare)
		if err != nil {
			return left, err
		}
		if may(raises(have, want.Memory), "limits.memory") {
			to.Limits.Memory, to.MemoryShare = want.Memory, 0
		}
	}
	if may(raises(to.Limits.PIDs, want.PIDs), "limits.pids = %d", want.PIDs) && want.PIDs != 0 {
		to.Limits.PIDs = want.PIDs
	}
	if may(raises(to.Limits.OpenFiles, want.OpenFiles), "limits.open-files = %d", want.OpenFiles) && want.OpenFiles != 0 {
		to.Limits.OpenFiles = want.OpenFiles
	}
	if may(raises(to.Limits.Tmp, want.Tmp), "limits.tmp") && want.Tmp != 0 {
		to.Limits.Tmp = want.Tmp
	}
	if may(raises(to.Limits.FileSize, want.FileSize), "limits.file-size") && want.FileSize != 0 {
		to.Limits.FileSize = want.FileSize
	}
	if may(raises(to.Limits.CPUs, want.CPUs), "limits.cpus = %v", want.CPUs) && want.CPUs != 0 {
		to.Limits.CPUs = want.CPUs
	}
	return left, nil
}

// strictness orders the modes by what they let run without a question.
func strictness(m policy.Mode) int {
	return slices.Index([]policy.Mode{policy.ModeAllow, policy.ModeAuto, policy.ModeAsk, policy.ModePlan}, m)
}

// raises says whether the limit want lets more through than have. Zero in want
// means that nothing is wanted, zero in have that there is no limit.
func raises[T int64 | float64](have, want T) bool {
	return want != 0 && have > 0 && (want < 0 || want > have)
}

// bytesOf is a limit of memory in bytes, which may be given as a part of the
// machine's.
func bytesOf(limit int64, share float64) (int64, error) {
	if limit != 0 || share == 0 {
		return limit, nil
	}
	all, err := machineMemory()
	return int64(float64(all) * share), err
}

var networkNames = []string{"off", "localhost", "allow", "host"}

// mode reads a mode; nil if there is no text.
func (c *checker) mode(text string) *policy.Mode {
	if text == "" {
		return nil
	}
	m, err := policy.ParseMode(text)
	c.that(err, "mode")
	return &m
}

func (c *checker) environment(in environment) (pass []string, set map[string]string) {
	c.each(in.Pass, variablePattern, "environment", "pass")
	for name := range in.Set {
		c.that(variableName(name), "environment", "set", name)
	}
	return in.Pass, in.Set
}
