import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { test } from "node:test";

import { completionScript } from "../src/commands/completion.ts";
import { commands } from "../src/commands/index.ts";
import { parseCommandLine } from "../src/commands/parse.ts";

function parse(line: string) {
  return parseCommandLine(
    line.split(" ").filter((word) => word !== ""),
    commands,
  );
}

function run(line: string) {
  const parsed = parse(line);
  assert.ok("command" in parsed, line);
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
  const { command, values } = run("-fn 5 logs");
  assert.deepEqual([command.name, values.has("follow"), values.text("lines")], ["logs", true, "5"]);
});

test("treats arguments after -- as text", () => {
  const { positionals } = run("send -- --not-an-option");
  assert.deepEqual(positionals, ["--not-an-option"]);
  assert.deepEqual(run("send -- -5").positionals, ["-5"]);
});

test("suggests the closest command when a command is unknown", () => {
  assert.throws(() => parse("statsu"), { exitCode: 2, message: /Did you mean "parley status"\?/ });
  assert.throws(() => parse("sessions shwo main"), { exitCode: 2, message: /Did you mean "parley sessions show"\?/ });
  assert.throws(() => parse("pairing"), { exitCode: 2, message: /needs a subcommand: list, approve/ });
  assert.throws(() => parse("frobnicate"), { exitCode: 2, fix: /up, down, service, onboard, chat, run, send/ });
  for (const line of ["bogus --help", "help bogus", "docs bogus -h", "help docs bogus"]) {
    assert.throws(() => parse(line), { exitCode: 2, message: /There is no command "parley (docs )?bogus"/ }, line);
  }
});

test("suggests the closest option when an option is unknown", () => {
  assert.throws(() => parse("status --jsno"), { exitCode: 2, message: /Did you mean --json\?/ });
  assert.throws(() => parse("status --role owner"), { exitCode: 2, message: /unknown option '--role'/ });
  assert.throws(() => parse("config check --foo"), { message: /^parley config check: unknown option '--foo'/ });
  assert.throws(() => parse("--verison"), { exitCode: 2, message: /Did you mean --version\?/ });
  for (const line of ["send -5 x", "send -5", "rewind -1"]) {
    assert.throws(() => parse(line), { exitCode: 2, message: /unknown option '-\d'/ }, line);
  }
});

test("reports a usage error when a value is missing, unexpected or not a choice", () => {
  assert.throws(() => parse("logs --since"), { exitCode: 2, message: /option '--since <time>' argument missing/ });
  assert.throws(() => parse("status --json=yes"), { exitCode: 2, message: /unknown option '--json=yes'/ });
  assert.throws(() => parse("logs --level wran"), {
    exitCode: 2,
    message: /argument 'wran' is invalid\. Allowed choices are trace.*\. Did you mean warn\?$/,
  });
  assert.throws(() => parse("send a b"), { exitCode: 2, message: /unexpected argument "b"\. Quote/ });
});

test("passes all arguments after `up` on, including --help", () => {
  assert.deepEqual(run("up --port 0 --help").positionals, ["--port", "0", "--help"]);
  assert.deepEqual(run("up -- x").positionals, ["--", "x"]);
});

// design: 004.32
test("has the commands of design 004 under its own names", () => {
  const counterparts: Record<string, readonly [line: string, command: string]> = {
    onboard: ["onboard", "onboard"],
    agent: ["chat", "chat"],
    "agent -m": ["run hello", "run"],
    gateway: ["up", "up"],
    status: ["status", "status"],
    channels: ["channels list", "channels list"],
    cron: ["cron list", "cron list"],
    "heartbeat trigger": ["heartbeat run", "heartbeat run"],
  };
  for (const [design, [line, name]] of Object.entries(counterparts)) {
    assert.equal(run(line).command.name, name, design);
  }
});

test("has help with an example for every command, and an overview of all commands", () => {
  const textOf = (line: string) => {
    const parsed = parse(line);
    assert.ok("text" in parsed, line);
    return parsed.text;
  };
  const all = textOf("");
  for (const { name, passThrough } of commands) {
    assert.match(all, new RegExp(`^  ${name} `, "m"));
    if (passThrough === true) continue;
    const help = textOf(`${name} --help`);
    assert.match(help, /^Examples?:\n {2}\S/m, name);
    assert.match(help, /^ {2}-h, --help /m, name);
  }
  assert.equal(textOf("help docs show"), textOf("docs show --help"));
  assert.equal(textOf("help"), all);
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
  const script = completionScript("bash", commands) ?? "";
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
