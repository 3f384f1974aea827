package profiles

import (
	"bytes"
	"flag"
	"fmt"
	"go/format"
	"os"
	"path/filepath"
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
	{"environment.toml", "offline", "offlineRows", offlineRows},
	{"environment.toml", "unsigned", "unsignedRows", unsignedRows},
	{"caches.toml", "cache", "cacheRows", cacheRows},
	{"caches.toml", "home", "homeRows", homeRows},
	{"sockets.toml", "socket", "socketRows", socketRows},
	{"sockets.toml", "signing", "signingRows", signingRows},
	{"disposable.toml", "disposable", "disposableRows", disposableRows},
	{"system.toml", "system", "systemRows", systemRows},
	{"hosts.toml", "host", "hostRows", hostRows},
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
		for _, d := range dataFiles {
			printTable(&b, d.table, readRows(t, d.file)[d.key])
		}
		hostRows = readRows(t, "hosts.toml")["host"].Interface().([]hostRow) // the profiles name its sets
		b.WriteString("\nvar builtinProfiles = []Profile{\n")
		for _, p := range readBuiltins(t) {
			b.WriteString("\t" + printStruct(reflect.ValueOf(p)) + ",\n")
		}
		b.WriteString("}\n")
		head := "// Code generated from the .toml files by go generate. DO NOT EDIT.\n\npackage profiles\n\n"
		for _, used := range []string{"policy", "sandbox"} {
			if bytes.Contains(b.Bytes(), []byte(used+".")) {
				head += fmt.Sprintf("import %q\n", "github.com/sandbox-exec/sandbox-exec/"+used)
			}
		}
		text, err := format.Source(append([]byte(head), b.Bytes()...))
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
	if !reflect.DeepEqual(readBuiltins(t), builtinProfiles) {
		t.Error("builtin/*.toml: builtinProfiles is not what the files say: run go generate ./profiles")
	}
}

// readBuiltins parses the built-in profiles, sorted by name.
func readBuiltins(t *testing.T) []Profile {
	t.Helper()
	files, err := filepath.Glob("builtin/*.toml")
	if err != nil || len(files) == 0 {
		t.Fatal("no built-in profiles: ", err)
	}
	var list []Profile
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		p, err := Parse(filepath.Base(file), data)
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, *p)
	}
	return list
}

func printTable(b *bytes.Buffer, name string, rows reflect.Value) {
	fmt.Fprintf(b, "\nvar %s = []%s{\n", name, rows.Type().Elem().Name())
	for i := range rows.Len() {
		b.WriteString("\t" + printStruct(rows.Index(i)) + ",\n")
	}
	b.WriteString("}\n")
}

// printStruct prints the fields that are not zero.
func printStruct(v reflect.Value) string {
	var fields []string
	for f, value := range v.Fields() {
		if value.IsZero() {
			continue
		}
		// The types of this package stand without its name.
		text := strings.TrimPrefix(fmt.Sprintf("%#v", value.Interface()), "profiles.")
		fields = append(fields, f.Name+": "+text)
	}
	return "{" + strings.Join(fields, ", ") + "}"
}
