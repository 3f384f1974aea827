#!/usr/bin/env python3
"""The escape suite against sandbox-exec and every peer that is installed, in one run.

    scripts/peers.py [-o docs/peers.md] [--json FILE] [--only NAME]...

Each peer is given the rights that sandbox-exec gives: the workspace writable, home
and system readable, known secrets hidden, no network, by its documented options, and
what it offers beyond them that stops a case. Needs what testdata/escapes needs; a
peer that is not in PATH is left out and said to be.
"""
import argparse, datetime, json, os, platform, shutil, subprocess, sys, tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SECRET_DIRS = [".ssh", ".aws", ".gnupg", ".kube", ".config/gh", ".config/gcloud", ".azure", ".password-store",
               ".mozilla", ".config/google-chrome", ".local/share/keyrings", ".codex"]
SECRET_FILES = [".netrc", ".npmrc", ".docker/config.json", ".git-credentials", ".pypirc", ".vault-token", ".bash_history",
                ".cargo/credentials.toml", ".env"]
GUARDED = [".git/hooks", ".git/config"]  # of the workspace; present in most cases

SRT = {
    "network": {"allowedDomains": [], "deniedDomains": []},
    "filesystem": {
        "denyRead": ["~/" + p for p in SECRET_DIRS + SECRET_FILES],
        "allowRead": [],
        "allowWrite": ["."],
        "denyWrite": [],
    },
}


def words(flag, *patterns):
    return [w for p in patterns for w in (flag, p)]


# name, program, how it says its version, the command line before the command, what is to be known.
PEERS = [
    ("sandbox-exec", str(ROOT / "bin/sandbox-exec"), ["--version"],
     ["-q", "--memory", "2G", "--pids", "500", "--"],
     "the profile `workspace`, which lets programs read the workspace's own `.env`"),
    ("bubblewrap", "bwrap", ["--version"],
     ["--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc", "--tmpfs", "/tmp", "--tmpfs", "/run/user", "--bind", "{WS}", "{WS}",
      *[w for p in GUARDED for w in ("--ro-bind-try", "{WS}/" + p, "{WS}/" + p)],
      *words("--tmpfs", *("{HOME}/" + p for p in SECRET_DIRS)),
      *[w for p in SECRET_FILES for w in ("--ro-bind", "/dev/null", "{HOME}/" + p)],
      "--clearenv", "--setenv", "PATH", "/usr/local/go/bin:/usr/local/bin:/usr/bin:/bin", "--setenv", "HOME", "{HOME}", "--setenv", "USER", "{USER}",
      "--setenv", "LANG", "C.UTF-8", "--setenv", "TERM", "xterm-256color",
      "--unshare-user", "--unshare-pid", "--unshare-net", "--unshare-ipc", "--unshare-uts", "--unshare-cgroup-try",
      "--die-with-parent", "--new-session", "--chdir", "{CWD}", "--"],
     "a tool to build sandboxes of; the line does by hand what it can. It has no limits and no system call filter of its own"),
    ("firejail", "firejail", ["--version"],
     ["--quiet", "--net=none", "--ipc-namespace", "--private-tmp", "--private-dev", "--dbus-user=none", "--dbus-system=none",
      "--rlimit-nproc=500", "--rlimit-as=2147483648", "--read-only={HOME}", "--read-write={WS}", "--read-only={WS}/.git/hooks", "--read-only={WS}/.git/config",
      *["--blacklist={HOME}/" + p for p in SECRET_DIRS + SECRET_FILES],
      *["--rmenv=" + v for v in ("GITHUB_TOKEN", "AWS_SECRET_ACCESS_KEY", "OPENAI_API_KEY", "ANTHROPIC_API_KEY", "NPM_TOKEN", "DATABASE_URL")], "--"],
     "setuid root, with Debian's default profile; `--rlimit-as` and `--rlimit-nproc` count one process and the whole user"),
    ("landrun", "landrun", ["--version"],
     ["--best-effort", "--rox", "/usr", "--ro", "/etc", "--ro", "/proc", "--ro", "/sys", "--rw", "/dev", "--rwx", "{WS}", "--rwx", "/tmp",
      "--ro", "{HOME}/.gitconfig", "--rox", "{HOME}/go/bin", "--rox", "{HOME}/.local/bin",
      *words("--env", "PATH", "HOME", "USER", "LANG", "TERM"), "--"],
     "Landlock alone: it has no namespaces, no filter and no limits. It names what is allowed, so most of the home is not readable"),
    ("srt", "srt", ["--version"], ["-s", "{SRT}", "--"],
     "Anthropic's sandbox-runtime, with bubblewrap, socat and ripgrep; its protected names are its own"),
    ("codex", "codex", ["--version"], ["sandbox", "-P", ":workspace", "--"],
     "the sandbox of OpenAI's Codex with its built-in profile, which lets the whole home be read; a profile of one's own can deny it"),
]


def version(program, args):
    out = subprocess.run([program, *args], capture_output=True, text=True, stdin=subprocess.DEVNULL)
    line = (out.stdout + out.stderr).strip().splitlines()[0:1] or ["?"]
    return line[0].split()[-1]


def run(name, prefix, out, only):
    argv = [str(ROOT / "testdata/escapes/run"), "--label", name, "--json", str(out), *[w for g in only for w in ("--only", g)], "--", *prefix]
    with open(out.with_suffix(".log"), "w") as log:
        subprocess.run(argv, stdout=log, stderr=log, stdin=subprocess.DEVNULL, cwd=ROOT, env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"})
    if not out.exists():
        sys.exit(f"peers: {name}: the suite did not end:\n" + out.with_suffix(".log").read_text()[-1000:])
    return json.loads(out.read_text())


def quoted(argv):
    return " ".join(w if w and all(c.isalnum() or c in "-_./:={}~+,@" for c in w) else "'" + w + "'" for w in argv)


def main():
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("-o", metavar="FILE", help="write the page there (default: print it)")
    ap.add_argument("--json", metavar="FILE", help="write all results there")
    ap.add_argument("--peer", action="append", metavar="NAME", help="these peers alone")
    ap.add_argument("--only", action="append", default=[], metavar="GLOB", help="these cases alone")
    opts = ap.parse_args()

    with tempfile.TemporaryDirectory(prefix="sandbox-exec-peers-", dir="/var/tmp") as tmp:
        tmp = Path(tmp)
        tmp.chmod(0o755)
        srt = tmp / "srt.json"
        srt.write_text(json.dumps(SRT, indent=1))
        # The suite's users may not be able to reach the checkout.
        ours = tmp / "sandbox-exec"
        shutil.copy(PEERS[0][1], ours)
        found, missing = [], []
        for name, program, ask, flags, note in PEERS:
            if opts.peer and name not in opts.peer:
                continue
            path = str(ours) if name == "sandbox-exec" else shutil.which(program)
            if not path:
                missing.append(name)
                continue
            found.append((name, Path(program).name, version(path, ask), [path, *(f.replace("{SRT}", str(srt)) for f in flags)], flags, note))
        results = {"none": run("none", [], tmp / "none.json", opts.only)}
        for name, _, _, prefix, _, _ in found:
            results[name] = run(name, prefix, tmp / f"{name}.json", opts.only)
            print(f"peers: {name}: {results[name]['seconds']:.0f} s", file=sys.stderr)
    text = page(results, found, missing)
    if opts.json:
        Path(opts.json).write_text(json.dumps(results, indent=1))
    if opts.o:
        Path(opts.o).write_text(text)
    else:
        print(text)


def page(results, found, missing):
    columns = ["none", *(f[0] for f in found)]
    # A case counts where it was tried by all and gets through without a sandbox.
    cases = {c["id"]: c for c in results["none"]["cases"]}
    by_id = {col: {c["id"]: c["result"] for c in results[col]["cases"]} for col in columns}
    counted = [i for i, c in cases.items() if c["result"] in ("ESCAPED", "works") and all(by_id[col].get(i) != "skipped" for col in columns)]
    kinds = sorted({cases[i]["kind"] for i in counted} - {"works"})

    def good(col, ids):
        return sum(by_id[col][i] in ("blocked", "works") for i in ids)

    def row(label, ids):
        return f"| {label} | {len(ids)} | " + " | ".join(str(good(col, ids)) for col in columns) + " |"

    works = [i for i in counted if cases[i]["kind"] == "works"]
    escapes = [i for i in counted if i not in works]
    core = [i for i in escapes if cases[i]["tier"] == "core"]
    out = [
        "# Peers", "",
        "What other sandboxes for commands hold, and what still works in them, by the escape suite of this repository",
        "([testdata/escapes](../testdata/escapes/README.md)) in one run on one machine. `scripts/peers.py -o docs/peers.md` made this page;",
        "nothing in it is edited by hand. The suite was written for this project, so it asks for what this project promises; a peer",
        "that promises less, such as one without limits, is no worse for what it is made for. Corrections of a command line are welcome.", "",
        f"{datetime.date.today():%-d %B %Y}, kernel {platform.release()}, {os.cpu_count()} processors, load {os.getloadavg()[1]:.0f}, cases run as an ordinary user.",
        "A busy machine flatters those without limits: what is to exhaust it does not get that far in its time.",
        "Cases good: escapes that were blocked although the command ran, work that was done.", "",
        "| kind | cases | " + " | ".join(columns) + " |", "|---|" + "---|" * (len(columns) + 1),
        *[row(k, [i for i in counted if cases[i]["kind"] == k]) for k in kinds],
        row("**escapes**", escapes), row("of them not a matter of policy", core), row("**work**", works), "",
        "## Command lines", "",
        "`{WS}`, `{HOME}`, `{CWD}` and `{USER}` stand for the case's workspace, home, directory and user. All hide the same secrets by name,",
        "where the peer can.", "",
    ]
    for name, program, ver, _, flags, note in found:
        out += [f"**{name} {ver}**: {note}.", "", "    " + quoted([program, *flags]), ""]
        if name == "srt":
            out += ["with these settings:", "", *["    " + line for line in json.dumps(SRT).replace('"filesystem"', '\n"filesystem"').splitlines()], ""]
    if missing:
        out += ["Not installed on this machine: " + ", ".join(missing) + ".", ""]
    out += ["## What was not good", "", "Escapes that got out or work that broke, for each but `none`. (norun) is a case in which the command did not start.", ""]
    for name, *_ in found:
        bad = [i + ("" if by_id[name][i] != "norun" else " (norun)") for i in counted if by_id[name][i] not in ("blocked", "works")]
        out.append(f"- **{name}**: {', '.join(bad) or 'nothing'}")
    return "\n".join(out) + "\n"


if __name__ == "__main__":
    main()
