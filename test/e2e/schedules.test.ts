// Schedules on a whole cluster: jobs and heartbeats become turns, and a due time becomes one row, also when Redis or a leader is lost.
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { store, type Schedule } from "@parley/contracts";
import { apiClient, Cleanup, startTestCluster, type ApiClient, type TestCluster } from "@parley/testing";
import { loadSize } from "@parley/testing/property-runs";
import { pollUntil } from "@parley/testing/until";
import { Client } from "pg";
import { z } from "zod";
import { redisCommand } from "../chaos/faults.ts";
import {
  beat,
  beatThatFires,
  call,
  createJob,
  finishedRuns,
  JobAnswer,
  runJob,
  writeDocument,
} from "./support/jobs.ts";

describe("jobs and heartbeats", () => {
  const cleanup = new Cleanup();
  let cluster: TestCluster;
  let client: ApiClient;

  before(async () => {
    cluster = await startTestCluster(cleanup, { processes: [], settings: '[permissions]\nallow = ["cron"]\n' });
    client = apiClient(cluster.httpUrls, cluster.token);
  });
  after(() => cleanup[Symbol.asyncDispose]());

  const create = (body: Partial<Schedule>) => createJob(client, body);
  const finished = (id: string, count = 1) => finishedRuns(client, id, count);

  test("runs a one-time job at its time and disables it with its history", async () => {
    const job = await create({ schedule: "at +1s", prompt: "say: it is time", target: "own" });
    const [run] = await finished(job.id);
    assert.equal(run?.turn?.text, "it is time");
    const lateMs = Date.parse(run.at) - Date.parse(run.due);
    assert.ok(lateMs >= 0 && lateMs < 2_000, `${lateMs} ms late: the moment was not armed`);
    const { job: over } = await call(client, `/api/schedules/${job.id}`, JobAnswer);
    assert.deepEqual([over.enabled, over.nextDue, over.runs], [false, null, 1]);
  });

  test("runs a repeated job once at each due time, until its runs are used up", async () => {
    const job = await create({
      schedule: "every 1s",
      prompt: "say: tick",
      target: "own",
      maxRuns: 3,
      overlap: "queue",
    });
    const runs = await finished(job.id, 3);
    const dues = runs.map((run) => Date.parse(run.due)).sort((a, b) => a - b);
    assert.deepEqual(
      dues.map((due) => due - (dues[0] ?? 0)),
      [0, 1_000, 2_000],
    );
  });

  // design: 000.31
  test("creates a job once by the agent's tool and runs it; a job cannot create jobs", async () => {
    const added = await client.ask(
      'tool: cron {"action":"add","name":"tea","at":"+1s","message":"tool: cron {\\"action\\":\\"add\\",\\"schedule\\":\\"every 1m\\",\\"prompt\\":\\"more\\"}\\nthen\\nsay: the tea"}\nthen\nsay: noted',
    );
    assert.equal(added, "noted");
    const { job } = await call(client, "/api/schedules/tea", JobAnswer);
    assert.deepEqual([job.createdBy.trust, job.target], ["owner", "main"]);
    const [run] = await finished(job.id);
    assert.equal(run?.turn?.text, "the tea");
    const { jobs } = await call(client, "/api/schedules?all=true", store.scheduleList.output);
    assert.ok(!jobs.some(({ prompt }) => prompt === "more"), "a job has made a job");
  });

  test("names the field and gives an example when API or tool get a wrong schedule or account", async () => {
    const response = await client.fetch("/api/schedules", {
      method: "POST",
      body: JSON.stringify({ schedule: "sometimes", prompt: "x" }),
    });
    assert.equal(response.status, 400);
    assert.match(await response.text(), /schedule: .*every 30m/);
    const deliverTo = { channel: "telegram", account: "nobody", conversation: "42" };
    const unheard = await client.fetch("/api/schedules", {
      method: "POST",
      body: JSON.stringify({ schedule: "every 1h", prompt: "x", deliverTo }),
    });
    assert.equal(unheard.status, 404);
    assert.match(
      await unheard.text(),
      /account telegram:nobody is not configured; add it with .* as \[channels\.telegram\.nobody\]/,
    );
    const { sessionId } = await call(client, "/api/messages", z.object({ sessionId: z.string() }), {
      text: 'tool: cron {"action":"add","schedule":"sometimes","prompt":"x"}\nthen\nsay: tried',
      conversation: "wrong",
    });
    const refusal = await pollUntil(async () => {
      const response = await client.fetch(`/api/sessions/${sessionId}/messages?limit=1000`);
      return /Failed: schedule: .{20}/.exec(await response.text())?.[0];
    }, "the tool's refusal");
    assert.match(refusal, /sometimes/);
  });

  // design: 004.26
  test("runs a job immediately by hand, skips it while paused, and deletes it when removed", async () => {
    const job = await create({ schedule: "0 9 * * *", prompt: "say: by hand", name: "hand", target: "own" });
    const messageId = await runJob(client, "hand");
    assert.equal((await client.settled(messageId)).text, "by hand");
    const { job: paused } = await call(client, "/api/schedules/hand/update", JobAnswer, { enabled: false });
    assert.deepEqual([paused.enabled, paused.nextDue, paused.lastRun?.manual], [false, null, true]);
    await call(client, `/api/schedules/${job.id}/remove`, JobAnswer, {});
    assert.equal((await client.fetch(`/api/schedules/${job.id}`)).status, 404);
  });

  // design: 000.24, 004.25, switch.17
  test("skips a heartbeat when HEARTBEAT.md is empty, and sends an OK to nobody", async () => {
    const write = (content: string) => writeDocument(client, { path: "HEARTBEAT.md", content });
    await pollUntil(async () => ((await beat(client)).outcome === "empty" ? true : undefined), "a leader that answers");
    await write("# Nothing\n- [ ]\n");
    assert.equal((await beat(client)).outcome, "empty");

    await query(
      cluster,
      `UPDATE parley.inbox SET reply_to = '{"channel":"telegram","account":"main","conversation":"7"}' WHERE id = (
         SELECT id FROM parley.inbox WHERE trust = 'owner' ORDER BY received_at DESC LIMIT 1)`,
    );
    await write("say: HEARTBEAT_OK\n");
    const quiet = await beatThatFires(client);
    assert.equal((await client.settled(quiet)).text, "HEARTBEAT_OK");
    await write("say: the plants are dry\n");
    const loud = await beatThatFires(client);
    assert.equal((await client.settled(loud)).text, "the plants are dry");
    const sent = await query<{ body: string; conversation: string }>(
      cluster,
      "SELECT o.body, o.conversation FROM parley.outbox o JOIN parley.inbox i ON i.turn_id = o.turn_id WHERE i.account = 'heartbeat'",
    );
    assert.deepEqual(sent, [{ body: JSON.stringify("the plants are dry"), conversation: "7" }]);
  });

  // design: switch.16
  test("delivers an API job to the owner's newest conversation, or to nobody when so configured", async () => {
    await query(
      cluster,
      `UPDATE parley.inbox SET reply_to = '{"channel":"telegram","account":"main","conversation":"8"}' WHERE id = (
         SELECT id FROM parley.inbox WHERE trust = 'owner' ORDER BY received_at DESC LIMIT 1)`,
    );
    const job = { schedule: "at +1s", target: "own" } as const;
    const loud = await create({ ...job, prompt: "say: the cake is done" });
    const silent = await create({ ...job, prompt: "say: the cat is in", deliverTo: "nowhere" });
    await Promise.all([finished(loud.id), finished(silent.id)]);
    const sent = await query<{ body: string; conversation: string }>(
      cluster,
      "SELECT o.body, o.conversation FROM parley.outbox o JOIN parley.inbox i ON i.turn_id = o.turn_id WHERE i.account = 'cron' AND o.conversation = '8'",
    );
    assert.deepEqual(sent, [{ body: JSON.stringify("the cake is done"), conversation: "8" }]);
  });
});

async function query<Row>(cluster: TestCluster, text: string, values: unknown[] = []): Promise<Row[]> {
  const client = new Client({ connectionString: cluster.databaseUrl });
  await client.connect();
  try {
    return (await client.query(text, values)).rows as Row[];
  } finally {
    await client.end();
  }
}

const jobs = loadSize({ usual: 2_000, full: 10_000 });

/** Jobs with one session each, all due at the same moment, a few seconds from now. */
async function makeJobs(cluster: TestCluster, client: ApiClient): Promise<Date> {
  const template = (
    await call(client, "/api/schedules", JobAnswer, { schedule: "every 1h", prompt: "say: done", target: "own" })
  ).job;
  const [row] = await query<{ due: Date }>(
    cluster,
    `WITH moment AS (SELECT date_trunc('second', clock_timestamp()) + interval '4 seconds' AS due)
     INSERT INTO parley.schedules (id, name, schedule, anchor, time_zone, prompt, target, overlap, missed, after_run, keep_runs, enabled, next_due, created_by)
     SELECT 'mass-' || n, 'mass', s.schedule, moment.due - interval '1 hour', s.time_zone, s.prompt, 'own', 'skip', 'run_once', 'disable', 5, true, moment.due, s.created_by
     FROM parley.schedules s, moment, generate_series(1, $2::int) AS n WHERE s.id = $1 RETURNING next_due AS due`,
    [template.id, jobs],
  );
  assert.ok(row !== undefined);
  return row.due;
}

/** Rows of the inbox by job and due time, of these jobs only. */
async function firedOf(cluster: TestCluster) {
  const [row] = await query<{ rows: number; times: number }>(
    cluster,
    `SELECT count(*)::int AS rows, count(DISTINCT external_id)::int AS times FROM parley.inbox
     WHERE channel = 'internal' AND account = 'cron' AND external_id LIKE 'cron:mass-%'`,
  );
  return row ?? { rows: 0, times: 0 };
}

/** Deletes everything in Redis. */
const wipe = (cluster: TestCluster) => redisCommand(cluster.redisAdminUrl, "FLUSHALL");

for (const killed of [false, true]) {
  test(`${jobs} simultaneous jobs create one row each when Redis is wiped${killed ? " and the leader killed" : ""}`, async () => {
    await using cleanup = new Cleanup();
    const cluster = await startTestCluster(cleanup, {
      processes: ["agent-core"],
      replicas: { "agent-core": killed ? 2 : 1 },
      settings: "[agent]\nmax_concurrent_turns = 4\n",
      env: { all: { PARLEY_LOG_LEVEL: "warn" } },
    });
    const client = apiClient(cluster.httpUrls, cluster.token);
    const due = await makeJobs(cluster, client);
    // Armed, and deleted before the jobs are due.
    await wipe(cluster);
    const begun = await pollUntil(async () => {
      const seen = await firedOf(cluster);
      return seen.rows > 0 ? seen : undefined;
    }, "the first of them");
    assert.ok(begun.rows < jobs, "all of them had been fired before Redis was wiped again");
    await wipe(cluster);
    if (killed) await cluster.kill("agent-core", await leaderOf(cluster), "SIGKILL");
    const all = await pollUntil(async () => {
      const seen = await firedOf(cluster);
      return seen.rows >= jobs ? seen : undefined;
    }, `all of them (${begun.rows} at first)`);
    assert.deepEqual(all, { rows: jobs, times: jobs });
    const [counts] = await query<{ runs: number; due: number; next: number }>(
      cluster,
      `SELECT (SELECT count(*)::int FROM parley.schedule_runs WHERE job_id LIKE 'mass-%' AND outcome = 'fired' AND due = $1) AS runs,
              count(*)::int AS due, count(*) FILTER (WHERE next_due = $1::timestamptz + interval '1 hour' AND runs = 1)::int AS next
       FROM parley.schedules WHERE id LIKE 'mass-%'`,
      [due],
    );
    assert.deepEqual(counts, { runs: jobs, due: jobs, next: jobs });
  });
}

/** The number of the leading replica. */
async function leaderOf(cluster: TestCluster): Promise<number> {
  const [row] = await query<{ holder: string }>(
    cluster,
    "SELECT holder FROM parley.leadership WHERE name = 'agent-core'",
  );
  const number = /^agent-core-(\d+)/.exec(row?.holder ?? "")?.[1];
  assert.ok(number !== undefined, `no leader in ${JSON.stringify(row)}`);
  return Number(number);
}
