#!/usr/bin/env node
// The shell tool of an agent, in JavaScript: reads the commands of a model, one
// a line of stdin, and prints what the model would be told.
//
// It needs nothing but sandbox-exec in PATH: check --jsonl to judge, --json to
// run, and exit statuses.
//
//   echo 'git status' | examples/node/harness.mjs [WORKSPACE]

import { spawn } from "node:child_process";
import fs from "node:fs";
import readline from "node:readline";

const sandboxExecFailed = 125; // not the command: a bad flag or file, or no sandbox here

// Shell runs commands in a workspace; a cd in one holds for the next.
class Shell {
  constructor(workspace) {
    this.workspace = this.cwd = fs.realpathSync(workspace);
    this.judge = spawn("sandbox-exec", ["check", "--jsonl"], { stdio: ["pipe", "pipe", "inherit"] });
    this.answers = readline.createInterface({ input: this.judge.stdout })[Symbol.asyncIterator]();
  }

  // check says what would be decided; nothing runs.
  async check(command) {
    this.judge.stdin.write(JSON.stringify({ cmd: command, cwd: this.cwd, workspace: this.workspace }) + "\n");
    return JSON.parse((await this.answers.next()).value);
  }

  // run runs a command and returns the result, see docs/report.md.
  async run(command, ...flags) {
    const args = ["--json", "--workspace", this.workspace, "--cwd", this.cwd, ...flags, "-c", command];
    const { status, stdout } = await new Promise((resolve, reject) => {
      const child = spawn("sandbox-exec", args, { stdio: ["ignore", "pipe", "inherit"] });
      const parts = [];
      child.stdout.on("data", (part) => parts.push(part));
      child.on("error", reject);
      child.on("close", (status) => resolve({ status, stdout: Buffer.concat(parts).toString() }));
    });
    const result = JSON.parse(stdout);
    if (status === sandboxExecFailed && !result.ran) {
      throw new Error(result.error);
    }
    this.cwd = result.final_cwd ?? this.cwd;
    return result;
  }

  close() {
    this.judge.stdin.end();
  }
}

// permitted asks the person, on the terminal: stdin is the model's.
function permitted(command, decision) {
  const asked = decision.targets.filter((t) => t.decision === "ask");
  const reasons = [...new Set(asked.map((t) => t.detail ?? t.reason))].sort();
  let terminal;
  try {
    terminal = fs.openSync("/dev/tty", "r+");
  } catch {
    return false; // nobody is there
  }
  fs.writeSync(terminal, `${JSON.stringify(command)}: ${reasons.join(", ")}. Run it? [y/N] `);
  const line = Buffer.alloc(100);
  const length = fs.readSync(terminal, line);
  fs.closeSync(terminal);
  return line.toString("utf8", 0, length).trim() === "y";
}

// answer returns what the model is told of its command.
async function answer(shell, command) {
  const decision = await shell.check(command);
  const flags = ["--timeout", "20s", "--on-timeout", "background"];
  if (decision.decision === "ask") {
    if (!permitted(command, decision)) {
      return "[not run] the user did not permit it\n";
    }
    flags.push("--ask", "allow"); // answers the question; opens nothing
  }
  return (await shell.run(command, ...flags)).text;
}

const shell = new Shell(process.argv[2] ?? ".");
for await (const command of readline.createInterface({ input: process.stdin })) {
  if (command !== "") {
    process.stdout.write(`$ ${command}\n${await answer(shell, command)}`);
  }
}
shell.close();
