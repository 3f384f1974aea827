package main

import (
	"encoding/json"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"
)

// The schema names what is written, no more and no less, and requires what is
// always there.
func TestReportSchema(t *testing.T) {
	text, err := os.ReadFile("../../docs/report.schema.json")
	if err != nil {
		t.Fatal(err)
	}
	var schema struct {
		Defs map[string]struct {
			Required   []string
			Properties map[string]struct {
				Ref   string `json:"$ref"`
				Items struct {
					Ref string `json:"$ref"`
				}
			}
		} `json:"$defs"`
	}
	if err := json.Unmarshal(text, &schema); err != nil {
		t.Fatal(err)
	}
	var compare func(name string, typ reflect.Type)
	compare = func(name string, typ reflect.Type) {
		def, known := schema.Defs[name]
		if !known {
			t.Fatalf("%s is not in the schema", name)
		}
		var keys, required []string
		for f := range typ.Fields() {
			key, options, _ := strings.Cut(f.Tag.Get("json"), ",")
			if key == "" {
				continue
			}
			keys = append(keys, key)
			if !strings.Contains(options, "omitempty") {
				required = append(required, key)
			}
			p, ok := def.Properties[key]
			if !ok {
				t.Errorf("%s: %q is not in the schema", name, key)
			}
			ref := p.Ref + p.Items.Ref
			of := f.Type
			for of.Kind() == reflect.Pointer || of.Kind() == reflect.Slice {
				of = of.Elem()
			}
			if ref = strings.TrimPrefix(ref, "#/$defs/"); ref != "" && of.Kind() == reflect.Struct {
				compare(ref, of)
			}
		}
		for key := range def.Properties {
			if !slices.Contains(keys, key) {
				t.Errorf("%s: %q of the schema is never written", name, key)
			}
		}
		slices.Sort(required)
		if slices.Sort(def.Required); !slices.Equal(required, def.Required) {
			t.Errorf("%s: required are %q, always written %q", name, def.Required, required)
		}
	}
	compare("report", reflect.TypeFor[report]())
	compare("entry", reflect.TypeFor[entry]())
}
