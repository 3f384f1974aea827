package profiles

import (
	"bytes"
	"flag"
	"fmt"
	"go/format"
	"os"
	"reflect"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write the generated tables and the golden files")

// dataFiles pairs every array of the data files with its table.
var dataFiles = []struct {
	file, key, table string
	rows             any
}{
	{"secrets.toml", "secret", "secretRows", secretRows},
	{"protected.toml", "protected", "protectedRows", protectedRows},
	{"environment.toml", "pass", "passRows", passRows},
	{"environment.toml", "secret", "secretNameRows", secretNameRows},
	{"environment.toml", "tool-call", "toolCallRows", toolCallRows},
	{"caches.toml", "cache", "cacheRows", cacheRows},
	{"sockets.toml", "socket", "socketRows", socketRows},
	{"disposable.toml", "disposable", "disposableRows", disposableRows},
}

// readRows decodes one data file, strictly, into the types of its tables.
func readRows(t *testing.T, file string) map[string]reflect.Value {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var fields []reflect.StructField
	for _, d := range dataFiles {
		if d.file == file {
			fields = append(fields, reflect.StructField{
				Name: fmt.Sprintf("F%d", len(fields)),
				Type: reflect.TypeOf(d.rows),
				Tag:  reflect.StructTag(fmt.Sprintf("toml:%q", d.key)),
			})
		}
	}
	out := reflect.New(reflect.StructOf(fields))
	doc := document{file: file, data: data}
	if err := doc.decode(out.Interface()); err != nil {
		t.Fatal(err)
	}
	rows := map[string]reflect.Value{}
	for i, f := range fields {
		rows[f.Tag.Get("toml")] = out.Elem().Field(i)
	}
	return rows
}

// The tables are what the data files say. With -update they are written.
func TestTables(t *testing.T) {
	if *update {
		var b bytes.Buffer
		b.WriteString("// Code generated from the .toml files by go generate. DO NOT EDIT.\n\npackage profiles\n")
		for _, d := range dataFiles {
			printTable(&b, d.table, readRows(t, d.file)[d.key])
		}
		text, err := format.Source(b.Bytes())
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile("tables.go", text, 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	for _, d := range dataFiles {
		if want := readRows(t, d.file)[d.key]; !reflect.DeepEqual(want.Interface(), d.rows) {
			t.Errorf("%s: %s is not what the file says: run go generate ./profiles", d.file, d.table)
		}
	}
}

func printTable(b *bytes.Buffer, name string, rows reflect.Value) {
	fmt.Fprintf(b, "\nvar %s = []%s{\n", name, rows.Type().Elem().Name())
	for i := range rows.Len() {
		var fields []string
		for f, v := range rows.Index(i).Fields() {
			if !v.IsZero() {
				fields = append(fields, fmt.Sprintf("%s: %q", f.Name, v.String()))
			}
		}
		fmt.Fprintf(b, "\t{%s},\n", strings.Join(fields, ", "))
	}
	b.WriteString("}\n")
}
