#!/bin/bash
# What a start costs beyond the bare shell's, beside bubblewrap's with its own
# namespaces: medians of ROUNDS rounds in which the three take turns.
#
#	scripts/bench.sh [ROUNDS]
set -euo pipefail
cd "$(dirname "$0")/.."
[ -x bin/sandbox-exec ] || make -s build
command -v bwrap >/dev/null || { echo "bench: bwrap is missing (Debian: bubblewrap)" >&2; exit 1; }
workspace=$(mktemp -d /var/tmp/sandbox-exec-bench.XXXXXX)
trap 'rm -rf "$workspace"' EXIT
python3 - "$PWD/bin/sandbox-exec" "$workspace" "${1:-300}" <<'EOP'
import os, statistics, sys, time

program, workspace, rounds = sys.argv[1], sys.argv[2], int(sys.argv[3])
os.chdir(workspace)
command = ["/bin/sh", "-c", "true"]
lines = {
    "bare": command,
    "bwrap": ["bwrap", "--unshare-all", "--die-with-parent", "--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc",
              "--tmpfs", "/tmp", "--bind", workspace, workspace, "--chdir", workspace, *command],
    "sandbox-exec": [program, "-q", "--profile", "workspace", "--", *command],
}
times = {name: [] for name in lines}


def run(argv):
    start = time.perf_counter()
    _, status = os.waitpid(os.posix_spawnp(argv[0], argv, os.environ), 0)
    spent = time.perf_counter() - start
    if status:
        sys.exit(f"bench: {' '.join(argv)}: status {status}")
    return spent


for i in range(rounds + 5):
    order = list(lines)
    order = order[i % 3:] + order[:i % 3]
    for name in order:
        spent = run(lines[name])
        if i >= 5:  # the first rounds fill caches
            times[name].append(spent * 1e3)

bare = statistics.median(times["bare"])
print(f"{'':14} {'median':>9} {'overhead':>9}   ms, {rounds} rounds, uid {os.getuid()}, {os.cpu_count()} processors")
over = {}
for name, spent in times.items():
    over[name] = statistics.median(spent) - bare
    print(f"{name:14} {statistics.median(spent):9.3f} {over[name]:9.3f}")
print(f"sandbox-exec / bwrap: {over['sandbox-exec'] / over['bwrap']:.2f}")
EOP
