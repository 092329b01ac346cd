import assert from "node:assert/strict";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";

import type { Message } from "@parley/contracts";

import { plain, type Paint } from "../src/io/io.ts";
import { answerHint, answerIn, isReportedByEvents, isTypedAheadEnter, queueCommand } from "../src/terminal/answers.ts";
import { bannerLines, farewell, footerText } from "../src/terminal/banner.ts";
import { Completion } from "../src/terminal/completion.ts";
import { allCommands, helpText } from "../src/terminal/help.ts";
import { highlight } from "../src/terminal/highlight.ts";
import { History } from "../src/terminal/history.ts";
import { localCommand } from "../src/terminal/local-commands.ts";
import { mentionedFiles, mentionsIn } from "../src/terminal/mentions.ts";
import { recapEntry } from "../src/terminal/start.ts";
import type { OpenQuestion } from "../src/terminal/state.ts";

const folder = mkdtempSync(join(tmpdir(), "parley-input-"));
after(() => rmSync(folder, { recursive: true, force: true }));

const approval: OpenQuestion = {
  kind: "approval",
  turnId: "t",
  approvalId: "A1",
  tool: "exec",
  summary: "rm x",
  reason: "high risk",
  input: "",
  mayAlways: true,
  expiresAt: "",
  decision: null,
};
const question: OpenQuestion = {
  kind: "question",
  turnId: "t",
  callId: "c",
  question: "Which?",
  options: ["red"],
  isOpen: true,
};

test("reads y, a and n with a reason as a decision, and any other text as a message", () => {
  const command = (typed: string) => {
    const answer = answerIn(typed, approval);
    return answer.kind === "decision" ? answer.command : answer.kind;
  };
  assert.equal(command(" Y "), "/approve A1");
  assert.equal(command("always"), "/approve A1 always");
  assert.equal(command("n"), "/deny A1");
  assert.equal(command("no, use the copy\ninstead"), "/deny A1 use the copy\ninstead");
  for (const other of ["yes please", "constructor", "nothing else", "/stop"]) assert.equal(command(other), "message");
  assert.deepEqual(answerIn("y", undefined), { kind: "message" });
});

test("reads any text but a command as the answer to a question", () => {
  assert.deepEqual(answerIn("2", question), { kind: "answer", callId: "c" });
  assert.deepEqual(answerIn("y", question), { kind: "answer", callId: "c" });
  assert.deepEqual(answerIn("/stop", question), { kind: "message" });
});

// design: 002.38b
test("leaves the prompt with exit, quit, /exit and /quit, but only with the last two while a question is open", () => {
  for (const typed of ["exit", "quit", "Exit", "QUIT"]) {
    assert.equal(localCommand(typed, false), "leave", typed);
    assert.equal(localCommand(typed, true), null, typed);
    assert.deepEqual(answerIn(typed, question), { kind: "answer", callId: "c" });
  }
  for (const typed of ["/exit", "/quit", "/QUIT"]) {
    assert.equal(localCommand(typed, false), "leave", typed);
    assert.equal(localCommand(typed, true), "leave", typed);
  }
  for (const typed of ["exit now", "please quit", "/quitting"]) assert.equal(localCommand(typed, false), null, typed);
});

test("says how to answer each kind of question", () => {
  assert.equal(answerHint(approval, 1), "exec: y approve · a always · n [reason] deny  (1 more)");
  assert.equal(answerHint({ ...approval, mayAlways: false }, 0), "exec: y approve · n [reason] deny");
  assert.equal(answerHint(question, 0), "answer: type a number, or your own answer");
});

test("knows the commands whose effect an event reports", () => {
  const open = [approval];
  for (const command of ["/approve a1", "/deny A1", "/deny A1 not now"])
    assert.equal(isReportedByEvents(command, open, false), true, command);
  for (const command of ["/approve A1 always", "/approve B2", "/approvals", "/stop"])
    assert.equal(isReportedByEvents(command, open, false), false, command);
  assert.equal(isReportedByEvents("/stop", [], true), true);
});

test("takes a line feed as Enter only right after the start", () => {
  assert.deepEqual(
    [isTypedAheadEnter("\n", 100), isTypedAheadEnter("\n", 5_000), isTypedAheadEnter("a", 100)],
    [true, false, false],
  );
});

test("takes the queue mode from the command before a text", () => {
  assert.deepEqual(queueCommand("/later do this"), { mode: "queue", text: "do this" });
  assert.deepEqual(queueCommand("/now\nstop it"), { mode: "interrupt", text: "stop it" });
  assert.equal(queueCommand("/later").mode, undefined);
  assert.equal(queueCommand("later is fine").mode, undefined);
});

async function completed(typed: string): Promise<string[]> {
  const sessions = () => Promise.resolve([{ value: "Plan of the week", label: "Plan of the week" }]);
  const completion = new Completion({ commands: allCommands, folder, sessions });
  const found = await completion.getSuggestions([typed], 0, typed.length);
  return (found?.items ?? []).map(
    (item) => completion.applyCompletion([typed], 0, typed.length, item, found?.prefix ?? "").lines[0] ?? "",
  );
}

test("completes commands, their arguments, sessions by title, and files after @", async () => {
  mkdirSync(join(folder, "docs"));
  writeFileSync(join(folder, "docs", "a b.txt"), "");
  writeFileSync(join(folder, "notes.md"), "");
  assert.deepEqual(await completed("/stat"), ["/status "]);
  assert.deepEqual(await completed("/session re"), ["/session resume "]);
  assert.deepEqual(await completed("/mode pl"), ["/mode plan "]);
  assert.deepEqual(await completed("/session resume pl"), ["/session resume Plan of the week "]);
  assert.deepEqual(await completed("read @no"), ["read @notes.md "]);
  assert.deepEqual(await completed("read @do"), ["read @docs/"]);
  assert.deepEqual(await completed("read @docs/"), ['read @"docs/a b.txt" ']);
  assert.deepEqual(await completed("me@no"), []);
  assert.deepEqual(await completed("/status"), []);
});

test("attaches the files that a text names, and leaves other names alone", async () => {
  writeFileSync(join(folder, "my file.txt"), "");
  assert.deepEqual(mentionsIn('see @a.txt and @"my file.txt", mail me@home.org'), ["a.txt", "my file.txt"]);
  const found = await mentionedFiles('see @notes.md, @"my file.txt" and @team @docs', folder);
  assert.deepEqual(found, [join(folder, "notes.md"), join(folder, "my file.txt")]);
});

test("keeps the messages of earlier chats, also those of several lines, and finds them by words", () => {
  const file = join(folder, "chat-history");
  writeFileSync(file, "from an earlier version\n");
  const history = new History(file);
  history.add("first\nwith two lines");
  history.add('"quoted"');
  history.add("first\nwith two lines");
  const again = new History(file);
  assert.deepEqual(again.messages, ["first\nwith two lines", '"quoted"', "from an earlier version"]);
  assert.deepEqual(again.search("TWO first"), ["first\nwith two lines"]);
});

test("fits the help on 80 columns and 24 rows, with every command", () => {
  const lines = helpText().split("\n");
  assert.ok(lines.length <= 16 && lines.every((line) => line.length <= 80), helpText());
  for (const { name } of allCommands) if (name !== "/quit") assert.ok(helpText().includes(name), name);
});

// design: 002.30b, 002.41
test("begins with the facts of the agent, and says at the end whether the cluster goes on", () => {
  const facts = {
    version: "1",
    model: { provider: "anthropic", model: "claude-x" },
    tools: ["a", "b"],
    permissionMode: "plan",
    workspace: "none",
  };
  assert.deepEqual(bannerLines(facts, null, { folder: "/projects/site", consoleUrl: "http://127.0.0.1:1" }), [
    "model      anthropic:claude-x",
    "session    new",
    "tools      2, permission mode plan",
    "folder     /projects/site",
    "isolation  none",
    "console    http://127.0.0.1:1",
  ]);
  const workspace = "bubblewrap: no network, read-only system, only the workspace is writable";
  const banner = bannerLines({ ...facts, workspace }, null, { folder: null, consoleUrl: null });
  assert.deepEqual(banner.slice(3), [
    "isolation  bubblewrap: no network, read-only system, only the workspace is",
    "           writable",
  ]);
  const spent = { inputTokens: 12_000, outputTokens: 345, cost: { micros: 20_000, unpricedCalls: 0 } };
  assert.equal(footerText(facts, null, spent), "anthropic:claude-x · mode plan · 12.3k tokens · $0.0200 · new");
  assert.match(farewell(null, "separate"), /The cluster goes on .* npx parley chat$/);
  assert.match(farewell(null, "stops"), /^Stopping the cluster\./);
});

test("recalls the last texts of a continued session, without tools and notes of the loop", () => {
  const base = { seq: 1, turnId: "t", model: null, createdAt: "" };
  const from = {
    channel: "http",
    account: "default",
    conversation: "cli",
    contact: { id: "owner" },
    role: "owner" as const,
    origin: "user" as const,
  };
  const said = (text: string): Message => ({ ...base, role: "user", parts: [{ type: "text", text }], from });
  const answered = (text: string): Message => ({ ...base, role: "assistant", parts: [{ type: "text", text }] });
  const { from: _from, ...loop } = said("[go on]");
  const recap = recapEntry(
    [said("old"), answered("old answer"), said("what now?"), loop, answered("**Two** things:\n\n- one\n- two")],
    "2026-01-01T00:00:00Z",
  );
  assert.match(recap?.lastUsed ?? "", /^20\d\d-/);
  assert.deepEqual(recap?.texts, [
    { by: "person", text: "old" },
    { by: "agent", text: "old answer" },
    { by: "person", text: "what now?" },
    { by: "agent", text: "**Two** things:\n\n- one\n- two" },
  ]);
  assert.equal(recapEntry([], ""), null);
});

test("colours code by its language, each line by itself, and leaves other text as it is", () => {
  const marked: Paint = (format, text) => `<${String(format)}>${text}</>`;
  assert.deepEqual(highlight('const a = "<&";', "js", marked), ['<magenta>const</> a = <green>"<&"</>;']);
  assert.deepEqual(highlight("/* a\nb */", "js", marked), ["<gray>/* a</>", "<gray>b */</>"]);
  assert.deepEqual(highlight("const a", "no-language", marked), ["const a"]);
  assert.deepEqual(highlight("a < b", undefined, plain), ["a < b"]);
});
