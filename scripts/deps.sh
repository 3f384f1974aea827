#!/bin/bash
# Installs what the tests need and this machine lacks: Debian and Ubuntu
# packages, as root or by sudo. Elsewhere it says what is missing.
#
#	scripts/deps.sh [kernels]    with what scripts/kmatrix.sh needs, too
set -euo pipefail

missing=()
need() { # need PACKAGE COMMAND...: the package is missing if one of the commands is
	local package=$1
	shift
	for command; do
		if ! command -v "$command" >/dev/null; then
			missing+=("$package")
			return
		fi
	done
}
need bash bash
need dash dash
need git git
need make make
need gcc gcc
need python3 python3
need nodejs node
need curl curl
need util-linux setpriv unshare
need procps ps
need bubblewrap bwrap
if [ "${1:-}" = kernels ]; then
	need qemu-system-x86 qemu-system-x86_64
	need busybox-static busybox
	need cpio cpio
fi
[ -e /usr/include/seccomp.h ] || missing+=(libseccomp-dev)
[ -e /usr/include/stdlib.h ] || missing+=(libc6-dev)

if ! command -v go >/dev/null; then
	echo "deps: go is missing; install $(sed -n 's/^go /Go /p' go.mod) or newer from https://go.dev/dl" >&2
	exit 1
fi
[ ${#missing[@]} -gt 0 ] || exit 0

install=(apt-get install -y --no-install-recommends "${missing[@]}")
if ! command -v apt-get >/dev/null; then
	echo "deps: missing here (names of Debian packages): ${missing[*]}" >&2
	exit 1
fi
as_root=()
if [ "$(id -u)" != 0 ]; then
	if ! sudo -n true 2>/dev/null; then
		echo "deps: run this first: sudo ${install[*]}" >&2
		exit 1
	fi
	as_root=(sudo -n)
fi
export DEBIAN_FRONTEND=noninteractive
"${as_root[@]}" apt-get update -q
"${as_root[@]}" "${install[@]}"
