#!/bin/bash
# Tries to escape from PROGRAM, as an ordinary user and, for root, as root too.
#
#	scripts/escapes.sh PROGRAM [ARG…]
set -euo pipefail
here=$PWD
cd "$(dirname "$0")/../testdata/escapes"
export PYTHONDONTWRITEBYTECODE=1

program=$(cd "$here" && realpath "$1")
shift
if [ "$(id -u)" = 0 ]; then
	# Where every user can reach it.
	dir=$(mktemp -d /var/tmp/sandbox-exec-escapes.XXXXXX)
	trap 'rm -rf "$dir"' EXIT
	chmod 755 "$dir"
	cp "$program" "$dir/sandbox-exec"
	program=$dir/sandbox-exec
fi
failed=0
./run --known known.txt -- "$program" "$@" || failed=1
if [ "$(id -u)" = 0 ]; then
	./run --root --known known.txt -- "$program" "$@" || failed=1
fi
exit $failed
