#!/bin/bash
# Shows what sandbox-exec promises, on a repository and a home that it makes: a
# command that works, and a key, a server and a home that it keeps a command
# from. Fails if one promise does not hold.
set -euo pipefail
cd "$(dirname "$0")/.."
[ -x bin/sandbox-exec ] || make -s build
program=$PWD/bin/sandbox-exec

dir=$(mktemp -d "${TMPDIR:-/var/tmp}/sandbox-exec-demo.XXXXXX")
server=
trap '[ -z "$server" ] || kill "$server" 2>/dev/null; rm -rf "$dir"' EXIT

# A home with a key, a project in it, and a server that notes who came.
export HOME=$dir/home
unset XDG_CONFIG_HOME XDG_STATE_HOME XDG_CACHE_HOME XDG_DATA_HOME GIT_DIR GIT_WORK_TREE
token=key-$RANDOM$RANDOM$RANDOM
mkdir -p "$HOME/.ssh" "$HOME/project"
echo "$token" >"$HOME/.ssh/id_ed25519"
echo "keep me" >"$HOME/diary"
git config --global user.name "A Person"
git config --global user.email person@example.org
cd "$HOME/project"
git init -q .
echo "hello" >README
git add README
git commit -qm "first"

python3 - "$dir/port" "$dir/visits" <<'EOP' &
import os, socket, sys
s = socket.socket()
s.bind(("127.0.0.1", 0))
s.listen()
with open(sys.argv[1] + ".part", "w") as f:
    f.write(str(s.getsockname()[1]))
os.rename(sys.argv[1] + ".part", sys.argv[1])
while True:
    c, _ = s.accept()
    with open(sys.argv[2], "a") as f:
        f.write("somebody came\n")
    c.close()
EOP
server=$!
for _ in $(seq 100); do
	[ -e "$dir/port" ] && break
	sleep 0.05
done
port=$(cat "$dir/port")

broken=0
# try WANT WHAT COMMAND...: runs the command, which must end with this status;
# "!0" means any but 0.
try() {
	local want=$1 what=$2
	shift 2
	echo
	echo "--- $what"
	printf '$ sandbox-exec'
	for word in "${@:2}"; do
		case $word in
		*[!A-Za-z0-9_./~:=-]*) printf " '%s'" "$word" ;;
		*) printf ' %s' "$word" ;;
		esac
	done
	echo
	status=0
	"$@" >"$dir/out" 2>&1 </dev/null || status=$?
	sed 's/^/    /' "$dir/out"
	echo "    exit status $status"
	case $want in
	'!0') [ "$status" != 0 ] || fails "it should have failed" ;;
	*) [ "$status" = "$want" ] || fails "exit status $want was promised" ;;
	esac
}
fails() {
	echo "    BROKEN: $1"
	broken=$((broken + 1))
}

try 0 "Work in the workspace runs without a question" \
	"$program" -c 'echo change >>README && git commit -qam second && git log --oneline'
[ "$(git log --format=%s | head -n 1)" = second ] || fails "there is no commit"

try 126 "A command that reads a key is not run" \
	"$program" -- cat "$HOME/.ssh/id_ed25519"
! grep -q "$token" "$dir/out" || fails "the key came out"

read_key='import os; print(open(os.path.expanduser("~/.ssh/id_ed25519")).read())'
try '!0' "A program that reads it unseen cannot: the sandbox hides it" \
	"$program" -- python3 -c "$read_key"
! grep -q "$token" "$dir/out" || fails "the key came out"

try '!0' "No network: a server of this very machine is not reached" \
	"$program" -- python3 -c "import socket; socket.create_connection((\"127.0.0.1\", $port), 2)"
[ ! -e "$dir/visits" ] || fails "the server was reached"

try '!0' "Nothing outside of the workspace is written" \
	"$program" -- python3 -c 'import os; open(os.path.expanduser("~/.bashrc"), "a").write("evil")'
[ ! -e "$HOME/.bashrc" ] || fails "it was written"

try 126 "Removal of the home is denied, whatever the mode" \
	"$program" --profile ci -c 'rm -rf ~'
[ -e "$HOME/diary" ] || fails "the home is gone"

try 124 "Time is limited where it was asked for" \
	"$program" --timeout 1s -- sleep 60

# The same without the sandbox, or the above would prove nothing.
[ "$(python3 -c "$read_key")" = "$token" ] || fails "the key cannot be read without the sandbox either"
python3 -c "import socket; socket.create_connection(('127.0.0.1', $port), 2)"
for _ in $(seq 100); do
	[ -e "$dir/visits" ] && break
	sleep 0.05
done
[ -e "$dir/visits" ] || fails "the server cannot be reached without the sandbox either"

echo
if [ "$broken" -gt 0 ]; then
	echo "demo: $broken promises BROKEN"
	exit 1
fi
echo "demo: every promise held"
