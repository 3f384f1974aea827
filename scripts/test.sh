#!/bin/bash
# Runs every test: as whoever calls it and, where that is possible, both as an
# ordinary user and as root, because the sandbox is built in another way for
# each. Packages take turns: some look at what a run leaves on the machine. The
# last line is the sum of all runs of the Go tests.
#
#	scripts/test.sh [FLAGS OF go test]
set -euo pipefail
cd "$(dirname "$0")/.."

scripts/deps.sh
out=$(mktemp -d /var/tmp/sandbox-exec-test.XXXXXX)
trap 'chmod -R u+w "$out" 2>/dev/null; rm -rf "$out"' EXIT
failed=0

echo "== Go tests as $(id -un)"
go test -count=1 -p 1 -json "$@" ./... >"$out/self.json" || failed=1

# The same with the helper that the kernel enters before the Go runtime.
if [ "$(go env GOOS)" = linux ]; then
	echo "== sandbox/linux, linked with the helper's entry"
	CGO_ENABLED=0 go test -count=1 -json "$@" -ldflags "$(make -s entry) -X github.com/sandbox-exec/sandbox-exec/sandbox/linux.linkedEntry=yes" \
		./sandbox/linux >"$out/entry.json" || failed=1
fi

# The other user gets a copy of the sources and of the modules that they need:
# ours may lie where nobody else can read.
copy() {
	mkdir -p "$out/src" "$out/home" "$out/tmp"
	git ls-files -z --cached --others --exclude-standard |
		while IFS= read -rd '' file; do [ -e "$file" ] && printf '%s\0' "$file"; done |
		xargs -0 cp --parents -P -t "$out/src"
	(cd "$out/src" && CGO_ENABLED=1 GOMODCACHE="$out/mod" GOFLAGS=-modcacherw \
		GOPROXY="file://$(go env GOMODCACHE)/cache/download,$(go env GOPROXY)" \
		go list -deps -test -tags libseccomp ./... >/dev/null 2>"$out/fetched") || { cat "$out/fetched"; exit 1; }
	chmod 755 "$out"
}
# The environment of the other user: nothing of ours but where programs are.
other=(env -i "PATH=$PATH" "HOME=$out/home" "TMPDIR=$out/tmp" "LANG=C.UTF-8" "USER=tester" "LOGNAME=tester"
	"GOCACHE=$out/cache" "GOMODCACHE=$out/mod" "GOFLAGS=-modcacherw" "GOPROXY=off" "GOTOOLCHAIN=local" "SHELL=/bin/bash")
runs=("$out/self.json")
[ ! -e "$out/entry.json" ] || runs+=("$out/entry.json")
if [ "$(id -u)" = 0 ]; then
	uid=54321 # of nobody
	echo "== Go tests as an ordinary user (uid $uid)"
	copy
	chown -R $uid:$uid "$out/src" "$out/mod" "$out/home" "$out/tmp"
	install -d -o $uid -g $uid "$out/cache"
	(cd "$out/src" && setpriv --reuid $uid --regid $uid --clear-groups --inh-caps=-all --bounding-set=-all \
		"${other[@]}" go test -count=1 -p 1 -json "$@" ./...) >"$out/user.json" || failed=1
	runs+=("$out/user.json")
elif sudo -n true 2>/dev/null; then
	echo "== Go tests as root"
	copy
	(cd "$out/src" && sudo -n "${other[@]}" go test -count=1 -p 1 -json "$@" ./...) >"$out/root.json" || failed=1
	sudo -n chown -R "$(id -u):$(id -g)" "$out"
	runs+=("$out/root.json")
else
	echo "== not run as root: there is no way to become it here"
fi

echo "== Escapes"
make -s escapes || failed=1
echo "== Demo"
scripts/demo.sh >"$out/demo" 2>&1 || { cat "$out/demo"; failed=1; }
tail -n 1 "$out/demo"

echo "== Sum"
go run ./scripts/testsum -skips testdata/skips.txt "${runs[@]}" || failed=1
exit $failed
