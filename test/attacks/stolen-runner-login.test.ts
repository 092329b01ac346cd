// A thief with the NATS login of the tool-runners, in a running cluster with three sessions of two people, one of which executes a call: every
// subject, every request and every payload that they can form. They know all ids; they have no grant. The tests check what was
// answered, heard, written and sent.
import assert from "node:assert/strict";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { randomUUID } from "node:crypto";
import { storeBlob } from "@parley/bus";
import {
  inboxPrefix,
  natsPermissions,
  registry,
  roles,
  store,
  subjectOf,
  type Contract,
  type RequestContract,
} from "@parley/contracts";
import { natsUsers, startNats } from "@parley/local";
import {
  apiClient,
  Cleanup,
  createTestSigner,
  openTestBus,
  startTelegramPeer,
  startTestCluster,
  temporaryFolder,
  type ApiClient,
  type TelegramPeer,
  type TestCluster,
} from "@parley/testing";
import pg from "pg";
import { read } from "../deploy/support/repository.ts";
import { forgedPayloads, type StolenIds } from "./support/forged-payloads.ts";
import { NatsClient, type Outcome } from "./support/nats-client.ts";

const cleanup = new Cleanup();
const [owner, ann] = [1, 2];
/** Part of every text and document of the people; no reply and no message that the thief hears may contain it. */
const mark = "cAnArY";
const namespace = "parley";
const requests = registry.filter((each): each is RequestContract => each.kind === "request");
const events = registry.filter((each) => each.kind !== "request");
const requestMs = 15_000;

let cluster: TestCluster;
let client: ApiClient;
let telegram: TelegramPeer;
let sql: pg.Client;
let thief: NatsClient;
let sessions: StolenIds[];
let tries = 0;

before(async () => {
  telegram = await startTelegramPeer();
  cleanup.add(() => telegram.close());
  const nats = await startNats({ dataDir: join(await temporaryFolder(cleanup), "nats"), users: natsUsers(namespace) });
  cleanup.add(() => nats.stop());
  cluster = await startTestCluster(cleanup, {
    processes: [],
    servers: { nats },
    settings: `
[session]
policy = "per_conversation"
[queue]
mode = "queue"
[permissions]
contained = "allow"
[channels.telegram.main]
token_env = "PARLEY_CHANNEL_TELEGRAM"
api_root = "${telegram.url}"
owners = ["${owner}"]
allow_from = ["${ann}"]
dm_policy = "allowlist"
preview = false
`,
    env: { "channel-gateway": { PARLEY_CHANNEL_TELEGRAM: telegram.token } },
  });
  client = apiClient(cluster.httpUrls, cluster.token);
  sql = new pg.Client(cluster.databaseUrl);
  await sql.connect();
  cleanup.add(() => sql.end());
  const gateway = await openTestBus(nats, "channel-gateway", cleanup);
  for (const path of ["MEMORY.md", "SOUL.md", "USER.md"] as const)
    await gateway.request(store.documentPut, { opId: randomUUID(), path, content: `${mark} ${path}`, author: "owner" });
  const { sha256 } = await storeBlob(gateway, Buffer.from(`${mark} attachment`));
  await sendTexts("before");
  const call = JSON.stringify({ command: `sleep 900 # ${mark}`, wait_seconds: 600, timeout_seconds: 1_800 });
  await client.post(`tool: exec ${call}\nthen\nsay: over`, { conversation: "running" });
  await eventually("SELECT FROM parley.steps WHERE kind = 'tool' AND state = 'running'");
  sessions = await stolenIds(sha256);
  assert.equal(sessions.length, 3);
  thief = await NatsClient.open(cleanup, nats.urlFor("tool-runner"), inboxPrefix("tool-runner"));
});
after(() => cleanup[Symbol.asyncDispose]());

/** A message of each person, whose turn reads a document; resolves when both are answered. */
async function sendTexts(name: string): Promise<void> {
  for (const from of [owner, ann]) {
    const text = `${mark} ${name} ${from}`;
    const reading = from === owner ? 'tool: read {"path":"MEMORY.md"}\nthen\n' : "";
    telegram.say(`${reading}say: ${text}`, { from });
    await telegram.until(text, () => (telegram.sent.some((each) => each.text === text) ? true : null));
  }
  // The store learns of the deliveries after the people have read them.
  await eventually("SELECT WHERE NOT EXISTS (SELECT FROM parley.outbox WHERE state IN ('pending', 'sending'))");
}

async function eventually(query: string): Promise<void> {
  const deadline = Date.now() + 60_000;
  while ((await sql.query(query)).rowCount === 0) {
    assert.ok(Date.now() < deadline, query);
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}

/** Everything that names something of each session. */
async function stolenIds(sha256: string): Promise<StolenIds[]> {
  const { rows: leaders } = await sql.query<{ epoch: string }>("SELECT max(epoch) AS epoch FROM parley.leadership_log");
  const epoch = Number(leaders[0]?.epoch);
  const { rows } = await sql.query<{ session: string; turn: string; n: number; call: string | null; inbox: string }>(
    `SELECT DISTINCT ON (t.session_id) t.session_id AS session, t.id AS turn, s.n, s.call_id AS call, i.id AS inbox
     FROM parley.turns t JOIN parley.steps s ON s.turn_id = t.id JOIN parley.inbox i ON i.session_id = t.session_id
     ORDER BY t.session_id, (s.kind = 'tool') DESC, s.n`,
  );
  return rows.map(({ session, turn, n, call, inbox }, index) => ({
    sessionId: session,
    turnId: turn,
    n,
    callId: call ?? "call",
    messageId: inbox,
    sha256,
    epoch,
    processId: "1@tool-runner-1",
    contactId: String(index === 0 ? owner : ann),
    // The owner's rights for this very call, signed with a key that no leader has.
    grant: createTestSigner().sign({ epoch, sessionId: session, turnId: turn, n }),
  }));
}

/** Subjects with every value of their placeholders that a thief may choose. */
function subjectsOf(contract: Contract, ids: StolenIds): string[] {
  const names = [...contract.subject.matchAll(/\{(\w+)\}/g)].map(([, name = ""]) => name);
  const values = [ids.sessionId, ids.turnId, ids.callId, "agent-core-1", "tool-runner-1", "channel-gateway-1", "exec"];
  return names.length === 0
    ? [subjectOf(contract, namespace)]
    : values.map((value) => subjectOf(contract, namespace, Object.fromEntries(names.map((name) => [name, value]))));
}

/** Everything that the thief could have changed: for each table the rows, without times of heartbeats. */
async function content(): Promise<Record<string, string>> {
  const { rows: tables } = await sql.query<{ name: string }>(
    "SELECT tablename AS name FROM pg_tables WHERE schemaname = 'parley' ORDER BY tablename",
  );
  const found: Record<string, string> = {};
  for (const { name } of tables.filter((each) => !unrelated.has(each.name))) {
    const { rows } = await sql.query<{ hash: string }>(
      `SELECT count(*) || ' ' || coalesce(md5(string_agg(row::text, '' ORDER BY row::text)), '') AS hash FROM parley.${name} row`,
    );
    found[name] = rows[0]?.hash ?? "";
  }
  return found;
}

/** Tables that the running cluster changes by itself, and uploads, to which nothing refers (docs/deploy.md). */
const unrelated = new Set([
  "leases",
  "lease_members",
  "ops",
  "blobs",
  "blob_chunks",
  "blob_uploads",
  "blob_upload_chunks",
]);

/**
 * What is answered without a grant, and gives nothing away: which MCP servers are switched, which hashes no checkpoint has, that no such call may
 * sample or was told, and that no such background command exists. docs/deploy.md names what a thief can do with these.
 */
const answeredWithoutGrant: readonly string[] = [
  "agent.sample",
  "store.checkpoint.unreferenced",
  "store.mcp.switches",
  "store.process.told",
  "tool.process.{replica}",
  "tool.processes",
];

test("gets nothing that belongs to a call, and changes nothing, with any request that it can form", async () => {
  const before = await content();
  const sent = telegram.sent.length;
  const granted: string[] = [];
  const reached = new Set<string>();
  const judge = (contract: RequestContract, payload: unknown, outcome: Outcome): void => {
    tries += 1;
    const permitted = contract.clients.includes("tool-runner");
    if (!permitted) {
      assert.equal(outcome.kind, "denied", `${contract.subject} ${JSON.stringify(payload)}`);
      return;
    }
    assert.notEqual(outcome.kind, "denied", contract.subject);
    if (outcome.kind !== "answered") return;
    assert.ok(!outcome.payload.includes(mark), `${contract.subject} returned ${outcome.payload}`);
    const reply = JSON.parse(outcome.payload) as { ok: boolean; error?: { code: string } };
    if (reply.ok) granted.push(contract.subject);
    if (reply.ok || reply.error?.code !== "INVALID_INPUT") reached.add(contract.subject);
  };
  for (const ids of sessions)
    await Promise.all(
      requests.flatMap((contract) => {
        const payloads = forgedPayloads(contract, ids, contract.clients.includes("tool-runner") ? 6 : 2);
        return payloads.flatMap((payload) =>
          subjectsOf(contract, ids).map(async (subject) =>
            judge(contract, payload, await thief.request(subject, JSON.stringify(payload), requestMs)),
          ),
        );
      }),
    );
  assert.ok(tries >= 500, `${tries} tries`);
  assert.deepEqual([...new Set(granted)].sort(), answeredWithoutGrant);
  assert.deepEqual(await content(), before);
  assert.equal(telegram.sent.length, sent);
  const mine = requests.filter((each) => each.clients.includes("tool-runner") && each.server === "store");
  const unreached = mine.filter(({ subject }) => !reached.has(subject)).map(({ subject }) => subject);
  // A payload that the contract refuses says nothing about the rights behind it.
  assert.deepEqual(unreached, []);
});

test("hears no call, no reply to another runner and no text of a session, with any subscription", async () => {
  const wide = [
    ">",
    `${namespace}.>`,
    "_INBOX.>",
    "$SYS.>",
    "$JS.API.>",
    ...roles.map((role) => `${inboxPrefix(role)}.>`),
  ];
  const subjects = [...new Set([...registry.map((each) => subjectOf(each, namespace)), ...wide])];
  for (const subject of subjects) thief.subscribe(subject);
  await thief.flushed();
  tries += subjects.length;
  const permitted = natsPermissions("tool-runner", namespace).subscribe;
  assert.deepEqual(
    subjects.filter((subject) => !thief.refusedSubscriptions.has(subject)).sort(),
    subjects.filter((subject) => permitted.includes(subject)).sort(),
  );
  await sendTexts("after");
  const heard = thief.heard.filter(({ payload }) => payload.includes(mark));
  assert.deepEqual(heard, []);
  // The replies to the runner that executed the calls arrive here too, and are sealed.
  assert.ok(thief.heard.some(({ subject }) => subject.startsWith(inboxPrefix("tool-runner"))));
});

test("publishes no event that reaches people or ends a call", async () => {
  const [before, sent] = [await content(), telegram.sent.length];
  const payload = JSON.stringify({ type: "text", text: mark, ids: sessions, state: "done" });
  for (const event of events)
    for (const ids of sessions)
      for (const subject of subjectsOf(event, ids)) {
        thief.publish(subject, payload);
        tries += 1;
      }
  await thief.flushed();
  const { rows } = await sql.query("SELECT FROM parley.steps WHERE kind = 'tool' AND state = 'running'");
  assert.equal(rows.length, 1);
  assert.deepEqual(await content(), before);
  assert.equal(telegram.sent.length, sent);
});

test("SECURITY.md names everything that the login of the gateways may request, which the same thief could use", () => {
  const table =
    /^### What the login of a gateway may request$([\s\S]*?)(?=^##|(?![\s\S]))/m.exec(read("SECURITY.md"))?.[1] ?? "";
  const patterns = [...table.matchAll(/`([a-z_.*{}-]+)`/g)].map(([, pattern = ""]) => pattern);
  const fits = (pattern: string, subject: string) =>
    pattern.endsWith("*") ? subject.startsWith(pattern.slice(0, -1)) : subject === pattern;
  const allowed = requests.filter((each) => each.clients.includes("channel-gateway")).map(({ subject }) => subject);
  const others = requests.filter((each) => !each.clients.includes("channel-gateway")).map(({ subject }) => subject);
  assert.deepEqual(
    allowed.filter((subject) => !patterns.some((pattern) => fits(pattern, subject))),
    [],
  );
  for (const pattern of patterns) {
    assert.ok(
      allowed.some((subject) => fits(pattern, subject)),
      pattern,
    );
    assert.deepEqual(
      others.filter((subject) => fits(pattern, subject)),
      [],
      `${pattern} names more than it may request`,
    );
  }
});
