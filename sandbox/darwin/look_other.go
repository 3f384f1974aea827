//go:build !darwin

package darwin

import "strings"

// macLinks are links of every Mac, hier(7).
var macLinks = map[string]string{"/tmp": "private/tmp", "/var": "private/var", "/etc": "private/etc"}

func lookAt(file string) (target string, isLink bool, err error) {
	if target, ok := macLinks[file]; ok {
		return target, true, nil
	}
	for link := range macLinks {
		if rest, ok := strings.CutPrefix(file, "/private"+link); ok && (rest == "" || rest[0] == '/') {
			if rest == "" {
				return "", false, nil
			}
			return readlink(link + rest)
		}
	}
	if file == "/private" {
		return "", false, nil
	}
	return readlink(file)
}

func stored(file string) string { return file }
