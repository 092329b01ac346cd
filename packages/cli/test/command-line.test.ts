import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { test } from "node:test";

import { completionScript } from "../src/command-line/completion.ts";
import { commandHelp, overview } from "../src/command-line/help.ts";
import { parseCommandLine } from "../src/command-line/parse.ts";
import { commands } from "../src/commands.ts";

function parse(line: string) {
  return parseCommandLine(
    line.split(" ").filter((word) => word !== ""),
    commands,
  );
}

function run(line: string) {
  const parsed = parse(line);
  assert.equal(parsed.kind, "run");
  return parsed;
}

test("accepts options before, between and after the words of a command", () => {
  for (const line of [
    "--home /h pairing approve CODE --role owner",
    "pairing --home /h approve --role=owner CODE",
    "pairing approve CODE --role owner --home /h",
  ]) {
    const { command, values, positionals } = run(line);
    assert.equal(command.name, "pairing approve");
    assert.deepEqual(positionals, ["CODE"]);
    assert.equal(values.text("home"), "/h");
    assert.equal(values.text("role"), "owner");
  }
});

test("treats arguments after -- as text", () => {
  const { positionals } = run("send -- --not-an-option");
  assert.deepEqual(positionals, ["--not-an-option"]);
});

test("suggests the closest command when a command is unknown", () => {
  assert.throws(() => parse("statsu"), { exitCode: 2, message: /Did you mean "parley status"\?/ });
  assert.throws(() => parse("sessions shwo main"), { exitCode: 2, message: /Did you mean "parley sessions show"\?/ });
  assert.throws(() => parse("pairing"), { exitCode: 2, message: /needs a subcommand: list, approve/ });
  assert.throws(() => parse("frobnicate"), { exitCode: 2, fix: /up, chat, run, send/ });
});

test("suggests the closest option when an option is unknown", () => {
  assert.throws(() => parse("status --jsno"), { exitCode: 2, message: /Did you mean --json\?/ });
  assert.throws(() => parse("status --role owner"), { exitCode: 2, message: /has no option --role/ });
});

test("reports a usage error when a value is missing, unexpected or not a choice", () => {
  assert.throws(() => parse("logs --since"), { exitCode: 2, message: /--since needs a value/ });
  assert.throws(() => parse("status --json=yes"), { exitCode: 2, message: /--json takes no value/ });
  assert.throws(() => parse("logs --level wran"), { exitCode: 2, message: /Did you mean "warn"\?/ });
  assert.throws(() => parse("send a b"), { exitCode: 2, message: /unexpected argument "b"\. Quote/ });
});

test("passes all arguments after `up` on, including --help", () => {
  assert.deepEqual(run("up --port 0 --help").rest, ["--port", "0", "--help"]);
});

// design: 004.32
test("has help with an example for every command, and an overview of all commands", () => {
  const all = overview(commands);
  for (const command of commands) {
    assert.match(all, new RegExp(`^  ${command.name} `, "m"));
    const help = commandHelp(command);
    assert.match(help, /^Examples?:\n {2}\S/m, command.name);
    assert.ok(command.passThrough === true || help.includes("--help"), command.name);
  }
  assert.equal(parse("help send").kind, "help");
  assert.equal(parse("send --help").kind, "help");
  assert.equal(parse("").kind, "help");
});

test("gives an option the same meaning in every command", () => {
  const types = new Map<string, string>();
  for (const { options } of commands) {
    for (const [name, { type, short }] of Object.entries(options)) {
      const form = `${type} ${short ?? ""}`;
      assert.equal(types.get(name) ?? form, form, name);
      types.set(name, form);
    }
  }
});

test("completes commands, options and choices in bash", () => {
  const script = completionScript("bash", commands);
  const complete = (...words: string[]): string[] => {
    const asked = `COMP_WORDS=(${words.map((word) => `'${word}'`).join(" ")}); COMP_CWORD=${words.length - 1}`;
    const shell = spawnSync("bash", ["-c", `${script}\n${asked}; _parley; printf '%s\\n' "\${COMPREPLY[@]}"`], {
      encoding: "utf8",
    });
    assert.equal(shell.stderr, "");
    return shell.stdout.trim().split("\n");
  };
  assert.deepEqual(complete("parley", "doc"), ["docs", "doctor"]);
  assert.deepEqual(complete("parley", "pairing", "a"), ["approve"]);
  assert.deepEqual(complete("parley", "logs", "--fo"), ["--follow"]);
  assert.deepEqual(complete("parley", "pairing", "approve", "X", "--role", "o"), ["owner"]);
});
