//go:build !darwin

package darwin

import "strings"

// macLinks are links of every Mac into /private, hier(7).
var macLinks = [...]string{"/tmp", "/var", "/etc"}

func lookAt(file string) (target string, isLink bool, err error) {
	for _, link := range macLinks {
		if file == link {
			return "private" + link, true, nil
		}
		if file == "/private"+link || file == "/private" {
			return "", false, nil
		}
		if rest, ok := strings.CutPrefix(file, "/private"+link+"/"); ok {
			return readlink(link + "/" + rest)
		}
	}
	return readlink(file)
}

func stored(file string) string { return file }
