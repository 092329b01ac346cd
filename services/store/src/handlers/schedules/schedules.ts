// Jobs: creating, changing, listing and removing. Firing is in fire.ts.
import { hash } from "node:crypto";
import {
  newId,
  routeOfKey,
  scheduleChanged,
  WireError,
  type InputOf,
  type Schedule,
  type store,
} from "@parley/contracts";
import { type Database, type PoolClient } from "../../db/database.ts";
import { jobOf, runColumns, runJoins, runOf, selectJobs, type JobRow, type RunRow } from "../../schedule/rows.ts";
import { InvalidScheduleError, nextDue, parseRecurrence, toText } from "../../schedule/recurrence.ts";
import { singleRow, runOperation } from "../../db/operation.ts";
import type { Handlers } from "../handler.ts";
import { assertBelowLimit, assertRareEnough, keyOfTurn, ownerOfTurn } from "./person.ts";

type Update = InputOf<typeof store.scheduleUpdate>;

/** Maximum encoded size of a page of the list. */
const pageBytes = 256 * 1024;

export const scheduleHandlers = {
  async scheduleCreate({ database, bus }, input) {
    const id = input.id ?? idOf(input.opId);
    const created = await runOperation<boolean>(
      database,
      { opId: input.opId, epoch: null },
      {
        name: "schedule_create",
        async run(client) {
          const now = await clock(client);
          const { sessionId, turnId, trust } = input.createdBy;
          const person = trust === "user" ? await ownerOfTurn(client, turnId ?? newId(), true) : null;
          if (person !== null) await assertBelowLimit(client, person.key, input.personLimit);
          const { schedule, due } = plan(input.schedule, input.timeZone, now, person !== null);
          checkTarget(input.target, input.profile);
          // A person's job answers where they created it.
          const deliverTo = person === null ? input.deliverTo : (person.replyTo ?? "nowhere");
          const route = input.inConversation === true ? await routeOf(client, sessionId) : null;
          const { rowCount } = await client.query(
            `INSERT INTO parley.schedules (id, name, schedule, anchor, time_zone, prompt, target, deliver_to, overlap, missed, after_run,
                                           max_runs, keep_runs, enabled, next_due, created_by, tainted, profile, person_key, person, person_route)
             VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20, $21) ON CONFLICT (id) DO NOTHING`,
            [
              id,
              storable(input.name),
              schedule,
              new Date(now),
              input.timeZone,
              JSON.stringify(input.prompt),
              person === null ? input.target : "own",
              deliverTo === null ? null : JSON.stringify(deliverTo),
              input.overlap,
              input.missed,
              input.afterRun,
              input.maxRuns,
              input.keepRuns,
              input.enabled,
              input.enabled ? due : null,
              JSON.stringify({ sessionId, turnId, trust }),
              input.tainted ?? false,
              person === null ? (input.profile ?? null) : person.profile,
              person?.key ?? null,
              person === null ? null : JSON.stringify(person.sender),
              person?.route ?? route,
            ],
          );
          return rowCount === 1 ? { result: true, memo: { id } } : { result: false };
        },
        replay: async () => true,
      },
    );
    bus.publish(scheduleChanged, {});
    return { created, job: await existing(database, id) };
  },

  async scheduleUpdate({ database, bus }, { opId, id, change, tainted, personOfTurn, personLimit }) {
    await runOperation<undefined>(
      database,
      { opId, epoch: null },
      {
        name: "schedule_update",
        async run(client) {
          const { rows } = await client.query<JobRow>("SELECT * FROM parley.schedules WHERE id = $1 FOR UPDATE", [id]);
          const before = rows[0];
          const key = await keyOfTurn(client, personOfTurn, true);
          if (before === undefined || (key !== null && before.person_key !== key)) throw unknown(id);
          if (before.person_key !== null) {
            checkPlace(change);
            const resumes = change.enabled === true && !before.enabled;
            if (resumes) await assertBelowLimit(client, before.person_key, personLimit);
          }
          checkTarget(change.target ?? before.target, change.profile === undefined ? before.profile : change.profile);
          const set = {
            ...columnsOf(change),
            ...(await planned(client, before, change)),
            ...taintAfter(change, tainted),
          };
          const names = Object.keys(set);
          await client.query(
            `UPDATE parley.schedules SET updated_at = now()${names.map((name, index) => `, ${name} = $${index + 2}`).join("")} WHERE id = $1`,
            [id, ...Object.values(set)],
          );
          return { result: undefined, memo: { id } };
        },
        replay: async () => undefined,
      },
    );
    bus.publish(scheduleChanged, {});
    return { job: await existing(database, id) };
  },

  async scheduleRemove({ database }, { id, personOfTurn }) {
    const { rowCount } = await database.query(
      "DELETE FROM parley.schedules WHERE id = $1 AND ($2::text IS NULL OR person_key = $2)",
      [id, await keyOfTurn(database, personOfTurn, false)],
    );
    return { removed: rowCount === 1 };
  },

  async scheduleGet({ database }, { id, runs: limit = 0, personOfTurn }) {
    const job = await find(database, id, await keyOfTurn(database, personOfTurn, false));
    if (job === null || limit === 0) return { job, runs: [] };
    const { rows } = await database.query<RunRow>(
      `SELECT ${runColumns} FROM parley.schedule_runs r ${runJoins} WHERE r.job_id = $1 ORDER BY r.due DESC LIMIT $2`,
      [job.id, limit],
    );
    return { job, runs: rows.map(runOf) };
  },

  async scheduleList({ database }, { all, after = "", limit, personOfTurn }) {
    const { rows } = await database.query<JobRow & { last_run: RunRow | null }>(
      `${selectJobs} WHERE s.id > $1 AND ($2 OR s.next_due IS NOT NULL) AND ($4::text IS NULL OR s.person_key = $4)
       ORDER BY s.id LIMIT $3 + 1`,
      [after, all, limit, await keyOfTurn(database, personOfTurn, false)],
    );
    const jobs: Schedule[] = [];
    let bytes = 0;
    for (const row of rows.slice(0, limit)) {
      const job = jobOf(row);
      bytes += Buffer.byteLength(JSON.stringify(job));
      if (jobs.length > 0 && bytes > pageBytes) break;
      jobs.push(job);
    }
    return { jobs, more: rows.length > jobs.length };
  },
} satisfies Partial<Handlers>;

/** A tainted turn taints the job; a person's new prompt clears the taint. */
function taintAfter({ prompt }: Update["change"], tainted = false): { tainted?: boolean } {
  if (tainted) return { tainted: true };
  return prompt === undefined ? {} : { tainted: false };
}

/** A profile has a session of its own. Throws INVALID_INPUT. */
function checkTarget(target: Schedule["target"], profile: string | null | undefined): void {
  if (target === "main" && typeof profile === "string")
    throw new WireError(
      "INVALID_INPUT",
      "target: a job with a profile runs in its own thread (own), not in the owner's",
    );
}

/** The route of a session; null: there is no such session. */
async function routeOf(client: PoolClient, sessionId: string | null): Promise<string | null> {
  const { rows } = await client.query<{ key: string }>("SELECT key FROM parley.sessions WHERE id = $1", [sessionId]);
  return rows[0] === undefined ? null : routeOfKey(rows[0].key);
}

/** A person's job runs and answers where they created it. Throws INVALID_INPUT. */
function checkPlace({ target, profile, deliverTo }: Update["change"]): void {
  const named = Object.entries({ target, profile, deliverTo }).find(([, value]) => value !== undefined);
  if (named !== undefined)
    throw new WireError(
      "INVALID_INPUT",
      `${named[0]}: the job of a person runs and answers in the conversation where they created it`,
    );
}

/** PostgreSQL's text type does not allow NUL. */
function storable(name: string): string {
  return name.replaceAll("\0", " ");
}

/** The columns that a change sets. */
function columnsOf({ prompt, deliverTo, ...change }: Update["change"]): Record<string, unknown> {
  const columns: Record<string, unknown> = {
    name: change.name === undefined ? undefined : storable(change.name),
    target: change.target,
    profile: change.profile,
    overlap: change.overlap,
    missed: change.missed,
    after_run: change.afterRun,
    max_runs: change.maxRuns,
    keep_runs: change.keepRuns,
    ...(prompt === undefined ? {} : { prompt: JSON.stringify(prompt) }),
    ...(deliverTo === undefined ? {} : { deliver_to: deliverTo === null ? null : JSON.stringify(deliverTo) }),
    // Of the owner's job: `checkPlace` refuses both for that of a person.
    ...(change.target === undefined && change.profile === undefined ? {} : { person_route: null }),
  };
  return Object.fromEntries(Object.entries(columns).filter(([, value]) => value !== undefined));
}

/**
 * The new due time, if the change affects it. Enabling a job again resets its run count; a limit that its runs have reached ends it.
 */
async function planned(client: PoolClient, before: JobRow, change: Update["change"]): Promise<Record<string, unknown>> {
  const { schedule, timeZone = before.time_zone, maxRuns = null } = change;
  const wanted = change.enabled ?? before.enabled;
  const again = wanted && !before.enabled;
  const enabled = wanted && (again || maxRuns === null || before.runs < maxRuns);
  if (schedule === undefined && timeZone === before.time_zone && !again) {
    return enabled ? {} : { enabled, next_due: null };
  }
  const now = await clock(client);
  const { schedule: text, due } = plan(schedule ?? before.schedule, timeZone, now, before.person_key !== null);
  return {
    schedule: text,
    time_zone: timeZone,
    anchor: new Date(now),
    enabled,
    next_due: enabled ? due : null,
    ...(again ? { runs: 0 } : {}),
  };
}

/** The normalized schedule and its first due time. `ofPerson`: the job belongs to somebody else than the owner. Throws INVALID_INPUT. */
function plan(
  schedule: string,
  timeZone: string,
  now: number,
  ofPerson: boolean,
): { schedule: string; due: Date | null } {
  try {
    const when = parseRecurrence(schedule, timeZone, now);
    if (ofPerson) assertRareEnough(when, timeZone, now);
    const due = nextDue(when, timeZone, now, now);
    return { schedule: toText(when), due: due === null ? null : new Date(due) };
  } catch (error) {
    if (error instanceof InvalidScheduleError) throw new WireError("INVALID_INPUT", error.message, { cause: error });
    throw error;
  }
}

/** By its id, or by its name if only one job has it. `key`: only among the jobs of this person. */
async function find(database: Database, id: string, key: string | null = null): Promise<Schedule | null> {
  const { rows } = await database.query<JobRow & { last_run: RunRow | null }>(
    `${selectJobs} WHERE (s.id = $1 OR s.name = $1) AND ($2::text IS NULL OR s.person_key = $2) ORDER BY s.id = $1 DESC LIMIT 2`,
    [id, key],
  );
  const [first, second] = rows;
  const clear = first !== undefined && (first.id === id || second === undefined);
  return clear ? jobOf(first) : null;
}

async function existing(database: Database, id: string): Promise<Schedule> {
  const job = await find(database, id);
  if (job === null) throw unknown(id);
  return job;
}

/** Milliseconds since 1970, by the database's clock: all due times are measured with it. */
async function clock(client: PoolClient): Promise<number> {
  const { rows } = await client.query<{ now: string }>("SELECT clock_timestamp() AS now");
  return Date.parse(singleRow(rows).now);
}

/** Short, so that people can type it; deterministic per operation. */
function idOf(opId: string): string {
  return `job-${BigInt(`0x${hash("sha256", opId, "hex").slice(0, 12)}`).toString(36)}`;
}

export function unknown(id: string): WireError {
  return new WireError("NOT_FOUND", `no job ${id}`);
}
