#!/bin/bash
# Runs the self-test and the tests of sandbox/linux inside other kernels, as root
# and as an ordinary user, and prints one table. Kernels are Debian's, fetched from
# the mirror that apt is set up with; they run under qemu, with KVM where that boots
# them, else emulated: about a minute of one processor a line.
#
#	scripts/kmatrix.sh [-k KERNELS] [-v VARIANTS] [-j JOBS] [-s] [-o FILE]
#
#	-k  versions, comma-separated: 5.10, 6.12, newest (default: all that Debian has)
#	-v  variants, comma-separated (default: all of the list below)
#	-j  virtual machines at once (default: 1)
#	-s  the self-test alone, without the tests of sandbox/linux
#	-o  write what the self-tests said to FILE, one JSON object a line
#
# KMATRIX_TIMEOUT is how many seconds a virtual machine has (default: 900), KMATRIX_KEEP=1
# keeps what they wrote.
#
# Exit status: 0 if every line is as it has to be, 1 if one is not, 2 if this
# machine cannot run it, which it says.
set -euo pipefail
cd "$(dirname "$0")/.."

# What is changed in a virtual machine. Parts of a variant are joined by "+".
variants=(
	base              # cgroup v2 at /sys/fs/cgroup; an ordinary user may not write there
	v1                # cgroup v1: memory, pids, cpu, cpuacct, freezer
	hybrid            # v1 for memory and pids, v2 at /sys/fs/cgroup/unified
	delegated         # v2, a subtree of which belongs to the ordinary user
	nocgroup          # no cgroup file system
	nouserns          # user.max_user_namespaces = 0
	nolandlock        # not in lsm=
	nouserns+nolandlock # an ordinary user's commands must be refused
)

kernels='' chosen='' jobs=1 alone='' keep=''
while getopts k:v:j:so: option; do
	case $option in
	k) kernels=$OPTARG ;;
	v) chosen=$OPTARG ;;
	j) jobs=$OPTARG ;;
	s) alone=yes ;;
	o) keep=$OPTARG ;;
	*) exit 2 ;;
	esac
done
[ -z "$chosen" ] || IFS=, read -ra variants <<<"$chosen"
cache=${XDG_CACHE_HOME:-$HOME/.cache}/sandbox-exec-kernels
seconds=${KMATRIX_TIMEOUT:-900} # of one virtual machine

cannot() {
	echo "kmatrix: cannot run here: $*" >&2
	exit 2
}
[ "$(uname -m)" = x86_64 ] || cannot "the kernels are x86-64's"
for tool in qemu-system-x86_64 busybox cpio python3; do
	command -v $tool >/dev/null || cannot "$tool is missing (Debian: qemu-system-x86 busybox-static cpio python3)"
done

work=$(mktemp -d /var/tmp/sandbox-exec-kmatrix.XXXXXX)
# A virtual machine is the grandchild of a job.
trap 'for job in $(jobs -p); do pkill -P "$job" || true; done; [ -n "${KMATRIX_KEEP:-}" ] || rm -rf "$work"' EXIT

# apt with lists of its own, from the sites, keys and proxies of this machine's. A
# suite that the mirror no longer has is left out.
apt_setup() {
	local apt=$work/apt uri label key=
	mkdir -p "$apt"/lists/partial "$apt"/cache/archives/partial "$apt"/debs
	[ ! -e /usr/share/keyrings/debian-archive-keyring.gpg ] || key='[signed-by=/usr/share/keyrings/debian-archive-keyring.gpg]'
	while IFS='|' read -r uri label; do
		case $label in
		Debian) set -- bullseye bookworm bookworm-backports trixie trixie-backports sid ;;
		Debian-Security) set -- bullseye-security bookworm-security trixie-security ;;
		*) continue ;;
		esac
		for suite; do echo "deb $key $uri $suite main"; done
	done < <(apt-get indextargets --format '$(REPO_URI)|$(LABEL)' 'Created-By: Packages' | sort -u) >"$apt/sources.list"
	[ -s "$apt/sources.list" ] || cannot "apt is set up with no mirror of Debian's, which has the kernels"
	cat >"$apt/apt.conf" <<-CONF
		Dir::Etc::SourceList "$apt/sources.list";
		Dir::Etc::SourceParts "/dev/null";
		Dir::State::Lists "$apt/lists";
		Dir::Cache "$apt/cache";
		APT::Sandbox::User "root";
		Acquire::Languages "none";
	CONF
	export APT_CONFIG=$apt/apt.conf
	apt-get update >"$apt/log" 2>&1 || true
}

# The newest package of each version: "6.12 linux-image-6.12.118+deb13-cloud-amd64".
# A kernel lies in linux-image-* up to 6.18, in linux-binary-* from 6.19 on.
packages() {
	apt-cache pkgnames linux- |
		sed -nE 's/^(linux-(image|binary)-)([0-9]+\.[0-9]+)(\.[0-9].*-cloud-amd64)$/\3 \2 &/p' |
		sort -k1,1V -k2,2r -k3,3V | awk '{ name[$1] = $2 == "binary" || !($1 in binary) ? $3 : name[$1]; if ($2 == "binary") binary[$1] = 1 }
			END { for (v in name) print v, name[v] }' | sort -V
}

# want VERSION: whether it was asked for.
want() {
	[ -z "$kernels" ] || [[ ,$kernels, == *,$1,* ]]
}

# images prints "VERSION FILE" for each kernel, from the cache if it is complete.
images() {
	mkdir -p "$cache"
	if [ ! -e "$cache/list" ] || [ -n "$(find "$cache/list" -mtime +6)" ]; then
		apt_setup
		packages >"$work/list"
		[ -s "$work/list" ] || { tail -n 3 "$work/apt/log" >&2; cannot "apt finds no kernels"; }
		mv "$work/list" "$cache/list"
	fi
	local newest version package
	newest=$(tail -n 1 "$cache/list" | cut -d' ' -f1)
	while read -r version package; do
		want "$version" || { [ "$version" = "$newest" ] && want newest; } || continue
		if [ ! -e "$cache/$package" ]; then
			[ -n "${APT_CONFIG:-}" ] || apt_setup
			(cd "$work/apt/debs" && apt-get download "$package") >>"$work/apt/log" 2>&1 || { tail -n 3 "$work/apt/log" >&2; cannot "apt does not get $package"; }
			dpkg-deb --fsys-tarfile "$work"/apt/debs/"$package"_*.deb | tar -xO --wildcards './boot/vmlinuz*' './usr/lib/modules/*/vmlinuz' >"$cache/part" 2>/dev/null || true
			[ -s "$cache/part" ] || cannot "no kernel in $package"
			mv "$cache/part" "$cache/$package"
		fi
		echo "$version $cache/$package"
	done <"$cache/list"
}

images >"$work/images"
for version in ${kernels//,/ }; do
	[ "$version" = newest ] || grep -q "^${version//./\\.} " "$work/images" || echo "kmatrix: Debian has no $version now; left out" >&2
done
[ -s "$work/images" ] || cannot "Debian has none of the kernels $kernels"

# The root file system of the virtual machines: busybox, the program, the tests.
root=$work/root
mkdir -p "$root"/{bin,dev,proc,sys,etc,new,w}
CGO_ENABLED=0 go build -tags urfave_cli_no_docs -trimpath -ldflags '-s -w' -o "$root/w/sandbox-exec" ./cmd/sandbox-exec
if [ -z "$alone" ]; then
	mkdir -p "$root"/w/sandbox/linux "$root"/w/testdata
	CGO_ENABLED=0 go test -c -trimpath -ldflags '-s -w' -o "$root/w/sandbox/linux/linux.test" ./sandbox/linux
	cp -r sandbox/linux/testdata "$root/w/sandbox/linux"
	cp testdata/*.txt "$root/w/testdata"
fi
cp "$(command -v busybox)" "$root/bin/busybox"
printf 'root:x:0:0:root:/root:/bin/sh\nu:x:1000:1000:u:/home/u:/bin/sh\nnobody:x:65534:65534::/:/bin/sh\n' >"$root/etc/passwd"
printf 'root:x:0:\nu:x:1000:\nnogroup:x:65534:\n' >"$root/etc/group"
printf '127.0.0.1 localhost\n' >"$root/etc/hosts"

# The first process moves to a tmpfs: the kernel's own root cannot be left by pivot_root.
cat >"$root/init" <<'EOG'
#!/bin/busybox sh
/bin/busybox mount -t tmpfs -o mode=755 tmpfs /new
for d in bin etc w; do /bin/busybox cp -a /$d /new/; done
/bin/busybox cp /machine /new/machine
cd /new && /bin/busybox mkdir dev proc sys root tmp var var/tmp home home/u run usr usr/bin lib64
exec /bin/busybox switch_root /new /machine
EOG
cat >"$root/machine" <<'EOG'
#!/bin/busybox sh
export PATH=/bin:/usr/bin HOME=/root TERM=linux
/bin/busybox --install -s /bin
mount -t proc proc /proc; mount -t sysfs sysfs /sys; mount -t devtmpfs devtmpfs /dev
mkdir -p /dev/pts /dev/shm
mount -t devpts -o gid=5,mode=620,ptmxmode=666 devpts /dev/pts
mount -t tmpfs -o mode=1777 tmpfs /dev/shm
ln -s /proc/self/fd /dev/fd; ln -s /proc/self/fd/0 /dev/stdin; ln -s /proc/self/fd/1 /dev/stdout
chmod 1777 /tmp /var/tmp; chown 1000:1000 /home/u; chmod 700 /home/u /root
chmod 666 /dev/null /dev/zero /dev/full /dev/random /dev/urandom /dev/tty /dev/ptmx
ip link set lo up 2>/dev/null || ifconfig lo 127.0.0.1 up
variant=$(sed -n 's/.*kmatrix=\([^ ]*\).*/\1/p' /proc/cmdline)
has() { case "+$variant+" in *"+$1+"*) true ;; *) false ;; esac; }
cg=/sys/fs/cgroup
first() { # mount v1 controllers
	mount -t tmpfs -o mode=755 cgroup $cg
	for c; do mkdir $cg/$c; mount -t cgroup -o $c $c $cg/$c 2>/dev/null || rmdir $cg/$c; done
}
if has nocgroup; then :
elif has v1; then first memory pids cpu cpuacct freezer
elif has hybrid; then first memory pids; mkdir $cg/unified; mount -t cgroup2 cgroup2 $cg/unified
else
	mount -t cgroup2 cgroup2 $cg; mkdir $cg/init; echo $$ >$cg/init/cgroup.procs
	for c in memory pids cpu; do echo +$c >$cg/cgroup.subtree_control; done
fi
if has nouserns; then echo 0 >/proc/sys/user/max_user_namespaces; fi
if has delegated; then
	mkdir $cg/user $cg/user/leaf
	for c in memory pids cpu; do echo +$c >$cg/user/cgroup.subtree_control; done
	for f in user user/leaf user/cgroup.procs user/cgroup.subtree_control user/cgroup.threads user/leaf/cgroup.procs; do chown 1000:1000 $cg/$f; done
fi
# The second serial line is for what is said; the kernel writes to the first.
stty -F /dev/ttyS1 raw -echo
exec </dev/null >/dev/ttyS1 2>/w/err
cd /
as_user() { # as the ordinary user; in the delegated group, where there is one
	if has delegated; then sh -c 'echo $$ >/sys/fs/cgroup/user/leaf/cgroup.procs; exec "$@"' sh su -s /bin/sh u -c "$1"
	else su -s /bin/sh u -c "$1"; fi
}
echo "@@ up $(cut -d' ' -f1 /proc/uptime)"
/w/sandbox-exec selftest --json >/w/root.json 2>/w/err; echo "@@ root $? $(cut -d" " -f1 /proc/uptime)"; cat /w/root.json; tail -n 3 /w/err
as_user 'cd /home/u; HOME=/home/u USER=u /w/sandbox-exec selftest --json' >/w/user.json 2>/w/err; echo "@@ user $? $(cut -d" " -f1 /proc/uptime)"; cat /w/user.json; tail -n 3 /w/err
if [ -e /w/sandbox ]; then
	# Without those that read the sources or want tools that are not here.
	(cd /w/sandbox/linux && ./linux.test -test.count=1 -test.timeout=600s -test.skip='^Test(FilterVerdicts|Rules|RequiredRefusals|FiltersAreGenerated|SeccompLetsToolsWork)$' >/w/tests 2>&1); echo "@@ tests $? $(cut -d" " -f1 /proc/uptime)"
	grep -a -E '^ *(--- FAIL|panic|[a-z_]+_test.go)' /w/tests | head -n 40
fi
echo "@@ end"
sync; sleep 0.2; echo o >/proc/sysrq-trigger; sleep 100
EOG
chmod 755 "$root/init" "$root/machine"
(cd "$root" && find . | cpio -o -H newc --quiet -R 0:0) | gzip -1 >"$work/initrd"

boot() { # boot ACCELERATOR IMAGE VARIANT OUT SECONDS
	local lsm='' clock=(-accel "$1")
	# Emulated, time goes by the instructions that were run, so that a busy host makes
	# no time-out, and what sleeps does not wait.
	[ "$1" != tcg ] || clock=(-accel tcg -icount shift=1,sleep=off)
	[[ +$3+ != *+nolandlock+* ]] || lsm='lsm=lockdown,yama,apparmor'
	# Alternatives that the emulator has no use for are left out of the processor.
	timeout -k 5 "$5" qemu-system-x86_64 -M q35 "${clock[@]}" -cpu max -m 1024 -smp 1 -nodefaults -no-user-config -no-reboot -display none \
		-kernel "$2" -initrd "$work/initrd" -serial "file:$4.console" -serial "file:$4" \
		-append "console=ttyS0 quiet loglevel=3 panic=-1 no_timer_check tsc=reliable $lsm kmatrix=$3" </dev/null >"$4.qemu" 2>&1 || true
}

# KVM inside of a virtual machine may be there and not boot a kernel.
accelerator=tcg
if [ -w /dev/kvm ]; then
	(boot kvm "$(head -n 1 "$work/images" | cut -d' ' -f2)" nocgroup "$work/probe" 20) 2>/dev/null # it may abort
	! grep -qa '@@ up' "$work/probe" 2>/dev/null || accelerator=kvm
fi
echo "kmatrix: $(wc -l <"$work/images") kernels, ${#variants[@]} variants, $accelerator" >&2

mkdir "$work/out"
while read -r version image; do
	for variant in "${variants[@]}"; do
		while [ "$(jobs -rp | wc -l)" -ge "$jobs" ]; do wait -n; done
		boot $accelerator "$image" "$variant" "$work/out/$version.$variant" "$seconds" &
	done
done <"$work/images"
wait
python3 scripts/kmatrix_table.py "$work/out" "$keep"
