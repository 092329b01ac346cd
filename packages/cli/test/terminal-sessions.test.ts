// The terminal chat and its sessions on a real pseudo-terminal: how a chat begins and ends, rewinds, voice, questions of MCP servers, and what
// another chat says; and how a channel is added. One cluster for the whole file.

import assert from "node:assert/strict";
import { appendFile, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { fileURLToPath } from "node:url";

import {
  apiClient,
  Cleanup,
  startTelegramPeer,
  startTestCluster,
  untilServersReady,
  type TestCluster,
} from "@parley/testing";

import { everything, ownServer } from "../../../services/tool-runner/test/mcp/programs.ts";
import { parley } from "./support/parley.ts";
import {
  narrow,
  parleyTerminal,
  type TerminalSize,
  testAtBothSizes,
  TestTerminal,
  wide,
  withoutTerminals,
} from "./support/terminal.ts";

const cleanup = new Cleanup();
let folder: string;
let heardFile: string;
let journalFile: string;
let cluster: TestCluster;

before(async () => {
  folder = await mkdtemp(join(tmpdir(), "parley-sessions-"));
  cleanup.add(() => rm(folder, { recursive: true, force: true }));
  [heardFile, journalFile] = [join(folder, "heard"), join(folder, "journal")];
  await Promise.all([writeFile(heardFile, ""), writeFile(journalFile, "")]);
  const args = ["--conditions=@parley/source", ownServer("listening"), heardFile, journalFile];
  cluster = await startTestCluster(cleanup, {
    processes: [],
    settings: `
[session]
policy = "per_conversation"
[queue]
mode = "queue"
[permissions]
allow = ["mcp__form__trigger-elicitation-request", "mcp__form__trigger-sampling-request"]
[voice]
poll_ms = 50
poll_tries = 3
[mcp.servers.speech]
command = "${process.execPath}"
args = ${JSON.stringify(args)}
[mcp.servers.form]
command = "${process.execPath}"
args = ${JSON.stringify([everything, "stdio"])}
era = "legacy"
sampling = { enabled = true }
`,
  });
  await untilServersReady(apiClient(cluster.httpUrls, cluster.token), ["speech", "form"]);
});
after(() => cleanup[Symbol.asyncDispose]());

async function open(args: readonly string[], size: TerminalSize): Promise<TestTerminal> {
  const terminal = parleyTerminal(cluster.home, ["chat", ...args], size, folder);
  await terminal.shows(/\/help lists commands and keys/);
  return terminal;
}

/** Sends one message to the conversation of a name, and waits for the answer. */
async function say(conversation: string, text: string): Promise<void> {
  const { code, stderr } = await parley(cluster.home, [
    "send",
    "--wait",
    "--conversation",
    conversation,
    text,
  ]).outcome();
  assert.equal(code, 0, stderr);
}

const final = (text: string) => appendFile(heardFile, `${JSON.stringify({ type: "utterance_final", text })}\n`);

// design: 002.25
test(
  "shows what a voice session heard, the answers and its end at both sizes",
  { skip: withoutTerminals },
  async () => {
    await using small = await open(["--conversation", "voice"], narrow);
    await using large = await open(["--conversation", "voice"], wide);
    const both = [small, large];
    small.send("/voice start");
    await small.shows(/Listening to /);
    await final("say: the first answer");
    await final("say: the second answer");
    const heard =
      /^heard › say: the first answer\n\nthe first answer\n\nheard › say: the second answer\n\nthe second answer$/m;
    await Promise.all(both.map((terminal) => terminal.shows(heard)));
    const started = (await readFile(journalFile, "utf8")).split("\n").find((line) => line.includes('"start"')) ?? "";
    process.kill(Number(/"pid":(\d+)/.exec(started)?.[1]), "SIGKILL");
    await Promise.all(both.map((terminal) => terminal.shows(/· Voice failed: /)));
  },
);

// design: 002.32
testAtBothSizes("asks the questions of an MCP server one after the other", async (size) => {
  await using terminal = await open(["--conversation", `form-${size.columns}`], size);
  terminal.send("tool: mcp__form__trigger-elicitation-request {}", "then", "say: the job is done");
  await terminal.shows(/1 of 13/);
  await terminal.shows(/type (?:a number, or )?your (?:own )?answer/);
  terminal.type("Ada Lovelace");
  await terminal.shows(/^Ada Lovelace$/m);
  terminal.type("\r");
  await terminal.shows(/2 of 13/);
  terminal.send("done");
  await terminal.shows(/^the job is done$/m);
});

testAtBothSizes("asks for consent before a server requests an answer of the model", async (size) => {
  await using terminal = await open(["--conversation", `sampling-${size.columns}`], size);
  const input = JSON.stringify({ prompt: "go\nsay: sampled" });
  terminal.send(`tool: mcp__form__trigger-sampling-request ${input}`, "then", "say: the sampling is done");
  await terminal.shows(/May it request answers from a model/);
  await terminal.shows(/type (?:a number, or )?your (?:own )?answer/);
  terminal.send("no");
  await terminal.shows(/^the sampling is done$/m);
  await terminal.hides(/your (?:own )?answer/);
});

// design: 002.18, 002.20
testAtBothSizes("resumes a session by its title with a recap, and refuses a title that several have", async (size) => {
  const title = `plan of week ${size.columns}`;
  await say(`plans-${size.columns}`, "say: the plan is ready");
  await say(`plans-${size.columns}`, `/session name ${title}`);
  await using terminal = await open(["--resume", title], size);
  assert.match(terminal.screen, /^session +plan of week \d+ \(\d+ messages\)$/m);
  assert.match(terminal.screen, /^│ continued from .*\n│ › say: the plan is ready\n│ the plan is ready$/m);
  await say(`other-plans-${size.columns}`, "hello");
  await say(`other-plans-${size.columns}`, `/session name ${title}`);
  await using ambiguous = parleyTerminal(cluster.home, ["chat", "--resume", title], size);
  assert.equal(await ambiguous.ended(), 1);
  assert.match(ambiguous.all, /2 sessions have the title "plan of week \d+"/);
  await using unknown = parleyTerminal(cluster.home, ["chat", "--resume", "no such plan"], size);
  assert.equal(await unknown.ended(), 1);
  assert.match(unknown.all, /There is no session "no such plan"/);
});

// design: 002.18
testAtBothSizes("continues the newest session, or a copy of it that leaves the original as it is", async (size) => {
  await say(`original-${size.columns}`, "say: only in the original");
  await using copy = await open(["--continue", "--fork", "--permission-mode", "plan"], size);
  assert.match(copy.screen, /^│ only in the original$/m);
  await copy.shows(/ · mode plan · /);
  copy.send("say: only in the copy");
  await copy.shows(/^only in the copy$/m);
  await using original = await open(["--resume", `http:default:original-${size.columns}`], size);
  assert.match(original.screen, /^│ only in the original$/m);
  assert.doesNotMatch(original.screen, /only in the copy/);
});

// design: 002.19
testAtBothSizes("shows what a rewind does to each file, and rewinds when the person says so", async (size) => {
  const file = join(cluster.home, "workspace", `rewound-${size.columns}.txt`);
  const write = `tool: write {"path":"rewound-${size.columns}.txt","content":"new"}\nthen\nsay: written`;
  await say(`rewind-${size.columns}`, "/mode accept_edits");
  await say(`rewind-${size.columns}`, write);
  await using terminal = await open(["--conversation", `rewind-${size.columns}`], size);
  terminal.send("/rewind 1");
  await terminal.shows(/^will be deleted {2}rewound-\d+\.txt$/m);
  await terminal.shows(/Rewind these files\?/);
  terminal.send("n");
  await terminal.hides(/Rewind these files\?/);
  assert.equal(await readFile(file, "utf8"), "new");
  terminal.send("/rewind 1");
  await terminal.shows(/Rewind these files\?/);
  terminal.send("y");
  await terminal.shows(/^removed {2}rewound-\d+\.txt$/m);
  await assert.rejects(readFile(file, "utf8"), { code: "ENOENT" });
});

testAtBothSizes("shows the open question of a turn that was running when the chat is opened again", async (size) => {
  const chat = ["--conversation", `reopened-${size.columns}`];
  const question = /^ *1\. red$/m;
  {
    await using first = await open(chat, size);
    first.send("say: before it");
    await first.shows(/^before it$/m);
    first.send('tool: ask_user {"question":"Red or blue?","options":["red","blue"]}', "then", "say: painted");
    await first.shows(question);
  }
  await using terminal = await open(chat, size);
  await terminal.shows(question);
  assert.match(terminal.screen, /continued from [^]*│ before it[^]*› tool: ask_user [^]*Red or blue\?[^]*1\. red/);
  assert.equal(terminal.screen.match(/› tool: ask_user/g)?.length, 1);
  terminal.send("blue");
  await terminal.shows(/^painted$/m);
});

testAtBothSizes("begins with the model of --model", async (size) => {
  await using terminal = await open(["--conversation", `model-${size.columns}`, "--model", "rehearsal"], size);
  await terminal.shows(/This session uses rehearsal from now on\./);
  terminal.send("/model");
  await terminal.shows(/This session's model is rehearsal; \/model default resets it\./);
  await terminal.shows(/\/model <name> uses one of them/);
});

testAtBothSizes("starts the session with the profile of --profile", async (size) => {
  await using terminal = await open(["--conversation", `profile-${size.columns}`, "--profile", "reader"], size);
  terminal.send("say: read by the reader");
  await terminal.shows(/^read by the reader$/m);
  const { stdout } = await parley(cluster.home, ["sessions", "--json"]).outcome();
  const { sessions } = JSON.parse(stdout) as { sessions: { key: string; profile: string | null }[] };
  const ownKey = `:profile-${size.columns}@reader`;
  const profiles = sessions.filter(({ key }) => key.endsWith(ownKey)).map(({ profile }) => profile);
  assert.deepEqual(profiles, ["reader"]);
});

testAtBothSizes("sends messages with the mode of --mode while the agent is busy", async (size) => {
  await using terminal = await open(["--conversation", `mode-${size.columns}`, "--mode", "interrupt"], size);
  terminal.send("pause: 120000", "say: never shown");
  await terminal.shows(/thinking \d+ s/);
  terminal.send("say: shown at once");
  await terminal.shows(/^shown at once$/m);
  assert.doesNotMatch(terminal.screen, /^never shown$/m);
});

testAtBothSizes("shows what another chat of the same name says", async (size) => {
  await using terminal = await open(["--conversation", `shared-${size.columns}`], size);
  await say(`shared-${size.columns}`, "say: from the other chat");
  await terminal.shows(/^elsewhere › say: from the other chat\n\nfrom the other chat$/m);
});

testAtBothSizes("finds messages of earlier chats with ↑ and Ctrl-R", async (size) => {
  {
    await using first = await open(["--conversation", `history-${size.columns}`], size);
    first.send("say: remember the lighthouse");
    await first.shows(/^remember the lighthouse$/m);
    first.send("say: another one");
    await first.shows(/^another one$/m);
  }
  await using terminal = await open(["--conversation", `history-2-${size.columns}`], size);
  terminal.type("\u001B[A");
  await terminal.shows(/^say: another one$/m);
  terminal.type("\u0003\u0012");
  await terminal.shows(/search earlier messages/);
  terminal.type("lighthouse");
  await terminal.hides(/another one/);
  terminal.type("\r");
  await terminal.shows(/^say: remember the lighthouse$/m);
  await terminal.hides(/search earlier messages/);
});

testAtBothSizes("completes a command with Tab", async (size) => {
  await using terminal = await open(["--conversation", `tab-${size.columns}`], size);
  terminal.type("/whoa");
  await terminal.shows(/show your identity/);
  terminal.type("\t");
  await terminal.shows(/^\/whoami$/m);
});

// design: 002.38b
testAtBothSizes("asks at exit whether the cluster stops when npm start opened the chat", async (size) => {
  const wrapper = join(folder, "wrapper.ts");
  const ask = fileURLToPath(new URL("../../../infra/local/src/main/ask.ts", import.meta.url));
  await writeFile(
    wrapper,
    `import { chat } from ${JSON.stringify(ask)};
const opened = chat(${JSON.stringify(cluster.home)}, new AbortController().signal);
setTimeout(() => opened.warn("the disk is full"), 100);
console.log("keeps the cluster:", (await opened.ended).keepsCluster);
`,
  );
  const command = [process.execPath, "--conditions=@parley/source", wrapper];
  await using terminal = new TestTerminal(command, size);
  await terminal.shows(/\/help lists commands and keys/);
  await terminal.shows(/· the disk is full/);
  terminal.send("exit");
  await terminal.shows(/Stop the cluster too\?/);
  terminal.send("n");
  await terminal.shows(/keeps the cluster: true/);
  assert.equal(await terminal.ended(), 0);
});

test(
  "adds a channel: asks for the token without showing it, and admits its first person as owner",
  { skip: withoutTerminals },
  async () => {
    await using peer = await startTelegramPeer();
    const command = ["channels", "add", "telegram:terminal", "--setting", `api_root=${peer.url}`];
    await using terminal = parleyTerminal(cluster.home, command, { columns: 120, rows: 40 }, folder);
    await terminal.shows(/^1\. .*@BotFather[^]*BotFather \(token_env, not shown\): *$/m);
    terminal.type(`${peer.token}\r`);
    await terminal.shows(/telegram:terminal is added: @parley_bot\.\nNow write to it/);
    assert.ok(!terminal.all.includes(peer.token));
    peer.say("hello");
    const code = /[A-Z2-9]{4}-[A-Z2-9]{4}/.exec((await peer.untilSent(1))[0]?.text ?? "")?.[0] ?? "";
    await terminal.shows(/User 42 \(42\) wrote to it and received a code\.[^]*enter the code/);
    terminal.type("AAAA-AAAA\r");
    await terminal.shows(/No open request has this code\.[^]*enter the code/);
    terminal.type(`${code}\r`);
    assert.equal(await terminal.ended(), 0);
    assert.match(terminal.all, /User 42 is the owner\./);
    peer.say("say: you are the owner");
    assert.equal((await peer.untilSent(2))[1]?.text, "you are the owner");
    const { code: removed, stderr } = await parley(cluster.home, ["channels", "remove", "telegram:terminal"]).outcome();
    assert.equal(removed, 0, stderr);
  },
);
