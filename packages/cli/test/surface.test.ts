// What programs and people rely on: commands, operands, flags, exit codes, JSON keys and completion scripts. Texts may change, these may not.
// `PARLEY_RECORD_SURFACE=1` rewrites `surface.json` after a deliberate change.

import assert from "node:assert/strict";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";

import { sharedCacheDir, startLocalCluster, type Cluster } from "@parley/local";

import { runParley } from "./support/parley.ts";

const recordFile = join(import.meta.dirname, "surface.json");
const recorded = JSON.parse(readFileSync(recordFile, "utf8")) as Record<string, unknown>;
const folder = mkdtempSync(join(tmpdir(), "parley-surface-"));
const home = join(folder, "home");
let cluster: Cluster;

before(async () => {
  cluster = await startLocalCluster({ home, serversDir: sharedCacheDir });
});

after(async () => {
  await cluster.stopNow();
  rmSync(folder, { recursive: true, force: true });
});

/** Compares with the record, or writes it. */
function assertRecorded(name: string, found: unknown): void {
  if (process.env["PARLEY_RECORD_SURFACE"] === undefined) return assert.deepEqual(found, recorded[name]);
  recorded[name] = found;
  writeFileSync(recordFile, `${JSON.stringify(recorded, null, 2)}\n`);
}

const run = (...args: string[]) => runParley(home, args, { env: { EDITOR: "sh -c 'echo more >> $0'" }, cwd: folder });

test("keeps every command with its operands and flags", async () => {
  const overview = await run("--help");
  assert.deepEqual([overview.code, overview.stderr], [0, ""]);
  const names = [...overview.stdout.matchAll(/^ {2}([a-z]+(?: [a-z]+)?) {2,}\S/gm)].map(([, name = ""]) => name);
  const forms: Record<string, unknown> = { up: {} };
  for (const name of names.filter((each) => each !== "up")) {
    const { code, stdout, stderr } = await run(...name.split(" "), "--help");
    assert.deepEqual([code, stderr], [0, ""], name);
    const usage = new RegExp(`^usage: (?:npx )?parley ${name} \\[options\\] ?(.*)$`, "im").exec(stdout)?.[1];
    const flags = [...stdout.matchAll(/^ {2}((?:-\w, )?--[a-z-]+(?: <\S+>)?) {2,}\S/gm)].map(([, flag = ""]) => flag);
    forms[name] = { operands: usage, flags: flags.toSorted() };
  }
  assertRecorded("commands", forms);
});

test("exits with 2 when a command does not exist, also with --help", async () => {
  for (const line of ["bogus", "bogus --help", "help bogus", "docs bogus -h"]) {
    assert.equal((await run(...line.split(" "))).code, 2, line);
  }
});

test("keeps the completion scripts", async () => {
  for (const shell of ["bash", "zsh", "fish"]) {
    const { code, stdout } = await run("completion", shell);
    assert.equal(code, 0);
    // Descriptions may change.
    assertRecorded(
      `completion ${shell}`,
      stdout.split("\n").map((line) => line.replace(/ -d '(?:[^'\\]|\\.)*'$/, "")),
    );
  }
});

test("exits with 0, 1 or 2 as the command succeeds, fails or is used wrongly", async () => {
  const codes: Record<string, number> = {};
  for (const line of [
    "",
    "help",
    "--version",
    "help send",
    "docs restore -h",
    "completion bash",
    "nonsense",
    "statsu",
    "sessions shwo main",
    "pairing",
    "status --jsno",
    "status --role owner",
    "status --json=yes",
    "status extra",
    "logs --since",
    "logs --since=",
    "logs --since tomorrow",
    "logs --level wran",
    "logs --lines x",
    "completion tcsh",
    "send a b",
    "send --account x text",
    "send --channel irc text",
    "send --channel irc --to #x text",
    "chat --mode never",
    "run --resume a --continue x",
    "run --input-format stream-json",
    "run --max-turns 0 x",
    "queue --cancel a --edit b",
    "queue --edit a",
    "approvals --always",
    "approvals --approve A --deny B",
    "approvals --approve ZZZZ",
    "cost --days 0",
    "model --effort never",
    "rewind",
    "rewind 99",
    "sessions show",
    "sessions show nowhere",
    "sessions rename main",
    "cron add x",
    "cron add never x",
    "cron pause",
    "cron pause nothing",
    "mcp tools",
    "mcp tools nothing",
    "pairing approve",
    "pairing approve AAAA-AAAA",
    "docs show",
    "docs show --at x A.md",
    "docs show nothing.md",
    "docs restore MEMORY.md",
    "docs vouch MEMORY.md",
    "docs pull",
    "config check /nowhere/parley.toml",
    "config print --set nonsense=1",
    "status --url ftp://x",
    "status --token-file /nowhere",
    "--home /nowhere pairing list",
    `--home ${home} pairing --json list`,
  ]) {
    const { code } = await run(...line.split(" ").filter((word) => word !== ""));
    codes[line.replace(home, "<home>")] = code;
  }
  assertRecorded("exit codes", codes);
});

/** The keys of a value: arrays are merged to one element, and every value without keys is `*`. */
function shapeOf(value: unknown): unknown {
  if (Array.isArray(value)) return [value.map(shapeOf).reduce(merge, undefined) ?? "*"];
  if (!isObject(value)) return "*";
  const open = new Set(["details", "overrides", "fields", "lastRun", "turn"]);
  const entries = Object.entries(value).map(([key, each]) => [key, open.has(key) ? "*" : shapeOf(each)] as const);
  return Object.fromEntries(entries.toSorted(([a], [b]) => a.localeCompare(b)));
}

function merge(a: unknown, b: unknown): unknown {
  if (Array.isArray(a) && Array.isArray(b)) return [merge(a[0], b[0])];
  if (!isObject(a) || !isObject(b)) return isObject(b) ? b : (a ?? b);
  const keys = [...new Set([...Object.keys(a), ...Object.keys(b)])].toSorted();
  return Object.fromEntries(keys.map((key) => [key, merge(a[key], b[key])]));
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

test("keeps the keys of the JSON that each command prints", async () => {
  assert.equal((await run("send", "--wait", "--conversation", "cli", "say: hello")).code, 0);
  assert.equal((await run("docs", "edit", "MEMORY.md")).code, 0);
  assert.equal((await run("docs", "edit", "MEMORY.md")).code, 0);
  const shapes: Record<string, unknown> = {};
  const lines = [
    ["cron", "add", "every 1h", "say: hi", "--name", "job", "--target", "own"],
    ["cron", "list"],
    ["cron", "pause", "job"],
    ["cron", "pause", "job", "--off"],
    ["cron", "run", "job"],
    ["cron", "history", "job"],
    ["cron", "remove", "job"],
    ["sessions"],
    ["sessions", "fork", "main", "what if"],
    ["sessions", "rename", "main", "everything"],
    ["sessions", "archive", "main"],
    ["sessions", "archive", "main", "--undo"],
    ["sessions", "new", "other", "--route", "http:default:cli"],
    ["sessions", "resume", "everything"],
    ["queue", "main"],
    ["approvals", "--all"],
    ["cost"],
    ["model"],
    ["model", "default", "--effort", "high"],
    ["compact", "main"],
    ["checkpoints", "main"],
    ["stop", "main"],
    ["pairing", "list"],
    ["docs", "list"],
    ["docs", "show", "MEMORY.md"],
    ["docs", "show", "MEMORY.md", "--authors"],
    ["docs", "history", "MEMORY.md"],
    ["docs", "diff", "MEMORY.md"],
    ["mcp", "list"],
    ["config", "check"],
    ["config", "print", "--origin"],
    ["doctor"],
    ["status"],
    ["send", "say: ok"],
    ["heartbeat", "run"],
  ];
  for (const args of lines) {
    const { code, stdout, stderr } = await run(...args, "--json");
    assert.equal(code, 0, `${args.join(" ")}: ${stderr}`);
    const shape = shapeOf(JSON.parse(stdout));
    shapes[args.join(" ")] = args.join(" ").startsWith("config print") ? "*" : shape;
  }
  for (const args of [
    ["sessions", "show", "main"],
    ["logs", "--lines", "3", "--service", "store"],
    ["send", "--wait", "say: ok"],
  ]) {
    const { stdout } = await run(...args, "--json");
    const values = stdout
      .trim()
      .split("\n")
      .map((line) => JSON.parse(line) as { type?: string; role?: string });
    const kinds = Map.groupBy(values, ({ type, role }) => type ?? role ?? "line");
    shapes[args.join(" ")] =
      args[0] === "logs"
        ? Object.keys(values[0] ?? {}).filter((key) => ["time", "level", "service", "replica", "msg"].includes(key))
        : Object.fromEntries(
            // Live events may be lost before the client has subscribed.
            [...kinds]
              .filter(([kind]) => kind !== "text.delta" && kind !== "turn.started")
              .map(([kind, all]) => [kind, shapeOf(all)]),
          );
  }
  assertRecorded("JSON", shapes);
});
