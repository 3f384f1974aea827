#!/usr/bin/env python3
"""Many runs, some of them killed, and then a look for what is left behind.

    scripts/soak.sh [--runs N] [--at-once M] [--killed SHARE]

A tenth of the runs come one after the other, the rest M at once, all in one shared
workspace. A share of them is killed with SIGKILL, parent only, at a random moment
from its start on. All others have to start and to end well. After one last run
nothing of any may be left: no file in the workspace, in sandbox-exec's own
directories, in /tmp, /var/tmp or /dev/shm, no process (and with it no namespace:
their numbers are used again, so they are only counted), no mount, no control group. Exit status: 0 if so, else 1.
"""
import argparse, os, random, re, secrets, shutil, signal, subprocess, sys, tempfile, threading, time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
ap.add_argument("--runs", type=int, default=300)
ap.add_argument("--at-once", type=int, default=64)
ap.add_argument("--killed", type=float, default=0.25, help="share of the runs that are killed (default: 0.25)")
ap.add_argument("--program", required=True, type=os.path.abspath)
ap.add_argument("--seed", type=int, default=secrets.randbelow(1 << 32))
opts = ap.parse_args()

rand, lock = random.Random(opts.seed), threading.Lock()
nonce = "soak" + secrets.token_hex(6)
base = Path(tempfile.mkdtemp(prefix=f"sandbox-exec-{nonce}-", dir="/var/tmp"))
home, work = base / "home", base / "home/work"
work.mkdir(parents=True)
subprocess.run(["git", "init", "-q", str(work)], check=True)
env = {k: v for k, v in os.environ.items() if not k.startswith("XDG_") or k == "XDG_RUNTIME_DIR"}
env.update(HOME=str(home), TMPDIR="/tmp")

# Each works a little in the workspace, in /tmp and in /dev/shm, leaves a child
# behind and says in which namespaces it was.
SCRIPT = """
echo work >"$1.new" && mv "$1.new" "$1" && [ "$(cat "$1")" = work ] && rm "$1" || exit 3
echo x >"${TMPDIR:-/tmp}/$1" && rm "${TMPDIR:-/tmp}/$1" || exit 4
[ ! -w /dev/shm ] || { echo x >"/dev/shm/$1" && rm "/dev/shm/$1"; } || exit 5
sleep 300 >/dev/null 2>&1 &
for ns in mnt pid net ipc user; do readlink "/proc/self/ns/$ns"; done
echo ends
[ "$2" = 0 ] || sleep "$2"
"""
seen = {"namespaces": set(), "pids": set(), "killed": 0, "failed": [], "slowest": 0.0}


def run(i, kill_after=None):
    argv = [opts.program, "-q", "--ask", "allow", "--mode", "allow", "--", "sh", "-c", SCRIPT, "sh", f"{nonce}-{i}", "0" if kill_after is None else "300"]
    began = time.monotonic()
    p = subprocess.Popen(argv, cwd=work, env=env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    if kill_after is not None:
        time.sleep(kill_after)
        p.send_signal(signal.SIGKILL)
    try:
        out = p.communicate(timeout=120)[0].decode(errors="replace")
    except subprocess.TimeoutExpired:
        p.kill()
        out = "it took longer than two minutes; its output is still held open"
    with lock:
        seen["pids"].add(p.pid)
        seen["namespaces"].update(re.findall(r"^(?:mnt|pid|net|ipc|user):\[\d+\]$", out, re.M))
        if kill_after is not None:
            seen["killed"] += 1
        elif p.returncode or not out.endswith("ends\n"):
            seen["failed"].append(f"run {i}: status {p.returncode}: {out.strip()[-300:]}")
        else:
            seen["slowest"] = max(seen["slowest"], time.monotonic() - began)


def names(top):
    return {os.path.join(path, n) for path, sub, files in os.walk(top) for n in sub + files}


def killed_left(paths):
    """paths without the files that a killed command itself had not removed yet"""
    its_own = {f"{nonce}-{i}" for i, k in enumerate(kills) if k is not None}
    return sorted(p for p in paths if os.path.basename(p).removesuffix(".new") not in its_own)


def shared():
    """names of ours in the directories that everybody writes to"""
    uid, found, tests = os.getuid(), set(), ("sandbox-exec-test-", "sandbox-exec-selftest-", "sandbox-exec-soak", "sandbox-exec-kmatrix")
    for d in ("/tmp", "/var/tmp", "/dev/shm"):
        for e in os.scandir(d):
            try:
                if e.stat(follow_symlinks=False).st_uid == uid and (nonce in e.name or e.name.startswith("sandbox-exec") and not e.name.startswith(tests)) and e.path != str(base):
                    found.add(e.path)
            except FileNotFoundError:
                pass
    return found


def mounts():
    return [line for line in open("/proc/self/mountinfo") if nonce in line]


def processes():
    """of ours that are left: by what they were started with, where they are, or their environment, which names our home"""
    left = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        said = b""
        for name in ("cmdline", "environ"):
            try:
                said += open(f"/proc/{pid}/{name}", "rb").read() + b"\0"
            except OSError:
                pass
        try:
            said += os.readlink(f"/proc/{pid}/cwd").encode()
        except OSError:
            pass
        if int(pid) != os.getpid() and nonce.encode() in said:
            left.append(f"{pid}: {said[:100].replace(bytes(1), b' ').decode(errors='replace')}")
    return left


def groups():
    """control groups whose maker was one of our runs and is gone"""
    found = []
    for path, sub, _ in os.walk("/sys/fs/cgroup"):
        for name in sub:
            m = re.fullmatch(r"sandbox-exec-(\d+)-[0-9a-f]+", name)
            if m and int(m[1]) in seen["pids"] and not os.path.exists(f"/proc/{m[1]}"):
                found.append(os.path.join(path, name))
    return found


outside = {os.readlink(f"/proc/self/ns/{n}") for n in ("mnt", "pid", "net", "ipc", "user")}
status = 1
try:
    run("first")  # makes what is kept on purpose: the session's /tmp, the cache
    if seen["failed"]:
        sys.exit("soak: " + seen["failed"][0])
    before, before_shared = names(home), shared()
    began = time.monotonic()
    kills = [rand.uniform(0, 0.15) if rand.random() < opts.killed else None for _ in range(opts.runs)]
    alone = opts.runs // 10
    for i in range(alone):
        run(i, kills[i])
    with ThreadPoolExecutor(opts.at_once) as pool:
        list(pool.map(lambda i: run(i, kills[i]), range(alone, opts.runs)))
    took = time.monotonic() - began
    run("last")

    # What dies is given a moment: the kernel takes a tree down by itself.
    for _ in range(100):
        left = processes()
        if not (left or groups()):
            break
        time.sleep(0.1)
    found = {
        "failed starts": seen["failed"],
        "files": killed_left(names(home) - before),
        "missing files": sorted(before - names(home)),
        "shared files": killed_left(shared() - before_shared),
        "mounts": mounts(),
        "processes": left,
        "control groups": groups(),
    }
    print(f"soak: uid {os.getuid()}, {opts.runs} runs, {opts.at_once} at once, {seen['killed']} killed, {took:.0f} s, "
          f"slowest {seen['slowest']:.2f} s, {len(seen['namespaces'] - outside)} namespaces, seed {opts.seed}")
    status = 0
    for what, list_ in found.items():
        if list_:
            status = 1
            print(f"soak: {what}: {len(list_)}")
            for line in list_[:10]:
                print("    " + line.strip())
    print("soak: nothing is left" if status == 0 else "soak: FAILED")
finally:
    shutil.rmtree(base, ignore_errors=True)
    for path in shared():
        if os.path.basename(path).startswith(nonce):
            os.unlink(path)
sys.exit(status)
