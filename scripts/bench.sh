#!/bin/bash
# What a sandbox costs, beside the bare command and every peer in PATH: see
# bench/main.go. As root workspaces are on a tmpfs, which is made for it; else in
# the home. An idle machine is asked for; the load is printed.
#
#	scripts/bench.sh [-rounds N] [-parts start,throughput,inside,memory,growth] [-files N] [-json FILE]
set -euo pipefail
cd "$(dirname "$0")/.."
[ -x bin/sandbox-exec ] || make -s build

if [ "$(id -u)" = 0 ] && [ -z "${SANDBOX_EXEC_BENCH:-}" ]; then
	# Mounts of our own are gone with us.
	exec env SANDBOX_EXEC_BENCH=1 unshare --mount --propagation private "$0" "$@"
fi
# Not below /tmp or /var/tmp, which not every sandbox shares with its commands.
dir=$(mktemp -d "$HOME/sandbox-exec-bench.XXXXXX")
[ -z "${SANDBOX_EXEC_BENCH:-}" ] || mount -t tmpfs -o mode=755,size=6g,nr_inodes=0 tmpfs "$dir"
trap '[ -z "${SANDBOX_EXEC_BENCH:-}" ] || umount -l "$dir"; rm -rf "$dir"' EXIT
mkdir "$dir/bin"
entry=$(sed -n 's/^ENTRY = //p' Makefile)
cp bin/sandbox-exec "$dir/bin/sandbox-exec"
CGO_ENABLED=0 go build -trimpath -ldflags "-s -w $entry" -o "$dir/bin/bench" ./scripts/bench
CGO_ENABLED=0 go build -trimpath -ldflags '-s -w' -o "$dir/bin/bench-plain" ./scripts/bench

# Where namespaces are refused: a user namespace in which no other can be made, and
# no power to make the rest.
refused=()
if unshare -Ur true 2>/dev/null; then
	cat >"$dir/bin/refused" <<-'EOR'
		#!/bin/sh
		exec unshare -Ur sh -c 'echo 0 >/proc/sys/user/max_user_namespaces; exec setpriv --inh-caps=-all --bounding-set=-all "$@"' sh "$@"
	EOR
	chmod 755 "$dir/bin/refused"
	refused=(-refused "$dir/bin/refused")
fi
"$dir/bin/bench" -program "$dir/bin/sandbox-exec" -plain "$dir/bin/bench-plain" -dir "$dir" "${refused[@]}" "$@"
