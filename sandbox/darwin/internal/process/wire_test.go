//go:build darwin || linux

package process

import (
	"bytes"
	"io"
	"reflect"
	"syscall"
	"testing"
)

func sample() request {
	return request{
		tool: Tool, profile: "/private/p.sb", params: []string{"A=/x"}, self: "/usr/local/bin/sandbox-exec",
		path: "/bin/echo", dir: "/w", args: []string{"echo", "a\xff\nb", ""}, env: []string{"A=b"},
		keep: []bool{true, false, true}, session: true, group: 7, memory: 1 << 40, processes: 3,
		openFiles: 4, fileSize: 5, checks: []Check{{What: "read it", Op: Connect, Path: "127.0.0.1:9", Want: syscall.EPERM}},
	}
}

func TestRequest(t *testing.T) {
	for _, r := range []request{{}, sample()} {
		got, err := decode(r.encode())
		if err != nil || !reflect.DeepEqual(got, r) {
			t.Errorf("got %+v, %v\nwant %+v", got, err, r)
		}
	}
}

func TestRequestThatIsCut(t *testing.T) {
	r := sample()
	b := r.encode()
	for i := range b {
		if _, err := decode(b[:i]); err == nil {
			t.Fatalf("%d of %d bytes were taken for a request", i, len(b))
		}
	}
	if _, err := decode(append(b, 0)); err == nil {
		t.Error("a byte too many was taken for a request")
	}
}

func TestMessage(t *testing.T) {
	var b bytes.Buffer
	want := []message{
		{kind: running, n: [5]int64{-1, 2, 3, 4, 5}, body: []byte("text")},
		{kind: held, body: []byte{}},
	}
	for _, m := range want {
		if err := send(&b, m); err != nil {
			t.Fatal(err)
		}
	}
	whole := bytes.Clone(b.Bytes())
	for _, m := range want {
		if got, err := receive(&b); err != nil || !reflect.DeepEqual(got, m) {
			t.Errorf("got %+v, %v; want %+v", got, err, m)
		}
	}
	if _, err := receive(&b); err != io.EOF {
		t.Errorf("at the end: %v", err)
	}
	if _, err := receive(bytes.NewReader(whole[:headSize+2])); err != io.EOF {
		t.Errorf("cut off: %v", err)
	}
	whole[7] = 0xff // a size above all bounds
	if _, err := receive(bytes.NewReader(whole)); err != errMessage {
		t.Errorf("too long: %v", err)
	}
}

func FuzzDecode(f *testing.F) {
	r := sample()
	f.Add(r.encode())
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, b []byte) {
		r, err := decode(b)
		if err != nil {
			return
		}
		if again, err := decode(r.encode()); err != nil || !reflect.DeepEqual(again, r) {
			t.Errorf("%+v became %+v, %v", r, again, err)
		}
	})
}
