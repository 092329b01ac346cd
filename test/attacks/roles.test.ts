// Attacks by people who are not the owner, on a whole cluster: guests against the owner's turn and session, and all roles against
// other people's files, secrets and attachments. The tests check what was written, sent and executed.
import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { mkdir, readdir, readFile, watch, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { after, before, test } from "node:test";
import pg from "pg";
import { hasApt, onPath } from "@parley/local";
import {
  apiClient,
  Cleanup,
  startTelegramPeer,
  startTestCluster,
  type TelegramPeer,
  type TestCluster,
} from "@parley/testing";

const skip = onPath("bwrap") === null && !(await hasApt()) ? "there is no bubblewrap here" : false;
const cleanup = new Cleanup();
const owner = 1;
const ann = 2;
const bob = 3;
const guest = 66;
const group = -100;
const note = "the owner keeps the key below the third stone";
const secret = "token-of-the-registry";
let telegram: TelegramPeer;
let cluster: TestCluster;
let database: pg.Client;
let workspace: string;
let people: string;
let asked = 0;

before(async () => {
  if (skip !== false) return;
  telegram = await startTelegramPeer();
  cleanup.add(() => telegram.close());
  cluster = await startTestCluster(cleanup, {
    processes: [],
    settings: `
[session]
policy = "per_conversation"
[queue]
mode = "queue"
[permissions]
allow = ["*", "read", "grep", "glob", "ls", "write", "edit", "apply_patch", "exec", "process", "attach", "save_attachment", "message"]
[tools.exec]
isolation = "bubblewrap"
[tools.secrets.exec]
REGISTRY_TOKEN = { env = "PARLEY_TOOL_REGISTRY" }
[channels.telegram.main]
token_env = "PARLEY_CHANNEL_TELEGRAM"
api_root = "${telegram.url}"
owners = ["${owner}"]
allow_from = ["${ann}", "${bob}"]
dm_policy = "open"
groups = ["${group}"]
`,
    env: {
      "tool-runner": { PARLEY_TOOL_REGISTRY: secret },
      "channel-gateway": { PARLEY_CHANNEL_TELEGRAM: telegram.token },
    },
  });
  database = new pg.Client(cluster.databaseUrl);
  await database.connect();
  cleanup.add(() => database.end());
  workspace = join(cluster.home, "workspace");
  people = join(cluster.home, ".workspace-state", "people");
  await mkdir(workspace, { recursive: true });
  await writeFile(join(workspace, "note.txt"), note);
  await writeFile(join(workspace, "plan.txt"), note);
});
after(() => cleanup[Symbol.asyncDispose]());

interface Place {
  from: number;
  chat?: number;
}

/** Makes a turn run these calls one after the other; resolves with their results as the model received them. */
async function results({ from, chat }: Place, calls: readonly [tool: string, input: object][]): Promise<string[]> {
  const end = `end of ${++asked}.`;
  const script = [...calls.map(([tool, input]) => `tool: ${tool} ${JSON.stringify(input)}`), `say: ${end}`].join(
    "\nthen\n",
  );
  telegram.say(chat === undefined ? script : `@parley_bot ${script}`, {
    from,
    ...(chat === undefined ? {} : { chat }),
  });
  await telegram.until(end, () => (telegram.sent.some(({ text }) => text.includes(end)) ? true : null));
  const { rows } = await database.query<{ parts: string }>(
    `WITH turn AS (SELECT turn_id AS id FROM parley.messages WHERE role = 'assistant' AND strpos(parts, $1) > 0)
     SELECT parts FROM parley.messages WHERE role = 'tool' AND turn_id IN
       (SELECT id FROM turn UNION SELECT t.id FROM parley.turns t JOIN turn ON t.root_turn_id = turn.id)
     ORDER BY created_at, seq`,
    [end],
  );
  const parts = rows.flatMap((row) => JSON.parse(row.parts) as { type: string; content: string }[]);
  return parts.filter(({ type }) => type === "tool_result").map(({ content }) => content);
}

/** Every file below the workspaces of people other than the owner, with its content. */
async function filesOfPeople(): Promise<Map<string, string>> {
  const found = new Map<string, string>();
  const entries = await readdir(people, { recursive: true, withFileTypes: true }).catch(() => []);
  for (const entry of entries) {
    if (!entry.isFile()) continue;
    const path = join(entry.parentPath, entry.name);
    found.set(path, await readFile(path, "utf8"));
  }
  return found;
}

/** Resolves when the owner's workspace contains a file of this name. */
async function appears(name: string): Promise<void> {
  const changes = watch(workspace, { signal: AbortSignal.timeout(60_000) });
  if ((await readdir(workspace)).includes(name)) return;
  for await (const { filename } of changes) if (filename === name) return;
}

const sha256 = (text: string) => createHash("sha256").update(text).digest("hex");

test("does not affect the owner's turn and session when a guest of the group sends commands", { skip }, async () => {
  const before = telegram.sent.length;
  // Longer than these commands take: what ends in the background is reported to the turn as another message.
  const waits = { command: "touch begun; until test -e release; do sleep 0.05; done", wait_seconds: 120 };
  telegram.say(`@parley_bot tool: exec ${JSON.stringify(waits)}\nthen\nsay: the owner is served`, {
    from: owner,
    chat: group,
  });
  await appears("begun");
  // The store sets the title of a session when it is first shown.
  const listed = await apiClient(cluster.httpUrls, cluster.token).fetch("/api/sessions");
  await listed.body?.cancel();
  const sessionsBefore = await database.query("SELECT id, key, title, status FROM parley.sessions WHERE key LIKE $1", [
    `telegram:main:${group}%`,
  ]);
  for (const text of [
    "/stop all",
    "/stop",
    "/new",
    "/session new x",
    "/session name hacked",
    "/session fork",
    "/mode bypass",
  ]) {
    const [name = "", ...rest] = text.split(" ");
    const answers = telegram.sent.length;
    telegram.say([`${name}@parley_bot`, ...rest].join(" "), { from: guest, chat: group });
    await telegram.untilSent(answers + 1);
  }
  const sessionsAfter = await database.query("SELECT id, key, title, status FROM parley.sessions WHERE key LIKE $1", [
    `telegram:main:${group}%`,
  ]);
  assert.deepEqual(sessionsAfter.rows, sessionsBefore.rows);
  const { rows } = await database.query("SELECT FROM parley.turns WHERE cancel_requested");
  assert.equal(rows.length, 0, "a turn was to stop");
  await writeFile(join(workspace, "release"), "");
  await telegram.until("the owner's answer", () =>
    telegram.sent.slice(before).some(({ text }) => text === "the owner is served") ? true : null,
  );
});

test("gives guests no file and command tools when nobody granted them", { skip }, async () => {
  const calls: [string, object][] = [
    ["read", { path: "note.txt" }],
    ["grep", { pattern: "stone" }],
    ["glob", { pattern: "**/*" }],
    ["ls", {}],
    ["write", { path: "guest.txt", content: "x" }],
    ["edit", { path: "note.txt", old_string: "key", new_string: "x" }],
    ["apply_patch", { patch: "*** Begin Patch\n*** Add File: guest.txt\n+x\n*** End Patch" }],
    ["exec", { command: "cat note.txt; touch guest.txt" }],
    ["process", { action: "list" }],
    ["attach", { path: "note.txt" }],
    ["save_attachment", { id: sha256(note), path: "guest.txt" }],
  ];
  for (const place of [{ from: guest, chat: group }, { from: guest }]) {
    const given = await results(place, calls);
    assert.equal(given.length, calls.length);
    for (const content of given) assert.match(content, /^Tool not found: /);
  }
  assert.ok(!(await readdir(workspace)).includes("guest.txt"));
  assert.equal(await readFile(join(workspace, "note.txt"), "utf8"), note);
});

test("shows a user nothing of the owner's workspace when they try each file tool and path", { skip }, async () => {
  const paths = [
    "note.txt",
    "./note.txt",
    "../note.txt",
    "../../../../workspace/note.txt",
    "/workspace/note.txt",
    join(workspace, "note.txt"),
  ];
  const given = await results({ from: ann }, [
    ...paths.map((path): [string, object] => ["read", { path }]),
    ["ls", {}],
    ["glob", { pattern: "**/*" }],
    ["grep", { pattern: "stone" }],
    ["write", { path: "note.txt", content: "ann was here" }],
    ["write", { path: "../escaped.txt", content: "x" }],
    ["exec", { command: "ln -s ../../../../workspace/note.txt link; ln -s / root; true" }],
    ["read", { path: "link" }],
    ["read", { path: `root${join(workspace, "note.txt")}` }],
    ["attach", { path: "link" }],
  ]);
  for (const content of given) assert.ok(!content.includes("third stone"), content);
  assert.equal(await readFile(join(workspace, "note.txt"), "utf8"), note);
  const files = await filesOfPeople();
  assert.deepEqual([...files.values()].filter((content) => content === "ann was here").length, 1);
});

test("isolates a user's command from other workspaces and secrets when it runs", { skip }, async () => {
  const probe = [
    "cat note.txt",
    "cat /workspace/note.txt",
    `cat ${join(workspace, "note.txt")}`,
    `ls ${cluster.home} ${people}`,
    "find / -name '.workspace-state' -o -name 'begun' 2>/dev/null",
    "grep -rl 'third stone' / --include=note.txt 2>/dev/null",
    'echo "token=${REGISTRY_TOKEN:-none}" | base64',
    "echo from-exec > by-exec.txt",
  ].join("; ");
  const [given = ""] = await results({ from: ann }, [["exec", { command: probe }]]);
  assert.match(given, /bubblewrap/);
  assert.ok(!given.includes("third stone"), given);
  assert.ok(!/^\/.*(begun|workspace-state)/m.test(given), given);
  assert.ok(given.includes(Buffer.from("token=none\n").toString("base64")), given);
  assert.ok(!(await readdir(workspace)).includes("by-exec.txt"));
  const [owners = ""] = await results({ from: owner }, [
    ["exec", { command: 'cat note.txt; echo "${#REGISTRY_TOKEN} characters"' }],
  ]);
  assert.match(owners, /third stone/);
  assert.match(owners, new RegExp(`${secret.length} characters`));
});

test("keeps the files of two users apart, and a user's files after /new", { skip }, async () => {
  await results({ from: bob }, [["write", { path: "diary.txt", content: "bob's diary" }]]);
  const given = await results({ from: ann }, [
    ["read", { path: "diary.txt" }],
    ["exec", { command: "cat diary.txt; ls -a ..; cat ../*/workspace/diary.txt" }],
    ["grep", { pattern: "diary" }],
  ]);
  for (const content of given) assert.ok(!content.includes("bob's diary"), content);
  const answers = telegram.sent.length;
  telegram.say("/new", { from: bob });
  await telegram.untilSent(answers + 1);
  assert.match((await results({ from: bob }, [["read", { path: "diary.txt" }]])).join(), /bob's diary/);
});

test("hides the owner's background commands when a user of the same group lists them", { skip }, async () => {
  const [started = ""] = await results({ from: owner, chat: group }, [
    ["exec", { command: "cat > taken.txt", background: true }],
  ]);
  const [, id = ""] = /background as (\S+)/.exec(started) ?? [];
  assert.notEqual(id, "");
  const given = await results({ from: ann, chat: group }, [
    ["process", { action: "list" }],
    ["process", { action: "input", id, input: "ann", end: true }],
    ["process", { action: "signal", id }],
  ]);
  assert.match(given[0] ?? "", /no background processes/);
  assert.match(given[1] ?? "", /No process/);
  assert.match(given[2] ?? "", /No process/);
  assert.equal(await readFile(join(workspace, "taken.txt"), "utf8"), "");
});

test("sends and saves no attachment of another conversation when a user names its hash", { skip }, async () => {
  await results({ from: owner }, [["attach", { path: "note.txt" }]]);
  const id = sha256(note);
  const files = telegram.calls.filter(({ method }) => method.startsWith("sendDocument")).length;
  const given = await results({ from: ann }, [
    ["message", { text: "take it", attachments: [id] }],
    ["save_attachment", { id, path: "stolen.txt" }],
  ]);
  assert.match(given[0] ?? "", /Not sent: there is no attachment/);
  assert.match(given[1] ?? "", /there is no content/);
  assert.equal(telegram.calls.filter(({ method }) => method.startsWith("sendDocument")).length, files);
  assert.ok(![...(await filesOfPeople()).values()].includes(note));
  const mine = "ann's own letter";
  const sent = await results({ from: ann }, [
    ["write", { path: "letter.txt", content: mine }],
    ["attach", { path: "letter.txt" }],
    ["message", { text: "my letter", attachments: [sha256(mine)] }],
  ]);
  assert.match(sent[2] ?? "", /^message sent /);
});

test("confines a sub-agent to its user's workspace when a user starts it", { skip }, async () => {
  const prompt = 'tool: read {"path":"plan.txt"}\nthen\ntool: glob {"pattern":"**/*"}\nthen\nsay: child is through';
  const given = await results({ from: ann }, [["sessions_spawn", { prompt, profile: "reader", mode: "wait" }]]);
  assert.ok(given.length >= 2, given.join("\n---\n"));
  for (const content of given) assert.ok(!content.includes("third stone") && !content.includes("plan.txt\n"), content);
});

test("lets the owner work in their own workspace over the API after these attacks", { skip }, async () => {
  const client = apiClient(cluster.httpUrls, cluster.token);
  await client.ask('tool: write {"path":"api.txt","content":"by the owner"}\nthen\nsay: done');
  assert.equal(await readFile(join(workspace, "api.txt"), "utf8"), "by the owner");
});
