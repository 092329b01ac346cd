// The terminal chat on a real pseudo-terminal, against one cluster for the whole file.

import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";

import { Cleanup, startTestCluster, type TestCluster } from "@parley/testing";

import { hasTerminals, parleyTerminal, type TestTerminal } from "./support/terminal.ts";

const cleanup = new Cleanup();
const folder = mkdtempSync(join(tmpdir(), "parley-chat-"));
let cluster: TestCluster;

before(async () => {
  cluster = await startTestCluster(cleanup, {
    processes: [],
    settings: '[session]\npolicy = "per_conversation"\n[permissions]\nask = ["exec(touch *)"]\n',
  });
});
after(async () => {
  await cleanup[Symbol.asyncDispose]();
  rmSync(folder, { recursive: true, force: true });
});

const skip = hasTerminals ? false : "there is no `script` here to make a terminal with";
const wide = { columns: 200, rows: 50 };

/** A chat of its own name, ready for input. */
async function open(
  name: string,
  args: readonly string[] = [],
  size = { columns: 80, rows: 24 },
): Promise<TestTerminal> {
  const terminal = parleyTerminal(cluster.home, ["chat", "--conversation", name, ...args], size, folder);
  await terminal.shows(/\/help lists commands and keys/);
  return terminal;
}

test("begins with model, session, tools, isolation and the console's address", { skip }, async () => {
  await using terminal = await open("banner");
  assert.match(terminal.screen, /^model +rehearsal$/m);
  assert.match(terminal.screen, /^session +new$/m);
  assert.match(terminal.screen, /^tools +\d+, permission mode default$/m);
  assert.match(terminal.screen, /^isolation +\S/m);
  assert.ok(terminal.screen.includes(cluster.httpUrl));
});

test("streams an answer as formatted Markdown with coloured code", { skip }, async () => {
  await using terminal = await open("markdown");
  terminal.send(
    "say: # Plan",
    "say: ",
    "say: **three** steps",
    "say: ",
    "say: ```js",
    "say: const a = 1;",
    "say: ```",
    "say: ",
    "say: | city | price |",
    "say: |---|---|",
    "say: | 東京 | 10 |",
  );
  await terminal.shows(/│ 東京 │ 10 +│/);
  assert.match(terminal.screen, /^Plan$/m);
  assert.match(terminal.screen, /^three steps$/m);
  assert.match(terminal.screen, /^ {2}const a = 1;$/m);
  assert.ok(terminal.isColoured("const"));
});

test("shows a command that fails without a green tick, its exit code and its folded output", { skip }, async () => {
  await using terminal = await open("exit", [], wide);
  terminal.send('tool: exec {"command":"seq 1 30; exit 3"}', "then", "say: looked");
  await terminal.shows(/✗ exec seq 1 30; exit 3 .*exit 3/);
  await terminal.shows(/\d+ more lines; Ctrl-O shows all/);
  assert.doesNotMatch(terminal.screen, /✓/);
  terminal.type("\u000F");
  await terminal.shows(/^ {2}17$/m);
});

test("shows seconds from Enter, stops with Ctrl-C and leaves with two", { skip }, async () => {
  await using terminal = await open("slow");
  terminal.send("pause: 60000", "say: never");
  await terminal.shows(/thinking 1 s/);
  terminal.type("\u0003");
  await terminal.shows(/· Stopped\./);
  terminal.type("\u0003\u0003");
  await terminal.shows(/The cluster goes on without this chat/);
  assert.equal(await terminal.ended(), 0);
});

test("sends nothing of a paste before Enter", { skip }, async () => {
  await using terminal = await open("paste");
  terminal.paste("say: first\nsay: second\n");
  await terminal.shows(/say: second/);
  assert.doesNotMatch(terminal.screen, /^› /m);
  terminal.type("\r");
  await terminal.shows(/^first\nsecond$|^first second$/m);
});

test("marks queued messages, and shows each once when its turn begins", { skip }, async () => {
  await using terminal = await open("queue");
  terminal.send("pause: 3000", "say: slow answer");
  await terminal.shows(/thinking \d+ s/);
  terminal.send("/later say: the second");
  await terminal.shows(/^queued › say: the second/m);
  await terminal.shows(/^the second$/m);
  assert.doesNotMatch(terminal.screen, /queued ›/);
  assert.equal(terminal.all.match(/^› .*say: the second$/gm)?.length, 1);
});

test("asks for approval with all arguments, and a denial takes its reason", { skip }, async () => {
  await using terminal = await open("approval");
  terminal.send('tool: exec {"command":"touch a.txt"}', "then", "say: went on");
  await terminal.shows(/exec: y approve · a always · n \[reason\] deny/);
  assert.match(terminal.screen, /\? exec needs approval/);
  assert.match(terminal.screen, /^ {2}touch a\.txt$/m);
  terminal.type("n not in here");
  await terminal.shows(/^n not in here$/m);
  terminal.type("\r");
  await terminal.shows(/denied by owner \(http\): not in here/);
  await terminal.shows(/^went on$/m);
});

test("approves a call when the person types y", { skip }, async () => {
  await using terminal = await open("approved");
  terminal.send('tool: exec {"command":"touch approved.txt"}', "then", "say: touched");
  await terminal.shows(/exec: y approve · a always · n \[reason\] deny/);
  terminal.type("y");
  await terminal.shows(/^y$/m);
  terminal.type("\r");
  await terminal.shows(/✓ exec touch approved\.txt/);
  await terminal.shows(/^touched$/m);
});

// design: 002.32
test("shows what is typed as an answer, and takes the number of an option", { skip }, async () => {
  await using terminal = await open("question");
  terminal.send('tool: ask_user {"question":"Which?","options":["red","green"]}', "then", "say: thank you");
  await terminal.shows(/type a number, or your own answer/);
  assert.match(terminal.screen, /^ {2}2\. green$/m);
  terminal.type("2");
  await terminal.shows(/^2$/m);
  terminal.type("\r");
  await terminal.shows(/^thank you$/m);
  await terminal.hides(/type a number/);
});

test("draws again for a new size", { skip }, async () => {
  await using terminal = await open("resize");
  terminal.send(`say: ${"word ".repeat(40).trim()}`);
  await terminal.shows(/^(?:word ){14,15}word$/m);
  await terminal.resize({ columns: 40, rows: 20 });
  await terminal.shows(/^(?:word ){7}word$/m);
});

test("attaches files that a message names with @", { skip }, async () => {
  writeFileSync(join(folder, "notes.txt"), "the content of notes");
  await using terminal = await open("files");
  terminal.send("say: got it @notes.txt");
  await terminal.shows(/attached notes\.txt/);
  await terminal.shows(/^got it @notes\.txt$/m);
});
