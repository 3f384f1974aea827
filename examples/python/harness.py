#!/usr/bin/env python3
"""The shell tool of an agent, in Python: reads the commands of a model, one a
line of stdin, and prints what the model would be told.

It needs nothing but sandbox-exec in PATH: check --jsonl to judge, --json to
run, and exit statuses.

    echo 'git status' | examples/python/harness.py [WORKSPACE]
"""

import json
import os
import subprocess
import sys

SANDBOX_EXEC_FAILED = 125  # not the command: a bad flag or file, or no sandbox here


class Shell:
    """Runs commands in a workspace; a cd in one holds for the next."""

    def __init__(self, workspace):
        self.workspace = self.cwd = os.path.realpath(workspace)
        self.judge = subprocess.Popen(
            ["sandbox-exec", "check", "--jsonl"],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, encoding="utf-8",
        )

    def check(self, command):
        """Says what would be decided; nothing runs."""
        question = {"cmd": command, "cwd": self.cwd, "workspace": self.workspace}
        print(json.dumps(question), file=self.judge.stdin, flush=True)
        return json.loads(self.judge.stdout.readline())

    def run(self, command, *flags):
        """Runs a command and returns the result, see docs/report.md."""
        done = subprocess.run(
            ["sandbox-exec", "--json", "--workspace", self.workspace, "--cwd", self.cwd, *flags, "-c", command],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True, encoding="utf-8",
        )
        result = json.loads(done.stdout)
        if done.returncode == SANDBOX_EXEC_FAILED and not result["ran"]:
            raise RuntimeError(result["error"])
        self.cwd = result.get("final_cwd", self.cwd)
        return result


def permitted(command, decision):
    """Asks the person, on the terminal: stdin is the model's."""
    reasons = sorted({t.get("detail", t["reason"]) for t in decision["targets"] if t["decision"] == "ask"})
    try:
        with open("/dev/tty", "r+") as terminal:
            print(f"{command!r}: {', '.join(reasons)}. Run it? [y/N] ", end="", file=terminal, flush=True)
            return terminal.readline().strip() == "y"
    except OSError:
        return False  # nobody is there


def answer(shell, command):
    """Returns what the model is told of its command."""
    decision = shell.check(command)
    flags = ["--timeout", "20s", "--on-timeout", "background"]
    if decision.get("decision") == "ask":
        if not permitted(command, decision):
            return "[not run] the user did not permit it\n"
        flags += ["--ask", "allow"]  # answers the question; opens nothing
    return shell.run(command, *flags)["text"]


def main():
    shell = Shell(sys.argv[1] if len(sys.argv) > 1 else ".")
    for line in sys.stdin:
        command = line.rstrip("\n")
        if command:
            print(f"$ {command}\n{answer(shell, command)}", end="", flush=True)


if __name__ == "__main__":
    main()
