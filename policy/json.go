package policy

import "fmt"

var (
	verdictNames = []string{"", "allow", "ask", "deny"}
	modeNames    = []string{"ask", "plan", "allow", "auto"}
	shellNames   = []string{"bash", "posix"}
)

func (v Verdict) String() string {
	if v == 0 || int(v) >= len(verdictNames) {
		return "deny"
	}
	return verdictNames[v]
}

func (v Verdict) MarshalText() ([]byte, error) { return []byte(v.String()), nil }

func (v *Verdict) UnmarshalText(text []byte) error {
	i, err := indexOf("verdict", verdictNames[1:], string(text))
	*v = Verdict(i + 1)
	return err
}

func (m Mode) String() string {
	if int(m) >= len(modeNames) {
		return "plan"
	}
	return modeNames[m]
}

func (m Mode) MarshalText() ([]byte, error) { return []byte(m.String()), nil }

func (m *Mode) UnmarshalText(text []byte) (err error) {
	*m, err = ParseMode(string(text))
	return err
}

// ParseMode reads "ask", "plan", "allow" or "auto".
func ParseMode(name string) (Mode, error) {
	i, err := indexOf("mode", modeNames, name)
	return Mode(max(i, 0)), err
}

func (s Shell) String() string {
	if int(s) >= len(shellNames) {
		return shellNames[POSIX]
	}
	return shellNames[s]
}

func (s Shell) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

func (s *Shell) UnmarshalText(text []byte) error {
	i, err := indexOf("shell", shellNames, string(text))
	*s = Shell(max(i, 0))
	return err
}

func indexOf(what string, names []string, name string) (int, error) {
	for i, n := range names {
		if n == name {
			return i, nil
		}
	}
	return -1, fmt.Errorf("unknown %s %q: want one of %q", what, name, names)
}
