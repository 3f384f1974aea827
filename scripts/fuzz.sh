#!/bin/bash
# Runs every fuzz target for a while.
#
#	scripts/fuzz.sh [TIME]
set -euo pipefail
cd "$(dirname "$0")/.."
time=${1:-10s}
found=0
for package in $(go list ./...); do
	for target in $(go test -list '^Fuzz' "$package" | grep '^Fuzz' | sort -u || true); do
		echo "fuzz $package $target"
		go test -run '^$' -fuzz "^$target\$" -fuzztime "$time" "$package"
		found=$((found + 1))
	done
done
[ "$found" -gt 0 ] || { echo "fuzz: no targets found" >&2; exit 1; }
echo "fuzz: $found targets, $time each"
