// Fires due jobs: the transaction that computes the next due time also turns the due time into input or records why not. So each due
// time becomes at most one inbox row, regardless of crashes and retries.
import { faultPoint } from "@parley/chassis";
import {
  mainSessionKey,
  WireError,
  type OutputOf,
  type ReplyAddress,
  type Schedule,
  type Sender,
  type store,
} from "@parley/contracts";
import { omitUndefined } from "@parley/kit";
import { type PoolClient } from "../../db/database.ts";
import { decideRun, type RunDecision } from "../../schedule/decide-run.ts";
import { senderOf } from "../../db/mappers.ts";
import { jobColumns, personOf, type JobRow } from "../../schedule/rows.ts";
import { fromText } from "../../schedule/recurrence.ts";
import { singleRow, runOperation } from "../../db/operation.ts";
import { enqueueSystemInput, type SystemInput } from "../inbox/system-input.ts";
import { ownerAddress } from "../outbox/owner-address.ts";
import { publishReady, type ReadyHint } from "../turns/notify.ts";
import { admittedJobs, keyOfTurn } from "./person.ts";
import { unknown } from "./schedules.ts";
import type { Handlers } from "../handler.ts";

type Counts = OutputOf<typeof store.scheduleFire>;

/** Maximum upcoming due times in a reply. */
const maxUpcoming = 32;

/** The driver does not convert times inside JSON. */
interface DueJson {
  id: string;
  due: string;
  person: string | null;
}

interface DueRow extends JobRow {
  busy: boolean;
  now: string;
}

function decisionOf(row: DueRow, admitted: boolean): RunDecision {
  if (!admitted) return { outcome: "skipped", reason: noLongerAdmitted, runs: row.runs, next: null };
  const now = Date.parse(row.now);
  return decideRun({
    when: fromText(row.schedule),
    timeZone: row.time_zone,
    overlap: row.overlap,
    missed: row.missed,
    maxRuns: row.max_runs,
    runs: row.runs,
    anchor: Date.parse(row.anchor),
    due: row.next_due === null ? now : Date.parse(row.next_due),
    now,
    busy: row.busy,
  });
}

const noLongerAdmitted = "the person who created the job is no longer let in";

interface Settled {
  row: JobRow;
  due: string;
  decision: RunDecision;
  inboxId: string | null;
}

async function settle(client: PoolClient, settled: readonly Settled[]): Promise<void> {
  await client.query(
    `INSERT INTO parley.schedule_runs (job_id, due, outcome, reason, inbox_id)
     SELECT * FROM unnest($1::text[], $2::timestamptz[], $3::text[], $4::text[], $5::uuid[]) ON CONFLICT (job_id, due) DO NOTHING`,
    [
      settled.map(({ row }) => row.id),
      settled.map((each) => each.due),
      settled.map(({ decision }) => decision.outcome),
      settled.map(({ decision }) => decision.reason),
      settled.map(({ inboxId }) => inboxId),
    ],
  );
  await client.query(
    `UPDATE parley.schedules s SET next_due = d.next, last_due = d.due, runs = d.runs,
       last_inbox_id = coalesce(d.inbox_id, s.last_inbox_id), enabled = s.enabled AND d.next IS NOT NULL
     FROM unnest($1::text[], $2::timestamptz[], $3::timestamptz[], $4::int[], $5::uuid[]) AS d(id, due, next, runs, inbox_id)
     WHERE s.id = d.id`,
    [
      settled.map(({ row }) => row.id),
      settled.map((each) => each.due),
      settled.map(({ decision: { next } }) => (next === null ? null : new Date(next))),
      settled.map(({ decision }) => decision.runs),
      settled.map(({ inboxId }) => inboxId),
    ],
  );
  const over = settled.filter(
    ({ row, decision }) => decision.next === null && row.after_run === "delete" && decision.reason !== noLongerAdmitted,
  );
  if (over.length > 0) {
    await client.query("DELETE FROM parley.schedules WHERE id = ANY ($1)", [over.map(({ row }) => row.id)]);
  }
  await trim(
    client,
    settled.map(({ row }) => row.id),
  );
}

/** Trims histories to `keep_runs` due times. */
async function trim(client: PoolClient, ids: readonly string[]): Promise<void> {
  await client.query(
    `DELETE FROM parley.schedule_runs r USING parley.schedules s
     WHERE r.job_id = ANY ($1) AND s.id = r.job_id
       AND r.due < (SELECT k.due FROM parley.schedule_runs k WHERE k.job_id = s.id ORDER BY k.due DESC OFFSET s.keep_runs - 1 LIMIT 1)`,
    [ids],
  );
}

export const fireHandlers = {
  async scheduleRun({ database, bus }, { opId, id, personOfTurn, admission }) {
    const wakes: ReadyHint[] = [];
    const output = await runOperation<OutputOf<typeof store.scheduleRun>>(
      database,
      { opId, epoch: null },
      {
        name: "schedule_run",
        async run(client) {
          const { rows } = await client.query<DueRow>(
            `SELECT ${jobColumns}, clock_timestamp() AS now FROM parley.schedules s WHERE s.id = $1 FOR UPDATE`,
            [id],
          );
          const job = rows[0];
          const key = await keyOfTurn(client, personOfTurn, true);
          if (job === undefined || (key !== null && job.person_key !== key)) throw unknown(id);
          const admitted = await admittedJobs(client, [job], new Map([[id, admission]]));
          if (!admitted.has(id)) throw new WireError("INVALID_INPUT", noLongerAdmitted);
          const input = inputOf(job, `cron:${id}:run:${opId}`, "run by hand", await ownerAddress(client));
          const { inboxId, sessionId } = singleRow(await enqueueSystemInput(client, [input], wakes));
          await client.query(
            "INSERT INTO parley.schedule_runs (job_id, due, manual, outcome, inbox_id) VALUES ($1, clock_timestamp(), true, 'fired', $2)",
            [id, inboxId],
          );
          await client.query("UPDATE parley.schedules SET last_inbox_id = $2 WHERE id = $1", [id, inboxId]);
          await trim(client, [id]);
          const result = { inboxId: inboxId ?? "", sessionId };
          return { result, memo: result };
        },
      },
    );
    publishReady(bus, wakes);
    return output;
  },

  async scheduleDue({ database }, { limit, horizonMs }) {
    // One clock reading separates due times from upcoming ones.
    const { rows } = await database.query<{ now: string; due: DueJson[] | null; upcoming: string[] | null }>({
      name: "schedule-due",
      text: `
        SELECT clock.now,
          (SELECT json_agg(json_build_object('id', id, 'due', next_due, 'person', person)) FROM (
             SELECT id, next_due, person FROM parley.schedules WHERE next_due <= clock.now ORDER BY next_due, id LIMIT $1
           ) AS jobs) AS due,
          (SELECT json_agg(next_due) FROM (
             SELECT DISTINCT next_due FROM parley.schedules
             WHERE next_due > clock.now AND next_due <= clock.now + $2 * interval '1 millisecond'
             ORDER BY next_due LIMIT ${maxUpcoming}
           ) AS moments) AS upcoming
        FROM (SELECT statement_timestamp() AS now) AS clock`,
      values: [limit, horizonMs],
    });
    const { now, due: jobs, upcoming } = singleRow(rows);
    return {
      now,
      due: (jobs ?? []).map(({ id, due, person }) => ({
        id,
        due: new Date(due).toISOString(),
        ...omitUndefined({ person: personOf(person) }),
      })),
      upcoming: (upcoming ?? []).map((moment) => new Date(moment).toISOString()),
    };
  },

  async scheduleFire({ database, bus }, input) {
    const wakes: ReadyHint[] = [];
    const counts = await runOperation<Counts>(database, input, {
      name: "schedule_fire",
      async run(client) {
        const { rows } = await client.query<DueRow>(
          `SELECT ${jobColumns}, clock_timestamp() AS now,
             EXISTS (SELECT FROM parley.inbox i WHERE i.id = s.last_inbox_id AND i.state IN ('queued', 'claimed')) AS busy
           FROM parley.schedules s JOIN unnest($1::text[], $2::timestamptz[]) AS f(id, due) ON s.id = f.id AND s.next_due = f.due
           WHERE s.next_due <= clock_timestamp() ORDER BY s.id FOR UPDATE OF s`,
          [input.due.map(({ id }) => id), input.due.map((each) => each.due)],
        );
        const admissions = new Map(input.due.map(({ id, admission }) => [id, admission]));
        const admitted = await admittedJobs(client, rows, admissions);
        const decided = rows.map((row) => ({
          row,
          due: row.next_due ?? row.now,
          decision: decisionOf(row, admitted.has(row.id)),
        }));
        const fired = decided.filter(({ decision }) => decision.outcome === "fired");
        const owner = await ownerAddress(client);
        const queued = await enqueueSystemInput(
          client,
          fired.map(({ row, due: at }) => inputOf(row, `cron:${row.id}:${at}`, `due ${at}`, owner)),
          wakes,
        );
        const inboxIds = new Map(fired.map(({ row }, index) => [row.id, queued[index]?.inboxId ?? null]));
        await settle(
          client,
          decided.map((each) => ({ ...each, inboxId: inboxIds.get(each.row.id) ?? null })),
        );
        const result = countsOf(decided, input.due.length);
        return { result, memo: result };
      },
    });
    faultPoint("store.before_schedule_wakes");
    publishReady(bus, wakes);
    return counts;
  },
} satisfies Partial<Handlers>;

/** People may have asked for the job long ago: the model must neither wait for them nor greet them. */
const autonomousText =
  "Nobody wrote this message, and nobody may be there to answer. Do what the job says with your tools, without asking questions, and answer with what people should be told.";

function inputOf(job: JobRow, externalId: string, why: string, owner: ReplyAddress | null): SystemInput {
  return {
    route: routeOf(job),
    profile: job.profile,
    account: "cron",
    externalId,
    text: `[scheduled job "${job.name.replaceAll(/["\]\n]/g, " ")}" (${job.id}), ${why}]\n\n${autonomousText}\n\n${JSON.parse(job.prompt) as string}`,
    sender: { ...senderOfJob(job), ...(job.tainted ? { tainted: true } : {}) },
    replyTo: answerTo(job, owner),
  };
}

function routeOf(job: JobRow): string {
  if (job.person_route !== null) return job.person_route;
  if (job.target === "main") return mainSessionKey;
  return job.profile === null ? `cron:${job.id}` : `cron:${job.id}@${job.profile}`;
}

/** A person's job has their identity and never more than a user's rights. */
function senderOfJob(job: JobRow): Sender {
  if (job.person !== null) {
    const { channel, account, conversation, contact, direct } = senderOf(job.person);
    const place = { channel, account, conversation, contact };
    return { ...place, role: "user", origin: "cron", ...(direct === undefined ? {} : { direct }) };
  }
  return {
    channel: "internal",
    account: "cron",
    conversation: `cron:${job.id}`,
    contact: { id: job.id, name: job.name },
    role: "owner",
    origin: "cron",
  };
}

function answerTo(job: JobRow, owner: ReplyAddress | null): ReplyAddress | null {
  const target = JSON.parse(job.deliver_to ?? "null") as Schedule["deliverTo"];
  return target === "nowhere" ? null : (target ?? owner);
}

function countsOf(decided: readonly { decision: RunDecision }[], requested: number): Counts {
  const counts = { fired: 0, skipped: 0, missed: 0, failed: 0, gone: requested - decided.length };
  for (const { decision } of decided) counts[decision.outcome] += 1;
  return counts;
}
