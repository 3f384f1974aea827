package runner

import (
	"os"
	"path/filepath"
	"testing"
)

// What the settings add to a start: none are there, or all.
func BenchmarkLoadSettings(b *testing.B) {
	b.Run("none", func(b *testing.B) { benchmarkSettings(b, "", "") })
	b.Run("config and project", func(b *testing.B) {
		rule := "[[rule]]\nverdict = 'deny'\npattern = 'git push'\nmatch = ['git push -f']\n"
		benchmarkSettings(b, "mode = 'ask'\n"+rule+rule, "mode = 'plan'\n"+rule)
	})
}

func benchmarkSettings(b *testing.B, config, project string) {
	home := b.TempDir()
	b.Setenv("HOME", home)
	for name, text := range map[string]string{home + "/.config/sandbox-exec/config.toml": config, home + "/ws/.sandbox-exec.toml": project} {
		if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
			b.Fatal(err)
		}
		if text == "" {
			continue
		}
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			b.Fatal(err)
		}
	}
	for b.Loop() {
		s, err := LoadSettings(home+"/ws", home+"/ws")
		if err == nil {
			_, _, err = s.Profile("")
		}
		if err != nil {
			b.Fatal(err)
		}
	}
}
