#!/bin/bash
# Many runs in one workspace, some of them killed, and then a look for what is left
# behind: as the caller and, for root, as an ordinary user too. See soak.py.
#
#	scripts/soak.sh [FLAGS OF soak.py]
set -euo pipefail
cd "$(dirname "$0")/.."
[ -x bin/sandbox-exec ] || make -s build
# Where every user can reach it.
dir=$(mktemp -d /var/tmp/sandbox-exec-soak.XXXXXX)
trap 'rm -rf "$dir"' EXIT
chmod 755 "$dir"
cp bin/sandbox-exec scripts/soak.py "$dir"
python3 "$dir/soak.py" --program "$dir/sandbox-exec" "$@"
if [ "$(id -u)" = 0 ]; then
	uid=54321 # of nobody
	install -d -o $uid -g $uid "$dir/home"
	setpriv --reuid $uid --regid $uid --clear-groups --inh-caps=-all --bounding-set=-all \
		env -i "PATH=$PATH" "HOME=$dir/home" LANG=C.UTF-8 python3 "$dir/soak.py" --program "$dir/sandbox-exec" "$@"
fi
