// The terminal chat on a real pseudo-terminal, against one cluster for the whole file.

import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";

import { Cleanup, startTestCluster, type TestCluster } from "@parley/testing";

import {
  narrow,
  parleyTerminal,
  type TerminalSize,
  testAtBothSizes,
  type TestTerminal,
  withoutTerminals,
} from "./support/terminal.ts";

const cleanup = new Cleanup();
const folder = mkdtempSync(join(tmpdir(), "parley-chat-"));
let cluster: TestCluster;

before(async () => {
  cluster = await startTestCluster(cleanup, {
    processes: [],
    // The window is the longest that the settings allow: a message of mode `coalesce` stays queued.
    settings:
      '[session]\npolicy = "per_conversation"\n[queue]\nwindow_ms = 60_000\n[permissions]\nask = ["exec(touch *)"]\n',
  });
});
after(async () => {
  await cleanup[Symbol.asyncDispose]();
  rmSync(folder, { recursive: true, force: true });
});

/** A chat of its own name, ready for input. */
async function open(name: string, size: TerminalSize, ...options: string[]): Promise<TestTerminal> {
  const conversation = `${name}-${size.columns}`;
  const terminal = parleyTerminal(cluster.home, ["chat", "--conversation", conversation, ...options], size, folder);
  await terminal.shows(/\/help lists commands and keys/);
  return terminal;
}

testAtBothSizes("begins with model, session, tools, isolation and the console's address", async (size) => {
  await using terminal = await open("banner", size);
  assert.match(terminal.screen, /^model +rehearsal$/m);
  assert.match(terminal.screen, /^session +new$/m);
  assert.match(terminal.screen, /^tools +\d+, permission mode default$/m);
  assert.match(terminal.screen, /^folder +\/\S/m);
  assert.match(terminal.screen, /^isolation +\S/m);
  assert.ok(terminal.screen.includes(cluster.httpUrl));
  assert.doesNotMatch(terminal.screen, /…/, "nothing is cut off");
});

testAtBothSizes("streams an answer as formatted Markdown with coloured code", async (size) => {
  await using terminal = await open("markdown", size);
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

testAtBothSizes(
  "shows a command that fails without a green tick, its exit code and its folded output",
  async (size) => {
    await using terminal = await open("exit", size);
    terminal.send('tool: exec {"command":"seq 1 30; exit 3"}', "then", "say: looked");
    await terminal.shows(/✗ exec seq 1 30; exit 3 .*exit 3/);
    await terminal.shows(/\d+ more lines; Ctrl-O shows all/);
    assert.doesNotMatch(terminal.screen, /✓/);
    terminal.type("\u000F");
    await terminal.shows(/^ {2}17$/m);
  },
);

testAtBothSizes("shows seconds from Enter, stops and clears with Ctrl-C, leaves with two", async (size) => {
  await using terminal = await open("slow", size);
  terminal.send("pause: 60000", "say: never");
  await terminal.shows(/thinking [1-9]\d* s/);
  terminal.type("\u0003");
  await terminal.shows(/· Stopped\./);
  terminal.type("a draft");
  await terminal.shows(/^a draft$/m);
  terminal.type("\u0003");
  await terminal.hides(/^a draft$/m);
  terminal.type("\u0003\u0003");
  await terminal.shows(/press Ctrl-C again or Ctrl-D to leave[^]*The cluster goes on without this chat/);
  assert.equal(await terminal.ended(), 0);
});

test("cancels a queued message again when an earlier one was cancelled", { skip: withoutTerminals }, async () => {
  await using terminal = await open("queued", narrow, "--mode", "coalesce");
  for (const text of ["say: one", "say: two"]) {
    terminal.send(text);
    await terminal.shows(new RegExp(`${text}[^]*thinking [1-9]`));
    terminal.type("\u0003");
    await terminal.shows(new RegExp(`› ${text}\\s+· Cancelled before it started\\.`));
  }
  assert.doesNotMatch(terminal.all, /press Ctrl-C again/);
});

testAtBothSizes("approves a call and similar ones when the person types a", async (size) => {
  await using terminal = await open("always", size);
  const post = (text: string) => `tool: message {"to": "http:default:elsewhere-${size.columns}", "text": "${text}"}`;
  terminal.send(post("first"), "then", "say: sent");
  await terminal.shows(/message: y approve · a always · n \[reason\] deny/);
  terminal.send("a");
  await terminal.shows(/Allowed, along with similar calls in this session/);
  await terminal.shows(/^sent$/m);
  terminal.send(post("second"), "then", "say: sent again");
  await terminal.shows(/^sent again$/m);
  assert.doesNotMatch(terminal.all, /"second"[^]*Allowed/, "a similar call needs no second approval");
});

testAtBothSizes(
  "offers no always where a rule requires approval each time, and a approves only this call",
  async (size) => {
    await using terminal = await open("once", size);
    terminal.send('tool: exec {"command":"touch once.txt"}', "then", "say: touched");
    await terminal.shows(/exec: y approve · n \[reason\] deny/);
    terminal.send("a");
    await terminal.shows(/Allowed, only this once: such calls require approval each time/);
    await terminal.shows(/^touched$/m);
  },
);

testAtBothSizes("shows an edit as a difference", async (size) => {
  await using terminal = await open("edit", size);
  const file = `edited-${size.columns}.txt`;
  terminal.send(
    `tool: write {"path":"${file}","content":"one\\ntwo\\n"}`,
    "then",
    `tool: edit {"path":"${file}","old_string":"one\\ntwo","new_string":"one\\n2"}`,
    "then",
    "say: edited",
  );
  await terminal.shows(/^edited$/m);
  assert.match(terminal.all, /✓ edit edited-\d+\.txt.*\n {3}one\n {2}-two\n {2}\+2$/m);
});

// design: 002.30b
testAtBothSizes("lists replicas and sessions with every column and no line cut off", async (size) => {
  await using terminal = await open("tables", size);
  terminal.send("say: hello to the tables");
  await terminal.shows(/^hello to the tables$/m);
  terminal.send("/cluster");
  await terminal.shows(/REPLICA .* RSS +RESTARTS$/m);
  await terminal.shows(/^.*tool-runner-1 .* \d+ MiB +\S+$/m);
  terminal.send("/sessions");
  await terminal.shows(/ [0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/m);
  assert.match(terminal.all, /^ *TITLE +KEY +STATE[^]* LAST USED +ID$/m);
  assert.doesNotMatch(terminal.screen, /…$/m, "nothing is cut off");
});

testAtBothSizes("sends nothing of a paste before Enter", async (size) => {
  await using terminal = await open("paste", size);
  terminal.paste("say: first\nsay: second\n");
  await terminal.shows(/say: second/);
  assert.doesNotMatch(terminal.screen, /^› /m);
  terminal.type("\r");
  await terminal.shows(/^first\nsecond$|^first second$/m);
});

testAtBothSizes("marks queued messages, and shows each once when its turn begins", async (size) => {
  await using terminal = await open("queue", size);
  terminal.send('tool: exec {"command":"touch queue.txt"}', "then", "say: the first");
  await terminal.shows(/exec: y approve/);
  terminal.send("/later say: the second");
  await terminal.shows(/^queued › say: the second/m);
  terminal.send("y");
  await terminal.shows(/^the second$/m);
  assert.doesNotMatch(terminal.screen, /queued ›/);
  assert.equal(terminal.all.match(/^› .*say: the second$/gm)?.length, 1);
});

testAtBothSizes("asks for approval with all arguments, and a denial takes its reason", async (size) => {
  await using terminal = await open("approval", size);
  terminal.send('tool: exec {"command":"touch a.txt"}', "then", "say: went on");
  await terminal.shows(/exec: y approve · n \[reason\] deny/);
  assert.match(terminal.screen, /\? exec needs approval/);
  assert.match(terminal.screen, /^ {2}touch a\.txt$/m);
  terminal.type("n not in here");
  await terminal.shows(/^n not in here$/m);
  terminal.type("\r");
  await terminal.shows(/denied by owner \(http\): not in here/);
  await terminal.shows(/^went on$/m);
});

testAtBothSizes("approves a call when the person types y", async (size) => {
  await using terminal = await open("approved", size);
  terminal.send('tool: exec {"command":"touch approved.txt"}', "then", "say: touched");
  await terminal.shows(/exec: y approve · n \[reason\] deny/);
  terminal.type("y");
  await terminal.shows(/^y$/m);
  terminal.type("\r");
  await terminal.shows(/✓ exec touch approved\.txt/);
  await terminal.shows(/^touched$/m);
});

// design: 002.32
testAtBothSizes("shows what is typed as an answer, and takes the number of an option", async (size) => {
  await using terminal = await open("question", size);
  terminal.send('tool: ask_user {"question":"Which?","options":["red","green"]}', "then", "say: thank you");
  await terminal.shows(/type a number, or your own answer/);
  assert.match(terminal.screen, /^ {2}2\. green$/m);
  terminal.type("2");
  await terminal.shows(/^2$/m);
  terminal.type("\r");
  await terminal.shows(/^thank you$/m);
  await terminal.hides(/type a number/);
});

test("draws again for a new size", { skip: withoutTerminals }, async () => {
  await using terminal = await open("resize", narrow);
  terminal.send(`say: ${"word ".repeat(40).trim()}`);
  await terminal.shows(/^(?:word ){14,15}word$/m);
  await terminal.resize({ columns: 40, rows: 20 });
  await terminal.shows(/^(?:word ){7}word$/m);
});

testAtBothSizes("attaches files that a message names with @", async (size) => {
  writeFileSync(join(folder, "notes.txt"), "the content of notes");
  await using terminal = await open("files", size);
  terminal.send("say: got it @notes.txt");
  await terminal.shows(/attached notes\.txt/);
  await terminal.shows(/^got it @notes\.txt$/m);
});

testAtBothSizes("starts a new line with Alt-Enter and with a backslash before Enter", async (size) => {
  await using terminal = await open("lines", size);
  terminal.type("say: one\u001B\rsay: two\\\rsay: three");
  await terminal.shows(/^say: one\nsay: two\nsay: three$/m);
  assert.doesNotMatch(terminal.screen, /^› /m);
  terminal.type("\r");
  await terminal.shows(/^one\ntwo\nthree$|^one two three$/m);
});

testAtBothSizes("completes a file after @ and a session by its title with Tab", async (size) => {
  writeFileSync(join(folder, "harbour.txt"), "ships");
  await using terminal = await open("completion", size);
  const title = `say: lighthouse of ${size.columns} metres`;
  terminal.send(title);
  await terminal.shows(new RegExp(`^lighthouse of ${size.columns} metres$`, "m"));
  terminal.type("read @harb");
  await terminal.shows(/→ harbour\.txt/);
  terminal.type("\t");
  await terminal.shows(/^read @harbour\.txt/m);
  terminal.type("\u0003");
  await terminal.hides(/^read @harbour\.txt/m);
  terminal.type(`/session resume say: lighthouse of ${size.columns}`);
  await terminal.shows(new RegExp(`→ ${title}`));
  terminal.type("\t");
  await terminal.shows(new RegExp(`^/session resume ${title}`, "m"));
});
