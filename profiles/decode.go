package profiles

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"math"
	"path"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/pelletier/go-toml/v2"
	"github.com/pelletier/go-toml/v2/unstable"

	"github.com/sandbox-exec/sandbox-exec/policy"
	"github.com/sandbox-exec/sandbox-exec/sandbox"
)

// Error is a profile that cannot be used. Nothing of it was taken.
type Error struct {
	File   string
	Line   int    // from 1; 0 = the file as a whole
	Column int    // from 1, in bytes
	Text   string // the line
	Err    error
	Hint   string // what to do, or ""
}

func (e *Error) Error() string {
	if e.Line == 0 {
		return fmt.Sprintf("%s: %v", e.File, e.Err)
	}
	return fmt.Sprintf("%s:%d:%d: %v", e.File, e.Line, e.Column, e.Err)
}

func (e *Error) Unwrap() error { return e.Err }

// profileFile is a profile as it is written; Profile documents the fields. A
// key that is left out is the zero value of its field, save for [limits], where
// it is the default.
type profileFile struct {
	Description  string            `toml:"description"`
	Mode         string            `toml:"mode"`
	Ask          string            `toml:"ask"`
	Stdin        string            `toml:"stdin"`
	Network      string            `toml:"network"`
	AllowHosts   []string          `toml:"allow-hosts"`
	DenyHosts    []string          `toml:"deny-hosts"`
	ServerName   string            `toml:"server-name"`
	Require      []string          `toml:"require"`
	AllowMissing []string          `toml:"allow-missing"`
	Files        files             `toml:"files"`
	Git          gitKeys           `toml:"git"`
	Toolchains   map[string]string `toml:"toolchains"`
	Limits       limits            `toml:"limits"`
	Environment  environment       `toml:"environment"`
	ToolCall     toolCall          `toml:"tool-call"`
	Rules        []rule            `toml:"rule"`
}

type files struct {
	Workspace  string   `toml:"workspace"` // "none", "read-only", "read-write"
	Tmp        string   `toml:"tmp"`
	Read       []string `toml:"read"`
	Write      []string `toml:"write"`
	Hide       []string `toml:"hide"`
	HideExcept []string `toml:"hide-except"`
	Protect    []string `toml:"protect"`
	Unprotect  []string `toml:"unprotect"`
	Sockets    []string `toml:"sockets"`
}

type gitKeys struct {
	Config string `toml:"config"` // "read-only", "checked"
	Sign   string `toml:"sign"`   // "off", "agent"
}

// The strictest first.
var (
	gitConfigNames = []string{"read-only", "checked"}
	gitSignNames   = []string{"off", "agent"}
)

func (c *checker) git(in gitKeys) {
	c.choice(in.Config, gitConfigNames, "git", "config")
	c.choice(in.Sign, gitSignNames, "git", "sign")
}

type limits struct {
	Memory    string  `toml:"memory"` // "4G", "50%" of the machine's, "unlimited"
	PIDs      int64   `toml:"pids"`   // -1 = unlimited, as in the others
	CPUs      float64 `toml:"cpus"`
	OpenFiles int64   `toml:"open-files"`
	FileSize  string  `toml:"file-size"`
	Tmp       string  `toml:"tmp"`
}

type environment struct {
	Pass []string          `toml:"pass"`
	Set  map[string]string `toml:"set"`
}

type toolCall struct {
	Timeout              string `toml:"timeout"` // "90s", "5m", "none"
	MaxTimeout           string `toml:"max-timeout"`
	BackgroundTimeout    string `toml:"background-timeout"`
	MaxBackgroundTimeout string `toml:"max-background-timeout"`
	Grace                string `toml:"grace"`
	Output               string `toml:"output"` // "16M", "unlimited"
	Redact               bool   `toml:"redact"`
}

type rule struct {
	Action   string   `toml:"action"`
	Verdict  string   `toml:"verdict"`
	Pattern  string   `toml:"pattern"`
	Reason   string   `toml:"reason"`
	Match    []string `toml:"match"`
	NotMatch []string `toml:"not-match"`
}

// What a profile gets that does not say.
const (
	defaultMemoryShare = 0.5
	defaultPIDs        = 1024
	defaultOpenFiles   = 4096
)

const leastOpenFiles = 16 // under fewer no shell starts

// Parse decodes a profile. The name stands in messages and becomes the
// profile's name, without folder and ".toml".
func Parse(name string, data []byte) (*Profile, error) {
	doc := document{file: name, data: data}
	var in profileFile
	if err := doc.decode(&in); err != nil {
		return nil, err
	}
	p := &Profile{
		Name:         strings.TrimSuffix(path.Base(filepath.ToSlash(name)), ".toml"),
		File:         name,
		Description:  in.Description,
		Ask:          in.Ask,
		Tmp:          in.Files.Tmp,
		Require:      in.Require,
		AllowMissing: in.AllowMissing,
		AllowHosts:   in.AllowHosts,
		DenyHosts:    in.DenyHosts,
		Read:         in.Files.Read,
		Write:        in.Files.Write,
		Hide:         in.Files.Hide,
		HideExcept:   in.Files.HideExcept,
		Protect:      in.Files.Protect,
		Unprotect:    in.Files.Unprotect,
		Sockets:      in.Files.Sockets,
		Stdin:        in.Stdin,
		GitConfig:    in.Git.Config,
		GitSign:      in.Git.Sign,
		Toolchains:   in.Toolchains,
	}

	check := checker{doc: &doc}
	if mode := check.mode(in.Mode); mode != nil {
		p.Mode = *mode
	}
	p.Workspace = sandbox.Access(check.choice(in.Files.Workspace, []string{"none", "read-only", "read-write"}, "files", "workspace"))
	p.Network = sandbox.Network(check.choice(in.Network, networkNames, "network"))
	check.hosts(in.AllowHosts, in.DenyHosts)
	p.ServerName = sandbox.ServerName(check.choice(in.ServerName, []string{"if-present", "require", "off"}, "server-name"))
	check.choice(in.Ask, []string{"deny", "prompt", "allow"}, "ask")
	check.choice(in.Stdin, []string{"null", "inherit"}, "stdin")
	check.choice(in.Files.Tmp, []string{"private", "session"}, "files", "tmp")
	check.git(in.Git)
	check.toolchains(in.Toolchains)
	check.each(in.Require, layer, "require")
	check.each(in.AllowMissing, layer, "allow-missing")
	check.each(in.Files.Read, rooted, "files", "read")
	check.each(in.Files.Write, rooted, "files", "write")
	check.each(in.Files.Hide, rootedOrName, "files", "hide")
	check.each(in.Files.HideExcept, rootedOrName, "files", "hide-except")
	check.each(in.Files.Protect, inWorkspace, "files", "protect")
	check.each(in.Files.Unprotect, protectedName, "files", "unprotect")
	check.each(in.Files.Sockets, rooted, "files", "sockets")
	p.Pass, p.Set = check.environment(in.Environment)

	p.Limits, p.MemoryShare = check.limits(in.Limits)
	if in.Limits.Memory == "" {
		p.MemoryShare = defaultMemoryShare
	}
	p.Limits.PIDs = cmp.Or(p.Limits.PIDs, defaultPIDs)
	p.Limits.OpenFiles = cmp.Or(p.Limits.OpenFiles, defaultOpenFiles)

	p.ToolCall = check.toolCall(in.ToolCall)

	p.Rules = check.rules(in.Rules)
	if check.err != nil {
		return nil, check.err
	}
	return p, nil
}

// checker keeps the first thing that is wrong with a document.
type checker struct {
	doc *document
	err error
}

// that records err, if it is one and the first, at the key.
func (c *checker) that(err error, key ...string) {
	if err != nil && c.err == nil {
		c.err = c.doc.wrong(err, key...)
	}
}

// choice returns the index of value in options; "" is the first.
func (c *checker) choice(value string, options []string, key ...string) int {
	i := slices.Index(options, value)
	if i < 0 && value != "" {
		c.that(fmt.Errorf("unknown value %q: want one of %q", value, options), key...)
	}
	return max(i, 0)
}

func (c *checker) each(values []string, valid func(string) error, key ...string) {
	for _, v := range values {
		c.that(valid(v), key...)
	}
}

func (c *checker) hosts(allow, deny []string) {
	c.each(allow, func(entry string) error { return CheckHost(entry, true) }, "allow-hosts")
	c.each(deny, func(entry string) error { return CheckHost(entry, false) }, "deny-hosts")
}

// limits reads limits; what is left out is zero.
func (c *checker) limits(in limits) (out sandbox.Limits, memoryShare float64) {
	out.Memory, memoryShare = c.memory(in.Memory, "limits", "memory")
	out.PIDs = c.count(in.PIDs, LeastPIDs, MostPIDs, "limits", "pids")
	out.OpenFiles = c.count(in.OpenFiles, leastOpenFiles, math.MaxInt32, "limits", "open-files")
	out.CPUs = c.cpus(in.CPUs, "limits", "cpus")
	out.FileSize = c.size(in.FileSize, "limits", "file-size")
	out.Tmp = c.size(in.Tmp, "limits", "tmp")
	return out, memoryShare
}

func (c *checker) memory(text string, key ...string) (bytes int64, share float64) {
	if text == "" {
		return 0, 0
	}
	if percent, ok := strings.CutSuffix(text, "%"); ok {
		n, err := strconv.ParseFloat(percent, 64)
		if err != nil || !(n > 0 && n <= 100) {
			c.that(fmt.Errorf("%q is no part of the memory: want more than 0%% and at most 100%%", text), key...)
		}
		return 0, n / 100
	}
	bytes = c.size(text, key...)
	if bytes != sandbox.Unlimited && bytes < LeastMemory {
		c.that(fmt.Errorf("%q is too little memory for any program: want at least %d MiB", text, LeastMemory>>20), key...)
	}
	return bytes, 0
}

// size reads a size; 0 if there is no text.
func (c *checker) size(text string, key ...string) int64 {
	if text == "" {
		return 0
	}
	n, err := ParseSize(text)
	if err != nil {
		c.that(fmt.Errorf("%q is no size: %w", text, err), key...)
	}
	return n
}

func (c *checker) count(n, least, most int64, key ...string) int64 {
	if n != 0 && n != sandbox.Unlimited && !(n >= least && n <= most) {
		c.that(fmt.Errorf("%d is out of range: want %d to %d, or -1 for no limit", n, least, most), key...)
	}
	return n
}

func (c *checker) cpus(n float64, key ...string) float64 {
	if n != 0 && n != sandbox.Unlimited && !(n >= LeastCPUs && n <= MostCPUs) {
		c.that(fmt.Errorf("%v processors: want %v to %d, or -1 for no limit", n, LeastCPUs, MostCPUs), key...)
	}
	return n
}

func (c *checker) duration(text string, key ...string) time.Duration {
	if text == "" {
		return 0
	}
	d, err := time.ParseDuration(text)
	if err != nil || d <= 0 {
		c.that(fmt.Errorf(`%q is no time: want one above zero with s, m or h, such as "90s"`, text), key...)
	}
	return d
}

// timeout is duration, or "none".
func (c *checker) timeout(text string, key ...string) time.Duration {
	if text == "none" {
		return sandbox.Unlimited
	}
	return c.duration(text, key...)
}

func (c *checker) toolCall(in toolCall) ToolCall {
	t := ToolCall{
		Timeout:              c.timeout(in.Timeout, "tool-call", "timeout"),
		MaxTimeout:           c.timeout(in.MaxTimeout, "tool-call", "max-timeout"),
		BackgroundTimeout:    c.timeout(in.BackgroundTimeout, "tool-call", "background-timeout"),
		MaxBackgroundTimeout: c.timeout(in.MaxBackgroundTimeout, "tool-call", "max-background-timeout"),
		Grace:                c.duration(in.Grace, "tool-call", "grace"),
		Output:               c.size(in.Output, "tool-call", "output"),
		Redact:               in.Redact,
	}.Complete()
	if !Within(t.Timeout, t.MaxTimeout) {
		c.that(fmt.Errorf("above max-timeout, %v", t.MaxTimeout), "tool-call", "timeout")
	}
	if !Within(t.BackgroundTimeout, t.MaxBackgroundTimeout) {
		c.that(fmt.Errorf("above max-background-timeout, %v", t.MaxBackgroundTimeout), "tool-call", "background-timeout")
	}
	return t
}

func (c *checker) rules(in []rule) []policy.Rule {
	var out []policy.Rule
	for i, r := range in {
		out = append(out, c.rule(r, i))
	}
	return out
}

func (c *checker) rule(in rule, index int) policy.Rule {
	out := policy.Rule{
		Action:   policy.Action(in.Action),
		Pattern:  in.Pattern,
		Reason:   in.Reason,
		Match:    in.Match,
		NotMatch: in.NotMatch,
	}
	key := func(name string) []string { return []string{"rule", strconv.Itoa(index), name} }
	c.that(out.Verdict.UnmarshalText([]byte(in.Verdict)), key("verdict")...)
	if in.Pattern == "" {
		c.that(errors.New("a rule without a pattern would hold for everything"), key("pattern")...)
	}
	if c.err == nil {
		alone := policy.Policy{Rules: []policy.Rule{out}}
		c.that(alone.Check(), key("pattern")...)
	}
	line, _ := c.doc.position("rule", strconv.Itoa(index))
	out.Source = fmt.Sprintf("%s:%d", c.doc.file, line) // not before: the check would name the place a second time
	return out
}

func layer(name string) error {
	if !slices.Contains(Layers, name) {
		return fmt.Errorf("unknown layer %q: want one of %q", name, Layers)
	}
	return nil
}

func rooted(name string) error {
	rest, home := strings.CutPrefix(name, "~")
	if home && rest == "" {
		return nil
	}
	if !strings.HasPrefix(rest, "/") || path.Clean(rest) != rest || strings.ContainsRune(name, 0) {
		return fmt.Errorf(`%q: want an absolute path or "~/…", without ".", ".." and a slash at the end`, name)
	}
	return nil
}

func rootedOrName(name string) error {
	if strings.HasPrefix(name, "/") || strings.HasPrefix(name, "~") {
		return rooted(name)
	}
	if _, err := path.Match(name, ""); err != nil || name == "" || name == "." || name == ".." || strings.ContainsAny(name, "/\x00") {
		return fmt.Errorf(`%q: want a name in the workspace, a pattern for such names, an absolute path or "~/…"`, name)
	}
	return nil
}

// inWorkspace checks a path relative to the workspace.
func inWorkspace(name string) error {
	if !filepath.IsLocal(name) || path.Clean(name) != name || name == "." || strings.ContainsRune(name, 0) {
		return fmt.Errorf(`%q: want a path below the workspace, without ".", ".." and a slash at the end`, name)
	}
	return nil
}

func protectedName(name string) error {
	if name == ".git" { // a file that names a repository
		return nil
	}
	for _, row := range protectedRows {
		if name == row.Name && row.In == "" || name == ".git/"+row.Name && row.In == "git" {
			return nil
		}
	}
	return fmt.Errorf("%q is no protected name", name)
}

func variablePattern(name string) error {
	return variableName(strings.TrimSuffix(name, "*"))
}

func variableName(name string) error {
	if name == "" || strings.ContainsAny(name, "=*\x00") {
		return fmt.Errorf("%q is no name of a variable", name)
	}
	return nil
}

// document is a TOML file that knows where its keys stand.
type document struct {
	file string
	data []byte
}

// decode fills out and refuses what out has no field for.
func (d *document) decode(out any) error {
	err := toml.NewDecoder(bytes.NewReader(d.data)).DisallowUnknownFields().Decode(out)
	if err == nil {
		return nil
	}
	var unknown *toml.StrictMissingError
	if errors.As(err, &unknown) {
		first := &unknown.Errors[0]
		key := first.Key()
		result := d.at(first.Position())
		result.Err = fmt.Errorf("unknown key %q", strings.Join(key, "."))
		result.Hint = "known here: " + strings.Join(knownKeys(reflect.TypeOf(out), key[:len(key)-1]), ", ")
		return result
	}
	var bad *toml.DecodeError
	if errors.As(err, &bad) {
		result := d.at(bad.Position())
		result.Err = errors.New(plainMessage(bad.Error()))
		return result
	}
	return &Error{File: d.file, Err: err}
}

// plainMessage says in the words of a profile what go-toml says in Go's:
// "cannot decode TOML string into struct field profiles.limits.PIDs of type int64".
func plainMessage(message string) string {
	message = strings.TrimPrefix(message, "toml: ")
	rest, ok := strings.CutPrefix(message, "cannot decode TOML ")
	if !ok {
		return message
	}
	have, _, _ := strings.Cut(rest, " ")
	_, want, _ := strings.Cut(rest, " of type ")
	words := map[string]string{
		"string": "a string", "integer": "a whole number", "float": "a fraction", "boolean": "true or false", "array": "a list",
		"int64": "a whole number", "float64": "a number", "[]string": "a list of strings", "map[string]string": "a table of strings",
		"[]profiles.rule": "[[rule]] tables",
	}
	return fmt.Sprintf("want %s, not %s", cmp.Or(words[want], "a table"), cmp.Or(words[have], "a table"))
}

// knownKeys lists the keys that t has in the table at path.
func knownKeys(t reflect.Type, table []string) []string {
	for t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice {
		t = t.Elem()
	}
	if t.Kind() != reflect.Struct {
		return nil
	}
	var keys []string
	for f := range t.Fields() {
		name := f.Tag.Get("toml")
		if len(table) > 0 && name == table[0] {
			return knownKeys(f.Type, table[1:])
		}
		keys = append(keys, name)
	}
	return keys
}

// wrong is err at the place of the key, or of the table that should hold it.
func (d *document) wrong(err error, key ...string) *Error {
	result := d.at(d.position(key...))
	result.Err = err
	return result
}

func (d *document) at(line, column int) *Error {
	result := &Error{File: d.file, Line: line, Column: column}
	if lines := strings.Split(string(d.data), "\n"); line >= 1 && line <= len(lines) {
		result.Text = strings.TrimSuffix(lines[line-1], "\r")
	}
	return result
}

// position finds where a key stands, or else the nearest table around it. The
// n-th table of an array is the part "n".
func (d *document) position(key ...string) (line, column int) {
	var (
		parser unstable.Parser
		table  []string
		counts = map[string]int{}
		best   = -1
	)
	parser.Reset(d.data)
	for parser.NextExpression() {
		e := parser.Expression()
		if e.Kind == unstable.Comment {
			continue
		}
		var parts []string
		start := -1
		for it := e.Key(); it.Next(); {
			if start < 0 {
				start = int(it.Node().Raw.Offset)
			}
			parts = append(parts, string(it.Node().Data))
		}
		full := parts
		switch e.Kind {
		case unstable.Table:
			table = parts
		case unstable.ArrayTable:
			name := strings.Join(parts, ".")
			full = append(parts, strconv.Itoa(counts[name]))
			counts[name]++
			table = full
		default:
			full = slices.Concat(table, parts)
		}
		if len(full) > best && len(full) <= len(key) && slices.Equal(full, key[:len(full)]) {
			best = len(full)
			before := d.data[:start]
			line = bytes.Count(before, []byte("\n")) + 1
			column = start - bytes.LastIndexByte(before, '\n')
		}
	}
	return line, column
}
