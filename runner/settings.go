package runner

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/sandbox-exec/sandbox-exec/policy"
	"github.com/sandbox-exec/sandbox-exec/profiles"
	"github.com/sandbox-exec/sandbox-exec/sandbox"
)

// NoticeUntrusted is a project's file of which a part has no effect, because
// the person did not trust its content.
const NoticeUntrusted = "untrusted"

// Settings are what the person and the project have set for a place: the
// person's config.toml, the workspace's .sandbox-exec.toml, whether the person
// trusts its content, and the rules that they stored for the workspace.
type Settings struct {
	Workspace string
	Config    *profiles.Config
	Project   *profiles.Project // nil = none
	Trusted   bool
	Grants    []profiles.Grant // those of other sessions too

	session string
	place   profiles.Place
	// found is the place for the command that the settings were loaded for.
	// Only the first run takes it: for later ones it may have changed.
	found atomic.Pointer[foundPlace]
}

type foundPlace struct {
	dir, workspace string // as they were given
	from           string // the current directory then
	place          profiles.Place
	notices        []Notice
}

// AtHome says whether the workspace is the home of whoever runs us, that of the
// environment or of the user database.
func (s *Settings) AtHome() bool {
	homes := []string{s.place.Home}
	if s.place.UID != 0 { // else they are other people's
		homes = append(homes, s.place.MoreHomes...)
	}
	return slices.Contains(homes, s.Workspace)
}

// takePlace returns the place for c if the settings have just found it.
func (s *Settings) takePlace(c *Command) *foundPlace {
	if s == nil || c.Env != nil {
		return nil
	}
	found := s.found.Swap(nil)
	if found == nil || found.dir != c.Dir || found.workspace != c.Workspace {
		return nil
	}
	if from, err := os.Getwd(); err != nil || from != found.from {
		return nil
	}
	return found
}

// LoadSettings reads the settings for a command that runs in dir with this
// workspace; "" as in a Command. A file that cannot be used is an error: a
// *StateError or a *profiles.Error.
func LoadSettings(dir, workspace string) (*Settings, error) {
	where, notices, err := place(&Command{Dir: dir, Workspace: workspace})
	if err != nil {
		return nil, err
	}
	s, err := loadSettings(where)
	if err != nil {
		return nil, err
	}
	if from, err := os.Getwd(); err == nil {
		s.found.Store(&foundPlace{dir, workspace, from, where, notices})
	}
	return s, nil
}

// LoadSettingsAt is LoadSettings for a place that need not exist.
func LoadSettingsAt(at Where) (*Settings, error) {
	where, err := imagine(at)
	if err != nil {
		return nil, err
	}
	home, _ := homes(nil) // the person's, whatever is imagined
	where.ConfigDir, where.StateDir = ownDirs(home)
	return loadSettings(where)
}

func loadSettings(where profiles.Place) (*Settings, error) {
	s := &Settings{Workspace: where.Workspace, place: where}
	var err error
	if s.Config, err = profiles.LoadConfig(s.ConfigFile()); err != nil {
		return nil, err
	}
	if s.Project, err = profiles.LoadProject(where.Workspace); err != nil {
		return nil, err
	}
	if s.Project != nil {
		pin, err := readTrust(s.trustFile())
		if err != nil {
			return nil, err
		}
		s.Trusted = pin.Workspace == where.Workspace && pin.SHA256 == s.Project.SHA256
	}
	s.Grants, err = s.readGrants()
	return s, err
}

// ConfigFile is where the person's configuration is, or would be.
func (s *Settings) ConfigFile() string { return filepath.Join(s.place.ConfigDir, "config.toml") }

// GrantsFile is where the rules are that the person stored for the workspace.
func (s *Settings) GrantsFile() string {
	return filepath.Join(s.place.StateDir, "grants", workspaceID(s.Workspace)+".toml")
}

func (s *Settings) trustFile() string {
	return filepath.Join(s.place.StateDir, "trust", workspaceID(s.Workspace)+".json")
}

// Profile returns a profile of that name, or for "" the one that the person
// set, with all that the settings change in it. It is the caller's own.
func (s *Settings) Profile(name string) (*profiles.Profile, []Notice, error) {
	p, err := s.personal(name)
	if err != nil {
		return nil, nil, err
	}
	var notices []Notice
	if s.Project != nil {
		left, err := s.Project.Apply(p, s.Trusted)
		if err != nil {
			return nil, nil, &StateError{Path: s.Project.File, Err: err}
		}
		if left != nil {
			notices = append(notices, Notice{
				Kind: NoticeUntrusted, Path: s.Project.File,
				Text: fmt.Sprintf("%s is not trusted, so that this has no effect: %s; sandbox-exec trust shows it all and lets it have", s.Project.File, strings.Join(left, ", ")),
			})
		}
	}
	p.Rules = slices.Concat(p.Rules, s.holding(s.Grants))
	return p, notices, nil
}

// personal is Profile without what is the workspace's.
func (s *Settings) personal(name string) (*profiles.Profile, error) {
	loaded, err := profiles.Load(cmp.Or(name, s.Config.Profile, "workspace"))
	if err != nil {
		return nil, err
	}
	p := *loaded
	if name == "" && s.Config.Mode != nil {
		p.Mode = *s.Config.Mode
	}
	s.Config.Apply(&p)
	return &p, nil
}

// Reviewer returns what settles questions in mode auto, or nil.
func (s *Settings) Reviewer() Approver {
	if len(s.Config.Reviewer) == 0 {
		return nil
	}
	return &CommandApprover{Args: s.Config.Reviewer, Timeout: s.Config.ReviewTimeout}
}

// trust is what is kept of the person's trust in a project's file.
type trust struct {
	Workspace string    `json:"workspace"`
	SHA256    string    `json:"sha256"`
	When      time.Time `json:"when"`
}

func readTrust(path string) (trust, error) {
	data, err := readState(path)
	if err != nil || data == nil {
		return trust{}, err
	}
	var t trust
	if err := json.Unmarshal(data, &t); err != nil {
		return trust{}, &StateError{Path: path, Err: err, Hint: "run sandbox-exec untrust, then trust"}
	}
	return t, nil
}

// Trust pins the content of the project's file as it was loaded, for this
// workspace. Another content is not trusted.
func (s *Settings) Trust() error {
	if s.Project == nil {
		return &StateError{Path: filepath.Join(s.Workspace, profiles.ProjectFile), Err: errors.New("no such file"), Hint: "there is nothing to trust"}
	}
	// A file that no command could run by would be found out by the next one.
	p, err := s.personal("")
	if err != nil {
		return err
	}
	if _, err := s.Project.Apply(p, true); err != nil {
		return &StateError{Path: s.Project.File, Err: err}
	}
	if _, err := p.Spec(s.place); err != nil {
		return &StateError{Path: s.Project.File, Err: err, Hint: "change it, or say it in your own configuration"}
	}
	data, err := json.Marshal(trust{s.Workspace, s.Project.SHA256, time.Now().UTC().Truncate(time.Second)})
	if err != nil {
		return err
	}
	return s.changeState(s.trustFile(), func([]byte) ([]byte, error) { return append(data, '\n'), nil })
}

// Untrust takes the trust back.
func Untrust(dir, workspace string) error {
	where, _, err := place(&Command{Dir: dir, Workspace: workspace})
	if err != nil {
		return err
	}
	s := &Settings{Workspace: where.Workspace, place: where}
	return s.changeState(s.trustFile(), func([]byte) ([]byte, error) { return nil, nil })
}

// changeState is changeFile for a file of the state, whose directory it makes.
func (s *Settings) changeState(path string, change func([]byte) ([]byte, error)) error {
	if err := ownDir(s.place.StateDir, filepath.Dir(path)); err != nil {
		return &StateError{Path: filepath.Dir(path), Err: cause(err), Hint: "inside a sandbox it is hidden"}
	}
	return changeFile(path, change)
}

// InSession says whose calls these are: the grants of that session hold, and an
// answer ForSession is stored for it. It is called before Profile.
func (s *Settings) InSession(id string) { s.session = id }

// maxSession is how long an answer ForSession holds at most: a session that is
// over is not known to be.
const maxSession = 24 * time.Hour

func (s *Settings) readGrants() ([]profiles.Grant, error) {
	data, err := readState(s.GrantsFile())
	if err != nil {
		return nil, err
	}
	return s.parseGrants(data)
}

func (s *Settings) parseGrants(data []byte) ([]profiles.Grant, error) {
	list, err := profiles.ParseGrants(s.GrantsFile(), s.Workspace, data)
	if err != nil {
		var wrong *profiles.Error
		if errors.As(err, &wrong) {
			wrong.Hint = "correct the file, or remove it and store the rules again with sandbox-exec rule add --project"
		}
	}
	return list, err
}

// holding are the rules of the grants that hold now.
func (s *Settings) holding(list []profiles.Grant) []policy.Rule {
	var rules []policy.Rule
	now := time.Now()
	for _, g := range list {
		if g.Holds(s.session, now) {
			rules = append(rules, g.Rule)
		}
	}
	return rules
}

// PatternOf writes tokens as the pattern of a rule for an action. Other than
// for process.exec there is just one, and it is the pattern.
func PatternOf(action policy.Action, tokens []string) (string, error) {
	if cmp.Or(action, policy.Exec) != policy.Exec {
		if len(tokens) != 1 {
			return "", fmt.Errorf("a rule for %s has one pattern, not %d", action, len(tokens))
		}
		return tokens[0], nil
	}
	var words []string
	for _, t := range tokens {
		switch {
		case strings.ContainsAny(t, "'\n\r\x00"):
			return "", fmt.Errorf("%q cannot stand in a rule", t)
		case t == "" || strings.ContainsAny(t, " \t"):
			words = append(words, "'"+t+"'")
		default:
			words = append(words, t)
		}
	}
	return strings.Join(words, " "), nil
}

// TokensOf reads a rule's pattern as tokens.
func TokensOf(action policy.Action, pattern string) ([]string, error) {
	if cmp.Or(action, policy.Exec) != policy.Exec {
		return []string{pattern}, nil
	}
	var tokens []string
	for rest := strings.TrimLeft(pattern, " \t"); rest != ""; rest = strings.TrimLeft(rest, " \t") {
		end := strings.IndexAny(rest, " \t")
		if end < 0 {
			end = len(rest)
		}
		token, after := rest[:end], rest[end:]
		if rest[0] == '\'' {
			if end = strings.IndexByte(rest[1:], '\''); end < 0 {
				return nil, fmt.Errorf("%q: a quote is open", pattern)
			}
			token, after = rest[1:end+1], rest[end+2:]
		}
		tokens, rest = append(tokens, token), after
	}
	if _, err := PatternOf(action, tokens); err != nil || len(tokens) == 0 {
		return nil, fmt.Errorf("%q is no pattern of words", pattern)
	}
	return tokens, nil
}

// AddGrant stores a rule for the workspace. An allow rule that could not have
// an effect, or would allow any code, is refused.
func (s *Settings) AddGrant(g profiles.Grant) error {
	if g.Action == policy.Exec {
		g.Action = "" // one way to write the same
	}
	tokens, err := TokensOf(g.Action, g.Pattern)
	if err == nil {
		err = CheckRule(g.Rule, tokens)
	}
	if err != nil {
		return err
	}
	return s.changeGrants(func(list []profiles.Grant) []profiles.Grant {
		list = slices.DeleteFunc(list, func(old profiles.Grant) bool {
			return old.Action == g.Action && old.Verdict == g.Verdict && old.Pattern == g.Pattern && old.Session == g.Session
		})
		return append(list, g)
	})
}

// RemoveGrants removes the workspace's stored rules that match and returns how
// many there were.
func (s *Settings) RemoveGrants(match func(profiles.Grant) bool) (int, error) {
	removed := 0
	err := s.changeGrants(func(list []profiles.Grant) []profiles.Grant {
		before := len(list)
		list = slices.DeleteFunc(list, match)
		removed = before - len(list)
		return list
	})
	return removed, err
}

// changeGrants changes the stored rules. Those whose time is over go.
func (s *Settings) changeGrants(change func([]profiles.Grant) []profiles.Grant) error {
	file := s.GrantsFile()
	return s.changeState(file, func(data []byte) ([]byte, error) {
		list, err := s.parseGrants(data)
		if err != nil {
			return nil, err
		}
		now := time.Now()
		list = slices.DeleteFunc(list, func(g profiles.Grant) bool { return g.Expired(now) })
		return profiles.FormatGrants(file, s.Workspace, change(list))
	})
}

// AddRule adds a rule at the end of the person's configuration. tokens are
// those of its pattern.
func (s *Settings) AddRule(r policy.Rule, tokens []string) error {
	if err := CheckRule(r, tokens); err != nil {
		return err
	}
	return s.changeConfig(func(name string, data []byte) ([]byte, error) { return profiles.AddRule(name, data, r) })
}

// RemoveRules removes the rules of the person's configuration that match and
// returns how many there were.
func (s *Settings) RemoveRules(match func(policy.Rule) bool) (int, error) {
	removed := 0
	err := s.changeConfig(func(name string, data []byte) ([]byte, error) {
		c, err := profiles.ParseConfig(name, data)
		if err != nil {
			return nil, err
		}
		for i := len(c.Rules) - 1; i >= 0; i-- {
			if match(c.Rules[i]) {
				if data, err = profiles.RemoveRule(name, data, i); err != nil {
					return nil, err
				}
				removed++
			}
		}
		return data, nil
	})
	return removed, err
}

// changeConfig changes the person's configuration. Where it is a link, as those
// who keep such files in a repository have it, the link stays.
func (s *Settings) changeConfig(change func(name string, data []byte) ([]byte, error)) error {
	if err := ownDir(s.place.ConfigDir, s.place.ConfigDir); err != nil {
		return &StateError{Path: s.place.ConfigDir, Err: cause(err)}
	}
	file, err := resolver{}.Resolve(s.ConfigFile())
	if err != nil {
		return &StateError{Path: s.ConfigFile(), Err: cause(err)}
	}
	return changeFile(file, func(data []byte) ([]byte, error) { return change(s.ConfigFile(), data) })
}

// makeOwn makes those of our directories that are missing where the command
// could make them, as in a workspace that is the home, and with them what the
// next command may do. Where they are, they are hidden.
func makeOwn(where *profiles.Place, rules []sandbox.FileRule) error {
	for _, dir := range []string{where.ConfigDir, where.StateDir} {
		if !slices.ContainsFunc(rules, func(r sandbox.FileRule) bool {
			return r.Access == sandbox.ReadWrite && sandbox.Covers(r.Path, dir)
		}) {
			continue
		}
		if err := ownDir(dir, dir); err != nil {
			return &StateError{Path: dir, Err: cause(err), Hint: "the command could make it, and with it what the next may do: make it a directory of yours"}
		}
	}
	return nil
}

// guardOwn refuses what would let the command write the configuration: where
// config.toml is a link out of its directory, its target is not hidden.
func guardOwn(where *profiles.Place, rules []sandbox.FileRule) error {
	file := filepath.Join(where.ConfigDir, "config.toml")
	real, err := resolver{}.Resolve(file)
	if err != nil || real == file || sandbox.AccessOf(rules, real) < sandbox.ReadWrite {
		return nil // what cannot be resolved, nobody reads
	}
	return &StateError{
		Path: file, Err: fmt.Errorf("it is a link to %s, which the command could write", real),
		Hint: "make it a file of its own, or work in another workspace",
	}
}

// Untrusted are the parts of the project's file that have an effect only with
// trust, each as a line for people.
func (s *Settings) Untrusted() ([]string, error) {
	if s.Project == nil {
		return nil, nil
	}
	p, err := s.personal("")
	if err != nil {
		return nil, err
	}
	return s.Project.Apply(p, false)
}
