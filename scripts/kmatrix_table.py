"""Prints the table of scripts/kmatrix.sh from what the virtual machines said."""

import json, sys
from pathlib import Path

out, keep = Path(sys.argv[1]), sys.argv[2]


def version(path):
    return [int(n) for n in path.name.split(".")[:2]]


def sections(path):
    """{"root": (status, text), "user": ..., "tests": ...}"""
    found, name = {}, None
    for line in path.read_text(errors="replace").replace("\r", "").splitlines():
        if line.startswith("@@ "):
            words = line.split()
            name = words[1]
            found[name] = (int(words[2]) if len(words) > 2 and words[2].isdigit() else 0, [])
        elif name:
            found[name][1].append(line)
    return found


bad, kept = [], []
print("| kernel | variant | user | tier | escapes held | weaker here | no proof | got through | work | cgroup | tests |")
print("|---|---|---|---|---|---|---|---|---|---|---|")
for path in sorted((p for p in out.iterdir() if p.suffix not in (".console", ".qemu")), key=lambda p: (version(p), p.name)):
    kernel = ".".join(map(str, version(path)))
    variant = path.name[len(kernel) + 1 :]
    said = sections(path)
    where = f"{kernel} {variant}"
    if "end" not in said:
        console = path.with_name(path.name + ".console").read_text(errors="replace").strip().splitlines()[-3:]
        bad.append(f"{where}: it did not come to its end; last: {' / '.join(console)[-300:]}")
    tests = said.get("tests")
    for user in ("root", "user"):
        if user not in said:
            print(f"| {kernel} | {variant} | {user} | did not run |||||||")
            continue
        status, text = said[user]
        ran = "" if tests is None or user != "root" else "ok" if tests[0] == 0 else "FAIL"
        try:
            end = max(i for i, line in enumerate(text) if line == "}") + 1
            report = json.loads("\n".join(text[:end]))
        except ValueError:
            # Without any confinement nothing may run, and must not.
            nothing = "nouserns" in variant and user == "user" and ("nolandlock" in variant or kernel == "5.10")
            print(f"| {kernel} | {variant} | {user} | refused ({status}) ||||||| {ran} |")
            if not (nothing and status == 125):
                bad.append(f"{where} {user}: status {status}: {' '.join(text)[-300:]}")
            continue
        report["variant"], report["user"] = variant, user
        kept.append(json.dumps(report))
        n = {}
        for c in report["cases"]:
            n[c["outcome"]] = n.get(c["outcome"], 0) + 1
            if c["outcome"] in ("got-through", "broken", "not-run"):
                bad.append(f"{where} {user}: {c['name']}: {c['outcome']}: {c.get('why', '')}")
        # Honest work is told as weaker where a tier does not promise it.
        work = [c["outcome"] for c in report["cases"] if c["name"].startswith("work-")]
        lost = sum(o == "weaker" for o in work)
        group = next((l["state"] for l in report["sandbox"]["layers"] if l["name"] == "cgroup"), "")
        print(f"| {kernel} | {variant} | {user} | {report['sandbox']['tier']} | {n.get('held', 0)} | {n.get('weaker', 0) - lost} | {n.get('no-proof', 0)} "
              f"| {n.get('got-through', 0)} | {n.get('works', 0)}/{len(work)} | {group} | {ran} |")
        if status != 0 and not any(line.startswith(f"{where} {user}") for line in bad):
            bad.append(f"{where} {user}: status {status}")
    if tests and tests[0] != 0:
        bad.append(f"{where}: tests of sandbox/linux:\n  " + "\n  ".join(tests[1]))
if keep:
    Path(keep).write_text("".join(line + "\n" for line in kept))
print()
for line in bad:
    print("kmatrix: " + line)
print(f"kmatrix: {'FAILED: %d lines are not as they have to be' % len(bad) if bad else 'every line is as it has to be'}")
sys.exit(bool(bad))
