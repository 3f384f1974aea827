package profiles

import "testing"

func BenchmarkLoad(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Load("workspace"); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkSpec(b *testing.B) {
	p, err := Load("workspace")
	if err != nil {
		b.Fatal(err)
	}
	place := fakePlace()
	b.ReportAllocs()
	for b.Loop() {
		if _, err := p.Spec(place); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkScope(b *testing.B) {
	p, err := Load("workspace")
	if err != nil {
		b.Fatal(err)
	}
	place := fakePlace()
	b.ReportAllocs()
	for b.Loop() {
		p.Scope(place)
	}
}

func BenchmarkEnviron(b *testing.B) {
	p, err := Load("workspace")
	if err != nil {
		b.Fatal(err)
	}
	place := fakePlace()
	b.ReportAllocs()
	for b.Loop() {
		p.Environ(place.Environ, place)
	}
}
