#!/bin/bash
# Asks a Mac what only a Mac can tell: whether Seatbelt decides as our model of it
# says, what is still open, and whether commands run, are held and end. Prints one
# report, to be sent back whole:
#
#	scripts/macos-check.sh [SANDBOX-EXEC] 2>&1 | tee macos-report.txt
#
# As an ordinary user, from a terminal outside of any sandbox; it needs the command
# line tools (xcode-select --install), and Go unless a binary is given. It works in
# directories of its own below the home, and removes them. Exit status: 0 all as
# expected, 1 something is not, 2 this machine cannot be asked.
set -u
cd "$(dirname "$0")/.." || exit 2
top=$PWD
tool=/usr/bin/sandbox-exec
bin=${1:-}
bad=0 good=0

stop() { echo "CANNOT ASK: $*"; exit 2; }
section() { echo; echo "== $*"; }
ok() { good=$((good + 1)); echo "ok       $*"; }
differs() { bad=$((bad + 1)); echo "DIFFERS  $*"; }
# fact NAME COMMAND…: what it prints, its last lines, and its status.
fact() {
	local name=$1 out status
	shift
	out=$("$@" 2>&1)
	status=$?
	echo "fact     $name: status $status: $(printf '%s' "$out" | tail -n 3 | tr '\n' '|' | cut -c1-300)"
}

section "Machine"
[ "$(uname -s)" = Darwin ] || stop "this is $(uname -s), not macOS"
[ "$(id -u)" != 0 ] || stop "run it as an ordinary user"
sw_vers
uname -mrs
csrutil status 2>&1
date
allow='(version 1)(allow default)'
if ! out=$("$tool" -p "$allow(deny file-write* (subpath \"/nonexistent\"))" /usr/bin/true 2>&1); then
	stop "no sandbox can be made here: $out"
fi
if [ -z "$bin" ]; then
	make -s build || stop "sandbox-exec does not build; give a binary"
	bin=$top/bin/sandbox-exec
fi
bin=$(cd "$(dirname "$bin")" && pwd -P)/$(basename "$bin")
"$bin" --version || stop "$bin does not run"

root=$(mktemp -d "$HOME/sandbox-exec-check.XXXXXX") || stop "no directory in the home"
root=$(cd "$root" && pwd -P)
trap 'chmod -R u+rwX "$root" 2>/dev/null; rm -rf "$root"' EXIT
w=$root/w

# fresh lays out the files that verdicts are asked about.
fresh() {
	rm -rf "$w" "$root/out"
	mkdir -p "$w/s" "$w/a/b" "$w/d" "$w/.git/hooks" "$root/out"
	for f in s/k s/f a/b/f .git/x .env d/.env f; do echo text >"$w/$f"; done
	echo outside >"$root/out/f"
	ln "$root/out/f" "$w/hard"
	ln -s "$root/out/f" "$w/soft"
	ln -s "$w" "$root/out/way"
}

# What a program needs to start under (deny default).
dd='(version 1)(deny default)(allow process* sysctl* mach* ipc* iokit* signal system*)
(allow file-read* file-test-existence file-map-executable (literal "/") (literal "/private") (literal "/private/var")
 (subpath "/usr") (subpath "/bin") (subpath "/sbin") (subpath "/System") (subpath "/Library") (subpath "/dev")
 (subpath "/private/etc") (subpath "/private/var/db") (subpath "/private/var/select"))
(allow file-write-data file-ioctl (subpath "/dev"))'

# verdict NAME allow|deny RULES COMMAND…: runs the command alone, which must work,
# then under the rules. W/ in rules and command stands for the directory.
verdict() {
	local name=$1 want=$2 rules=${3//W\//$w/} got=allow out
	shift 3
	fresh
	if ! out=$(/bin/sh -c "${*//W\//$w/}" 2>&1); then
		differs "$name: the control fails without a sandbox: $out"
		return
	fi
	fresh
	out=$("$tool" -p "$rules" /bin/sh -c "${*//W\//$w/}" 2>&1) || got=deny
	if [ "$got" = "$want" ]; then ok "$name: $got"; else differs "$name: want $want, got $got: $out"; fi
}

section "Verdicts: does Seatbelt decide as our model says"
verdict "a program starts under deny default" allow "$dd" "cat /etc/hosts >/dev/null"
verdict "nothing granted, read" deny "$dd" "cat W/f"
verdict "file-read-data allowed, file-read* denied later" allow "$allow(allow file-read-data (subpath \"W/s\"))(deny file-read* (subpath \"W/s\"))(allow file-read-metadata (subpath \"W/s\"))" "cat W/s/k"
verdict "same operation, later deny" deny "$dd(allow file-read* (subpath \"$w\"))(deny file-read* (subpath \"W/s\"))" "cat W/s/k"
verdict "narrow deny, wide allow after it" deny "$dd(allow file-read* (subpath \"$w\"))(deny file-read-data (subpath \"W/s\"))(allow file-read* (literal \"W/s/k\"))" "cat W/s/k"
verdict "wide deny, wide allow after it" allow "$dd(allow file-read* (subpath \"$w\"))(deny file-read* (subpath \"W/s\"))(allow file-read* (literal \"W/s/k\"))" "cat W/s/k"
verdict "write denied below an allow" deny "$allow(allow file-write* (subpath \"$w\"))(deny file-write* (subpath \"W/.git\"))" "echo x >W/.git/x"
verdict "write allowed again by a later rule (trap)" allow "$allow(deny file-write* (subpath \"W/.git\"))(allow file-write* (subpath \"$w\"))" "echo x >W/.git/x"
verdict "deeper allow after a deny" allow "$allow(deny file-read* (subpath \"W/a\"))(allow file-read* (subpath \"W/a/b\"))" "cat W/a/b/f"
verdict "deeper allow before a deny" deny "$allow(allow file-read* (subpath \"W/a/b\"))(deny file-read* (subpath \"W/a\"))" "cat W/a/b/f"
verdict "a rule without a filter against one with" allow "(version 1)(allow file-write* (subpath \"$w\"))(deny file-write*)(allow file-write* (subpath \"/dev\"))(allow default)" "echo x >W/f"
verdict "bare deny of unlink beats an allow of file-write*" deny "$allow(deny file-write-unlink)(allow file-write* (subpath \"$w\"))" "rm W/f"
verdict "metadata of a denied file" deny "$allow(deny file-read* (literal \"W/f\"))" "stat W/f"
verdict "a rule for a way through a link is dead" allow "$allow(deny file-read* (literal \"$root/out/way/f\"))" "cat '$root/out/way/f'"
verdict "a trailing slash is dead" allow "$allow(deny file-read* (subpath \"W/s/\"))" "cat W/s/k"
verdict "a double slash is dead" allow "$allow(deny file-read* (subpath \"$w//s\"))" "cat W/s/k"
verdict "rename leaks a hidden file" allow "$allow(deny file-read* (literal \"W/.env\"))" "mv W/.env W/x && cat W/x"
verdict "unlink and create denied hold it" deny "$allow(deny file-read* file-write-unlink file-write-create (literal \"W/.env\"))" "mv W/.env W/x && cat W/x"
verdict "renaming the parent leaks it" allow "$allow(deny file-read* file-write-unlink file-write-create (literal \"W/d/.env\"))" "mv W/d W/e && cat W/e/.env"
verdict "a pin on the parent holds it" deny "$allow(deny file-read* file-write-unlink file-write-create (literal \"W/d/.env\"))(deny file-write-unlink (literal \"W/d\"))" "mv W/d W/e && cat W/e/.env"
verdict "… and files beside it can be made" allow "$allow(deny file-write-unlink (literal \"W/d\"))" "echo x >W/d/new && rm W/d/new"
verdict "hard link to the outside" deny "$dd(allow file-read* file-write* (subpath \"$w\"))(allow file-read* (subpath \"$root/out\"))" "ln '$root/out/f' W/l"
verdict "write through an old hard link" allow "$dd(allow file-read* file-write* (subpath \"$w\"))" "echo x >W/hard"
verdict "write through a symbolic link" deny "$dd(allow file-read* file-write* (subpath \"$w\"))" "echo x >W/soft"
verdict "regex with one backslash" deny "$allow(deny file-read* (regex #\"^W/\\.env\$\"))" "cat W/.env"
verdict "regex with two is dead" allow "$allow(deny file-read* (regex #\"^W/\\\\.env\$\"))" "cat W/.env"
verdict "set-user-ID programs do not start" deny "$allow(deny file-write* (subpath \"/nonexistent\"))" "/bin/ps >/dev/null"
verdict "vnode-type allow against a subpath deny (does not fit the model)" allow "$allow(deny file-read* (subpath \"W/s\"))(allow file-read* (require-all (subpath \"$w\") (vnode-type REGULAR-FILE)))" "cat W/s/k"
verdict "chain allow, deny, allow of the same" allow "$allow(deny file-read* (subpath \"W/s\"))(allow file-read* (subpath \"$w\"))" "cat W/s/k"
verdict "a host by number does not compile" deny "$allow(deny network-outbound (remote tcp \"127.0.0.1:80\"))" "true"

section "Open questions"
fresh
ask() { local name=$1 rules=$2; shift 2; fact "$name" "$tool" -p "$rules" "$@"; }
printf '%s' "$allow" >"$root/p.sb"
fact "-f /dev/fd/N" "$tool" -f /dev/fd/8 /usr/bin/true 8<"$root/p.sb"
fact "descriptors are kept" "$tool" -p "$allow" /bin/sh -c 'cat <&9' 9<"$w/f"
ask "a profile that does not compile" "(version 1)(allow nonsense)" /usr/bin/true
ask "a program that is not there" "$allow" /nonexistent
ask "a sandbox in a sandbox" "$allow(deny file-write* (subpath \"/nonexistent\"))" "$tool" -p "$allow" /usr/bin/true
ask "a sandbox in one that allows all" "$allow" "$tool" -p "$allow" /usr/bin/true
ask "words on stderr of one that works" "$allow" /usr/bin/true
ask "subpath of a plain file (denied: it matches)" "$allow(deny file-read* (subpath \"$w/f\"))" /bin/cat "$w/f"
ask "literal in the other case (denied: it folds)" "$allow(deny file-read* (literal \"$w/.ENV\"))" /bin/cat "$w/.env"
ask "subpath in the other case (denied: it folds)" "$allow(deny file-read* (subpath \"$w/S\"))" /bin/cat "$w/s/k"
ask "regex in the other case (denied: it folds)" "$allow(deny file-read* (regex #\"/[.]ENV\$\"))" /bin/cat "$w/.env"
ask "soft: iokit-get-properties under deny default" "$dd(deny iokit*)" /usr/sbin/ioreg -l -w0 -n IOPlatformExpertDevice
ask "soft: nvram under deny default" "$dd" /usr/sbin/nvram -p
ask "soft: process-info under deny default" "(version 1)(deny default)${dd#*deny default)}" /usr/bin/pgrep -l launchd
ask "soft: file-link under deny default" "$dd(allow file-read* file-write* (subpath \"$w\"))" /bin/ln "$w/f" "$w/linked"
for op in file-clone fs-rename file-link file-test-existence dynamic-code-generation syscall-unix; do
	ask "the name $op compiles" "(version 1)(allow default)(deny $op (with no-log))" /usr/bin/true
	ask "the name $op compiles with a path" "(version 1)(allow default)(deny $op (literal \"/nonexistent\"))" /usr/bin/true
done
ask "with message on a deny" "$allow(deny file-read* (literal \"$w/f\") (with message \"check\"))" /bin/cat "$w/f"
ask "clone out of a denied file" "$allow(deny file-read* (literal \"$w/f\"))" /bin/cp -c "$w/f" "$w/clone"
ask "TIOCSTI on the terminal" "$allow(deny file-ioctl)" /usr/bin/python3 -c 'import fcntl,termios; fcntl.ioctl(0,termios.TIOCSTI,b"\n")'
ask "argv and variables of others" "$dd(deny process-info*)(allow process-info* (target self))" /usr/sbin/sysctl -n kern.procargs2
fact "fast enough: 20 times true" /bin/bash -c 'time (for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do /usr/bin/true; done) 2>&1'
fact "… under the tool" /bin/bash -c "time (for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do $tool -p '$allow' /usr/bin/true; done) 2>&1"

section "sandbox-exec on this machine"
"$bin" doctor || differs "doctor says that no command can be run"
ws=$root/ws
mkdir -p "$ws" && cd "$ws" && git init -q . && echo 'int main(void){return 0;}' >p.c &&
	printf 'package main\n\nfunc main() {}\n' >p.go && printf 'module example.com/p\n' >go.mod || stop "no repository can be made"
(cd "$ws" && "$bin" seatbelt >"$root/own.sb") && fact "our profile, alone" "$tool" -f "$root/own.sb" /usr/bin/true
wc -lc "$root/own.sb"
# works NAME COMMAND…: it must work under sandbox-exec where it does without.
works() {
	local name=$1 out status
	shift
	if ! "$@" >/dev/null 2>&1; then echo "skipped  $name: does not work without a sandbox"; return; fi
	out=$("$bin" -q --ask allow -- "$@" 2>&1)
	status=$?
	if [ $status = 0 ]; then ok "$name works"; else differs "$name: status $status: $(printf '%s' "$out" | tail -n 5)"; fi
}
# refused NAME TEXT: the shell's text must fail under sandbox-exec.
refused() {
	local out
	if out=$("$bin" -q --ask allow -c "$2" 2>&1); then differs "$1 works: $out"; else ok "$1 is refused"; fi
}
works true true
works "a shell" /bin/sh -c 'echo x >new && cat new && rm new'
works zsh zsh -fc 'cat <<X
x
X'
works "TMPDIR" /bin/sh -c 'echo x >"$TMPDIR/f" && cat "$TMPDIR/f"'
works git git status
works cc cc -o p p.c
works "what was built" ./p
works go go build -o p2 .
works python3 python3 -c 'import os, json, tempfile; tempfile.TemporaryFile()'
works "python3, processes" python3 -c 'import multiprocessing as m; m.Lock()'
works node node -e 'require("os").cpus(); require("fs").realpathSync(".")'
works ruby ruby -e 'puts 1'
works perl perl -e 'print 1'
works swift swiftc -parse-as-library -version
works make make --version
works "a pipe" /bin/sh -c 'yes | head -n 1000 | wc -l'
works "a pseudo terminal" script -q /dev/null true
refused "a write to the home" 'echo x >"$HOME/sandbox-exec-was-here"'
refused "a look at ~/.ssh" 'ls "$HOME/.ssh/"'
refused "the keychain" 'security find-generic-password -l x -w; security dump-keychain | grep -q keychain'
refused "the clipboard" 'pbpaste'
refused "Apple events" 'osascript -e "tell application \"Finder\" to get name"'
refused "launch services" 'open -ga Calculator'
refused "a job of launchd" 'launchctl submit -l sandbox-exec-check -- /usr/bin/true'
refused "the network" 'curl -sm 5 https://example.com'
refused "a git hook" 'echo x >.git/hooks/pre-commit'
refused "a sandbox in a sandbox" '/usr/bin/sandbox-exec -p "(version 1)(allow default)" /usr/bin/true'
rm -f "$HOME/sandbox-exec-was-here"

section "Ends"
# ends NAME STATUS FLAGS… -- COMMAND…: and none of its processes lives on.
ends() {
	local name=$1 want=$2 mark=7$RANDOM$RANDOM status
	shift 2
	"$bin" -q --ask allow "${@//MARK/$mark}" >/dev/null 2>&1
	status=$?
	sleep 1
	if [ $status != "$want" ]; then differs "$name: status $status, want $want"
	elif pgrep -f "sleep $mark" >/dev/null; then differs "$name: a process lives on"; kill -9 $(pgrep -f "sleep $mark")
	else ok "$name"; fi
}
ends "a background process" 0 -- /bin/sh -c 'sleep MARK &'
ends "a time-out" 124 --timeout 1s --grace 1s -- /bin/sh -c 'sleep MARK'
ends "a deaf one" 124 --timeout 1s --grace 1s -- /bin/sh -c 'trap "" TERM HUP INT; sleep MARK & wait; sleep MARK'
ends "a session of its own" 0 -- /bin/sh -c 'perl -e "use POSIX; fork && exit; POSIX::setsid(); exec qw(sleep MARK)"; sleep 0.3'
ends "too many processes" 137 --pids 8 -- /bin/sh -c 'for i in 1 2 3 4 5 6 7 8 9; do sleep MARK & done; wait'
ends "too much memory" 137 --memory 200M -- perl -e '$x = "x" x 600000000; sleep MARK'
mark=7$RANDOM$RANDOM
"$bin" -q --ask allow -- /bin/sh -c "sleep $mark & sleep $mark" & pid=$!
sleep 1
kill -9 $pid
sleep 2
if pgrep -f "sleep $mark" >/dev/null; then differs "sandbox-exec is killed: the command lives on"; kill -9 $(pgrep -f "sleep $mark"); else ok "sandbox-exec is killed: the command ends"; fi

cd "$top" || exit 2
if command -v go >/dev/null; then
	section "Tests of the parts"
	go test -count=1 ./sandbox/... ./profiles ./policy && ok "go test" || differs "go test"
	section "Escapes"
	(cd testdata/escapes && PYTHONDONTWRITEBYTECODE=1 ./run --known known.txt -- "$bin" -q --) && ok escapes || differs escapes
fi

section "Sum"
echo "$good as expected, $bad not"
[ $bad = 0 ]
