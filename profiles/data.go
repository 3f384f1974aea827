package profiles

// The rows of the data files. The tables are generated from them, as are the
// built-in profiles, because every start needs them and decoding TOML in a fresh
// process costs more than the rest of this package; a test keeps both alike.
//
//go:generate go test -run ^TestTables$ . -update

type secretRow struct {
	Path   string `toml:"path"`
	Env    string `toml:"env"`
	OS     string `toml:"os"`
	Reason string `toml:"reason"`
	Source string `toml:"source"`
}

type protectedRow struct {
	Name   string `toml:"name"`
	In     string `toml:"in"` // "git", or "" for the tree
	Guard  string `toml:"guard"`
	Reason string `toml:"reason"`
	Source string `toml:"source"`
}

type passRow struct {
	Name   string `toml:"name"`
	Reason string `toml:"reason"`
}

type patternRow struct {
	Pattern string `toml:"pattern"`
	Reason  string `toml:"reason"`
}

type valueRow struct {
	Name   string `toml:"name"`
	Value  string `toml:"value"`
	Reason string `toml:"reason"`
}

type homeRow struct {
	Chain  string `toml:"chain"`
	Tool   string `toml:"tool"`
	Path   string `toml:"path"`
	Env    string `toml:"env"`
	Below  string `toml:"below"`
	Reason string `toml:"reason"`
	Source string `toml:"source"`
}

type cacheRow struct {
	Chain  string `toml:"chain"`
	Tool   string `toml:"tool"`
	Name   string `toml:"name"`
	Value  string `toml:"value"`
	Reason string `toml:"reason"`
	Source string `toml:"source"`
}

type socketRow struct {
	Path   string `toml:"path"`
	Env    string `toml:"env"`
	OS     string `toml:"os"`
	Reason string `toml:"reason"`
	Source string `toml:"source"`
}

type signingRow struct {
	Path   string `toml:"path"`
	Env    string `toml:"env"`
	OS     string `toml:"os"`
	Socket bool   `toml:"socket"`
	Reason string `toml:"reason"`
	Source string `toml:"source"`
}

type disposableRow struct {
	Name   string `toml:"name"`
	Reason string `toml:"reason"`
}

type systemRow struct {
	Path   string `toml:"path"`
	Below  bool   `toml:"below"`
	Reason string `toml:"reason"`
}

type hostRow struct {
	Set    string `toml:"set"`
	File   string `toml:"file"`
	Env    string `toml:"env"`
	Keys   string `toml:"keys"`
	Bare   bool   `toml:"bare"`
	Source string `toml:"source"`
}
