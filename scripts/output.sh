#!/bin/bash
# What capturing long output costs: time and memory of sandbox-exec --json and
# of runner.Run, beside cat into the same file system, and whether every byte is
# there. In memory (/dev/shm) where that has room, else on disk.
#
#	scripts/output.sh [BYTES] [ROUNDS]     default: 4 GiB, 3 rounds
set -euo pipefail
cd "$(dirname "$0")/.."
bytes=${1:-$((4 << 30))} rounds=${2:-3}
[ -x bin/sandbox-exec ] || make build
program=$PWD/bin/sandbox-exec

base=/var/tmp
if [ "$(df --output=avail -B1 /dev/shm | tail -n 1)" -gt $((bytes * 2)) ]; then
	base=/dev/shm
fi
state=$(mktemp -d "$base/output.XXXXXX")
workspace=$(mktemp -d /var/tmp/output.XXXXXX)
trap 'rm -rf "$state" "$workspace"' EXIT
go test -c -o "$state/runner.test" ./runner
cd "$workspace"

# seconds of a command; the memory of its largest process, in KiB, goes to a file
timed() { TIMEFORMAT=%R; { time /usr/bin/time -o "$state/rss" -f %M "$@" >"$state/out" 2>"$state/err"; } 2>&1; }
same() { (set +o pipefail; yes | head -c "$bytes" | cmp - "$1"); }

for _ in $(seq "$rounds"); do
	seconds=$(timed bash -c "yes | head -c $bytes | cat >$state/cat")
	rm "$state/cat"
	echo "cat          $seconds s"

	seconds=$(XDG_STATE_HOME=$state timed "$program" --json --timeout 5m --output-limit unlimited -c "yes | head -c $bytes")
	same "$state"/sandbox-exec/output/stdout-*
	rm -r "$state/sandbox-exec"
	echo "--json       $seconds s, $(tail -n 1 "$state/rss") KiB, every byte there"

	seconds=$(OUTPUT_BYTES=$bytes XDG_STATE_HOME=$state timed "$state/runner.test" -test.run '^$' -test.bench LongOutput -test.benchtime 1x)
	same "$state"/sandbox-exec/output/stdout-*
	rm -r "$state/sandbox-exec"
	echo "runner.Run   $(awk '/^BenchmarkLongOutput/ { for (i = 3; i < NF; i += 2) printf "%s %s, ", $i, $(i + 1) }' "$state/out")every byte there"
done
