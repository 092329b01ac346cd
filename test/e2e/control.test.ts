// The commands for sessions, queues, questions, costs and checkpoints against a whole cluster.
import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { Client } from "pg";
import { pollUntil } from "@parley/testing/until";
import { apiClient, Cleanup, startTestCluster, type ApiClient, type TestCluster } from "@parley/testing";
import { z } from "zod";
import { runParley } from "../../packages/cli/test/support/parley.ts";

const cleanup = new Cleanup();
let cluster: TestCluster;
let client: ApiClient;

before(async () => {
  cluster = await startTestCluster(cleanup, {
    processes: [],
    settings:
      '[session]\npolicy = "per_conversation"\n[permissions]\nask = ["write(secret*)"]\ncontained = "ask"\n[queue]\nmode = "queue"\n[compaction]\nmodel = "rehearsal:cheap"\n',
  });
  client = apiClient(cluster.httpUrls, cluster.token);
});
after(() => cleanup[Symbol.asyncDispose]());

async function run(...args: string[]) {
  return runParley(cluster.home, args);
}

/** The answer as data; the command must have succeeded. */
async function json<S extends z.ZodType>(schema: S, ...args: string[]): Promise<z.output<S>> {
  const { code, stdout, stderr } = await run(...args, "--json");
  assert.equal(code, 0, stderr);
  return schema.parse(JSON.parse(stdout));
}

const Session = z.looseObject({ sessionId: z.string(), title: z.string().nullable(), status: z.string() });
const One = z.object({ session: Session });
const Many = z.object({ sessions: z.array(Session) });
const key = (conversation: string) => `http:default:${conversation}`;

// design: 002.17, 002.19, 001.26c
test("creates, renames, forks, archives and resumes sessions", async () => {
  await client.ask("say: hello", "tidy");
  const { session } = await json(One, "sessions", "rename", key("tidy"), "first things");
  assert.equal(session.title, "first things");
  const fork = await json(One, "sessions", "fork", session.sessionId, "second thoughts");
  assert.notEqual(fork.session.sessionId, session.sessionId);
  const fresh = await json(One, "sessions", "new", "--route", key("tidy"), "a fresh start");
  assert.notEqual(fresh.session.sessionId, session.sessionId);
  const back = await json(One, "sessions", "resume", "first things", "--route", key("tidy"));
  assert.equal(back.session.sessionId, session.sessionId);
  await json(One, "sessions", "archive", fork.session.sessionId);
  const archived = await json(Many, "sessions", "--archived");
  assert.deepEqual(
    archived.sessions.map(({ sessionId }) => sessionId),
    [fork.session.sessionId],
  );
  const found = await json(Many, "sessions", "--text", "first");
  assert.deepEqual(
    found.sessions.map(({ sessionId }) => sessionId),
    [session.sessionId],
  );
});

// design: 002.20
test("tells the age of a resumed session by its last message", async () => {
  await client.ask("say: hello", "aged");
  const database = new Client({ connectionString: cluster.databaseUrl });
  await database.connect();
  try {
    await database.query(
      `UPDATE parley.messages SET created_at = created_at - interval '3 days'
       WHERE session_id = (SELECT id FROM parley.sessions WHERE key = $1)`,
      [key("aged")],
    );
  } finally {
    await database.end();
  }
  assert.match(
    await client.ask(`/session resume ${key("aged")}`, "aged"),
    /^This conversation continues with session "say: hello" \(\w{8}\), 2 messages, 3 days ago\.\nLast from /,
  );
});

test("lists sessions with their titles, and those that a conversation has left without an id in the key", async () => {
  await client.ask("say: hello", "listed");
  await run("sessions", "rename", key("listed"), "listed first");
  await client.ask("/new", "listed");
  await client.ask("say: hello again", "listed");
  const { stdout } = await run("sessions");
  assert.match(stdout, /^TITLE +KEY +STATE/m);
  assert.match(stdout, /^listed first +http:default:listed /m);
  assert.doesNotMatch(stdout, /listed~[0-9a-f]{8}-/);
});

test("/start tells that the rehearsal model answers, as its answers do", async () => {
  assert.match(await client.ask("/start", "greeted"), /^No language model is set up yet: a built-in rehearsal model/m);
  assert.match(await client.ask("good morning", "greeted"), /^\[rehearsal model\] You said: good morning$/);
});

test("lists, edits and withdraws queued input, and refuses changes to started input", async () => {
  const running = await client.post("wait: 500\nwords: 200", { conversation: "queue" });
  // A message that no turn has taken is in the queue too.
  await pollUntil(async () => (await client.messageState(running)).turn !== null, "the running turn");
  const first = await client.post("say: frist", { conversation: "queue" });
  const second = await client.post("say: second", { conversation: "queue" });
  const Queue = z.object({ rows: z.array(z.looseObject({ inboxId: z.string(), text: z.string() })) });
  const { rows } = await json(Queue, "queue", key("queue"));
  assert.deepEqual(
    rows.map(({ inboxId }) => inboxId),
    [first, second],
  );
  const edited = await run("queue", "--edit", first, "say: first");
  assert.deepEqual([edited.stdout, edited.stderr], ["Updated.\n", ""]);
  assert.equal((await run("queue", "--cancel", second)).stdout, "Cancelled.\n");
  await run("stop", "--keep-waiting", key("queue"));
  await client.settled(running);
  assert.equal((await client.settled(first)).text, "first");
  assert.equal((await client.messageState(second)).state, "cancelled");
  const late = await run("queue", "--cancel", first);
  assert.equal(late.code, 1);
  assert.match(late.stderr, /the message is no longer queued/);
});

test("lists a question about a call and accepts one answer", async () => {
  const message = await client.post('tool: write {"path":"secret.txt","content":"x"}\nthen\nsay: written', {
    conversation: "ask",
  });
  const Approvals = z.object({ approvals: z.array(z.looseObject({ id: z.string(), tool: z.string() })) });
  const question = await pollUntil(async () => (await json(Approvals, "approvals")).approvals[0], "the approval");
  assert.equal(question.tool, "write");
  const yes = await run("approvals", "--approve", question.id.toLowerCase());
  assert.deepEqual([yes.code, yes.stdout.startsWith("Allowed. write")], [0, true]);
  assert.equal((await client.settled(message)).text, "written");
  const again = await run("approvals", "--deny", question.id);
  assert.deepEqual([again.code, again.stdout.startsWith("It was already allowed")], [1, true]);
  assert.equal((await run("approvals", "--always")).code, 2);
  assert.equal((await run("approvals")).stdout, "No approvals are pending.\n");
});

test("passes the reason of a denial to the model", async () => {
  const message = await client.post('tool: write {"path":"secret.txt","content":"y"}\nthen\nsay: seen', {
    conversation: "deny",
  });
  const Approvals = z.object({ approvals: z.array(z.looseObject({ id: z.string() })) });
  const question = await pollUntil(async () => (await json(Approvals, "approvals")).approvals[0], "the approval");
  const text = `/deny ${question.id} keep the old text`;
  await client.fetch("/api/messages", { method: "POST", body: JSON.stringify({ text, conversation: "deny" }) });
  const { sessionId } = await client.settled(message);
  const transcript = await (await client.fetch(`/api/sessions/${sessionId}/messages`)).text();
  assert.match(transcript, /Not run: denied by [^"]*: keep the old text/);
});

// design: 003.22
test("shows a rule that always added, and asks again when it is removed", async () => {
  const conversation = "rules";
  const Approvals = z.object({ approvals: z.array(z.looseObject({ id: z.string() })) });
  const Rules = z.object({ session: z.record(z.string(), z.array(z.string())), settings: z.looseObject({}) });
  const write = 'tool: write {"path":"plan.txt","content":"x"}\nthen\nsay: written';
  const rules = async (path = "", body?: object) => {
    const init = body === undefined ? {} : { method: "POST", body: JSON.stringify(body) };
    return client.fetch(`/api/sessions/${encodeURIComponent(key(conversation))}/rules${path}`, init);
  };
  const slash = async (text: string) => {
    const body = JSON.stringify({ text, conversation });
    return z
      .object({ text: z.string() })
      .parse(await (await client.fetch("/api/messages", { method: "POST", body })).json()).text;
  };
  const asked = async () => {
    const question = await pollUntil(async () => (await json(Approvals, "approvals")).approvals[0], "the approval");
    return question.id;
  };

  const first = await client.post(write, { conversation });
  await run("approvals", "--approve", await asked(), "--always");
  assert.equal((await client.settled(first)).text, "written");
  const { session, settings } = Rules.parse(await (await rules()).json());
  assert.deepEqual(session["allow"], ["write(plan.txt)"]);
  assert.deepEqual(settings["ask"], ["write(secret*)"]);
  assert.match(await slash("/rules"), /^Allowed: write\(plan\.txt\)$/m);
  assert.equal((await client.settled(await client.post(write, { conversation }))).text, "written");

  assert.match(await slash("/rules remove write(plan.txt)"), /^This session has no rules of its own/);
  const again = await client.post(write, { conversation });
  await run("approvals", "--deny", await asked());
  assert.equal((await client.settled(again)).text, "written");

  const added = await rules("", { list: "deny", rules: ["write(plan.txt)"] });
  assert.deepEqual(Rules.parse(await added.json()).session["deny"], ["write(plan.txt)"]);
  assert.match(await slash("/rules add ask write(other.txt)"), /^Require approval: write\(other\.txt\)$/m);
  const refused = await client.settled(await client.post(write, { conversation }));
  const transcript = await (await client.fetch(`/api/sessions/${refused.sessionId}/messages`)).text();
  assert.match(transcript, /Rule \\"write\(plan\.txt\)\\" denies this call/);
  assert.equal((await rules("/remove", { rules: ["write(plan.txt)", "write(other.txt)"] })).status, 200);
  const cleared = Rules.parse(await (await rules()).json()).session;
  assert.deepEqual(cleared, { allow: [], allowTainted: [], ask: [], deny: [] });
  const ofSession = ["--session", key(conversation)];
  const listed = await run("rules", "--ask", "exec(make)", ...ofSession);
  assert.match(listed.stdout, /^ask +session +exec\(make\)\nask +settings +write\(secret\*\)$/m);
  assert.doesNotMatch((await run("rules", "--remove", "exec(make)", ...ofSession)).stdout, /exec/);
  assert.equal((await rules("/remove", { rules: ["write(other.txt)"] })).status, 404);
  assert.equal((await rules("", { list: "allow", rules: ["exec("] })).status, 400);
  assert.equal((await rules("", { list: "allowTainted", rules: ["exec"] })).status, 400);
});

// design: 002.31
test("reports costs by day and model", async () => {
  const Cost = z.object({
    rows: z.array(z.looseObject({ model: z.string(), calls: z.number() })),
    total: z.object({ micros: z.number(), unpricedCalls: z.number() }),
  });
  await client.ask("say: one call", "cost");
  const { rows } = await json(Cost, "cost", "--session", key("cost"));
  assert.deepEqual(
    rows.map(({ model, calls }) => [model, calls]),
    [["rehearsal", 1]],
  );
  assert.match((await run("cost", "--days", "30")).stdout, /total \$0\.0000/);
  assert.match(
    await client.ask("/cost", "cost"),
    /^This session: \$0\.00; \d+ tokens read \(0 from the cache\), \d+ written\.\nToday \(UTC\): \$0\.00\nrehearsal: \d+ calls, \$0\.00$/,
  );
});

test("sets and resets a session's model and mode, and gives the reason when it refuses", async () => {
  await client.ask("say: hello", "model");
  const Own = z.object({ session: z.object({ overrides: z.record(z.string(), z.unknown()) }) });
  const at = ["--session", key("model")];
  const set = await json(Own, "model", "rehearsal:second", "--effort", "low", ...at);
  assert.deepEqual(set.session.overrides, { model: "rehearsal:second", effort: "low" });
  assert.match((await run("model", ...at)).stdout, /model: rehearsal:second/);
  const back = await json(Own, "model", "default", "--effort", "default", ...at);
  assert.deepEqual(back.session.overrides, {});
  const refused = await run("model", "--permission-mode", "bypass", ...at);
  assert.equal(refused.code, 1);
  assert.match(refused.stderr, /allow_bypass/);
});

// design: 000.40b
test("has nothing to compact when a session is short", async () => {
  await client.ask("say: hello", "compact");
  assert.equal((await run("compact", key("compact"))).stdout, "There is nothing to compact.\n");
});

// design: 002.16
test("lets the model of the settings write the summary", async () => {
  for (let turn = 0; turn < 8; turn++) await client.ask(`say: ok\n${"a long story ".repeat(800)}`, "summarised");
  assert.match(await client.ask("/compact", "summarised"), /^(?:Compacted: |Compaction is in progress)/);
  const Cost = z.object({ rows: z.array(z.looseObject({ model: z.string() })) });
  await pollUntil(async () => {
    const { rows } = await json(Cost, "cost", "--session", key("summarised"));
    return rows.some(({ model }) => model === "rehearsal:cheap");
  }, "the cost of the summary");
});

// design: 002.19
test("restores files to a checkpoint, and changes nothing in a dry run", async () => {
  const file = join(cluster.home, "workspace", "kept.txt");
  await client.ask("/mode accept_edits", "files");
  await client.ask('tool: write {"path":"kept.txt","content":"old"}\nthen\nsay: ok', "files");
  await client.ask('tool: write {"path":"kept.txt","content":"new"}\nthen\nsay: ok', "files");
  const Checkpoints = z.object({ checkpoints: z.array(z.looseObject({ checkpointId: z.string() })) });
  const { checkpoints } = await json(Checkpoints, "checkpoints", key("files"));
  const newest = checkpoints[0]?.checkpointId ?? assert.fail("no checkpoint");
  const shown = new RegExp(
    `^1\\. ${newest.slice(-8)} {2}\\d+ s ago · 1 file · before .*"content":"new".*\\n2\\. \\w{8} {2}\\d+ s ago · 1 file · before .*"content":"old".*\\n/rewind <n> restores the files to their state before that turn; --dry-run only lists the changes\\.$`,
  );
  assert.match(await client.ask("/checkpoint list", "files"), shown);
  assert.match(
    await client.ask("/rewind 1 --dry-run", "files"),
    /^Dry run: 1 restored, 0 removed, 0 skipped, 0 failed\.\nwill be restored {2}kept\.txt$/,
  );
  const dry = await run("rewind", newest, "--dry-run", "--session", key("files"));
  assert.match(dry.stdout, /^This would happen: 1 restored, .*\nwill be restored {2}kept\.txt$/m);
  assert.equal(await readFile(file, "utf8"), "new");
  const done = await run("rewind", newest, "--session", key("files"));
  assert.deepEqual([done.code, done.stdout.startsWith("Done: 1 restored")], [0, true]);
  assert.equal(await readFile(file, "utf8"), "old");

  await client.ask('tool: write {"path":"kept.txt","content":"newer"}\nthen\nsay: ok', "files");
  const answer = await client.ask("/rewind 1", "files");
  assert.match(
    answer,
    /^Done: 1 restored, 0 removed, 0 skipped, 0 failed\.\nrestored {2}kept\.txt\n\/rewind \w{8} undoes it\.$/,
  );
  assert.equal(await readFile(file, "utf8"), "old");
  await client.ask(/\/rewind \w{8}/.exec(answer)?.[0] ?? "", "files");
  assert.equal(await readFile(file, "utf8"), "newer");
});
