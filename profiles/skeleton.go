package profiles

import (
	"github.com/sandbox-exec/sandbox-exec/policy"
	"github.com/sandbox-exec/sandbox-exec/sandbox"
)

// Names returns the names of the built-in profiles, sorted.
func Names() []string { return nil }

// Load returns a built-in profile by its name, or reads a file: a name that
// holds a slash or ends in ".toml" is a file's.
func Load(nameOrFile string) (*Profile, error) { return nil, nil }

// Parse decodes a profile. The name stands in messages and becomes the
// profile's name, without a folder and ".toml".
func Parse(name string, data []byte) (*Profile, error) { return nil, nil }

// Policy returns what the judge decides by.
func (p *Profile) Policy() *policy.Policy { return nil }

// Scope returns what the judge has to know of the place.
func (p *Profile) Scope(place Place) policy.Scope { return policy.Scope{} }

// Spec returns what the sandbox enforces.
func (p *Profile) Spec(place Place) (sandbox.Spec, error) { return sandbox.Spec{}, nil }

// Environ returns the part of the caller's environment that the command gets,
// with TMPDIR and the caches redirected, and the names that were left out.
func (p *Profile) Environ(parent []string, place Place) (env, removed []string) { return nil, nil }

// NonInteractive adds to env what keeps programs from waiting for a person:
// for tool calls, not for a command that is only wrapped.
func NonInteractive(env []string) []string { return env }
