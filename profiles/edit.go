package profiles

import (
	"bytes"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/pelletier/go-toml/v2/unstable"

	"github.com/sandbox-exec/sandbox-exec/policy"
)

// AddRule returns the text of a configuration with a rule at its end. The rest
// of the text stays as it is. The error is an *Error.
func AddRule(name string, data []byte, r policy.Rule) ([]byte, error) {
	before, err := ParseConfig(name, data)
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	b.Write(data)
	if len(data) > 0 {
		if data[len(data)-1] != '\n' {
			b.WriteByte('\n')
		}
		b.WriteByte('\n')
	}
	b.WriteString("[[rule]]\n")
	writeRule(&b, r)
	want := append(slices.Clone(before.Rules), policy.Rule{Action: r.Action, Verdict: r.Verdict, Pattern: r.Pattern, Reason: r.Reason})
	return b.Bytes(), sameRules(name, b.Bytes(), want)
}

func writeRule(b *bytes.Buffer, r policy.Rule) {
	for _, field := range []struct{ key, value string }{
		{"action", string(r.Action)},
		{"verdict", r.Verdict.String()},
		{"pattern", r.Pattern},
		{"reason", r.Reason},
	} {
		if field.value != "" {
			fmt.Fprintf(b, "%s = %s\n", field.key, tomlString(field.value))
		}
	}
}

// RemoveRule returns the text of a configuration without its rule number i,
// from 0. The rest of the text, comments too, stays as it is. The error is an
// *Error.
func RemoveRule(name string, data []byte, i int) ([]byte, error) {
	before, err := ParseConfig(name, data)
	if err != nil {
		return nil, err
	}
	start, end := ruleText(data, i)
	if start < 0 {
		return nil, &Error{File: name, Err: errors.New("the rule is not written as a [[rule]] table"), Hint: "remove it by hand"}
	}
	after := slices.Concat(data[:start], bytes.TrimLeft(data[end:], "\n"))
	return after, sameRules(name, after, slices.Delete(slices.Clone(before.Rules), i, i+1))
}

// sameRules is an error unless data is a configuration with just these rules.
func sameRules(name string, data []byte, want []policy.Rule) error {
	c, err := ParseConfig(name, data)
	if err != nil {
		return err
	}
	plain := func(list []policy.Rule) []policy.Rule {
		list = append([]policy.Rule{}, list...)
		for i := range list {
			list[i].Source = ""
		}
		return list
	}
	if !reflect.DeepEqual(plain(c.Rules), plain(want)) {
		return &Error{File: name, Err: errors.New("the rules cannot be changed without changing others"), Hint: "edit the file by hand"}
	}
	return nil
}

// ruleText returns where the text of the [[rule]] table number i begins and
// ends; start is -1 if there is none. Blank lines and comments behind it are
// not part of it.
func ruleText(data []byte, i int) (start, end int) {
	var parser unstable.Parser
	parser.Reset(data)
	start, end = -1, len(data)
	for parser.NextExpression() {
		e := parser.Expression()
		if e.Kind != unstable.Table && e.Kind != unstable.ArrayTable {
			continue
		}
		it := e.Key()
		if !it.Next() {
			continue
		}
		line := bytes.LastIndexByte(data[:it.Node().Raw.Offset], '\n') + 1
		if start >= 0 {
			end = line
			break
		}
		if string(it.Node().Data) != "rule" || e.Kind != unstable.ArrayTable {
			continue
		}
		if i == 0 {
			start = line
		}
		i--
	}
	for start >= 0 {
		before := bytes.LastIndexByte(data[:end-1], '\n') + 1
		if text := strings.TrimSpace(string(data[before:end])); text != "" && text[0] != '#' {
			break
		}
		end = before
	}
	return start, end
}

// tomlString writes a basic string (TOML 1.0, "String").
func tomlString(s string) string {
	var b strings.Builder
	b.WriteByte('"')
	for _, r := range s {
		switch {
		case r == '"' || r == '\\':
			b.WriteByte('\\')
			b.WriteRune(r)
		case r < ' ' || r == 0x7f:
			fmt.Fprintf(&b, `\u%04X`, r)
		default:
			b.WriteRune(r)
		}
	}
	b.WriteByte('"')
	return b.String()
}
