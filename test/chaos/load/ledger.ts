// What the database and the workspace say about the messages of a scene: doubled ones, writes of former leaders, takeovers, and the
// longest time in which no message was accepted.
import { staleWrites } from "../invariants.ts";
import type { Sample } from "./clients.ts";
import type { LoadCluster } from "./run.ts";

export interface Ledger {
  doubled: string[];
  /** Commands that are recorded as done and did not run. */
  lostEffects: string[];
  staleWrites: number;
  /** For each new leader: milliseconds from the last model step of the former leader to its own first one. A tool step gets the epoch of each leader that claims it. */
  takeoversMs: number[];
  /** Milliseconds between two stored messages. */
  longestGapMs: number;
}

type Accounted = Pick<LoadCluster, "query" | "telegram" | "effects">;

/** The time of the database, for `since` and `until`. */
export async function databaseTime({ query }: Pick<Accounted, "query">): Promise<Date> {
  const [row] = await query<{ now: Date }>("SELECT clock_timestamp() AS now");
  if (row === undefined) throw new Error("the database returned no time");
  return row.now;
}

/** Accounts for the messages of a scene, which have all been answered. */
export async function ledger(
  cluster: Accounted,
  samples: readonly Sample[],
  since: Date,
  until: Date,
): Promise<Ledger> {
  const { doubled, lostEffects } = await effectProblems(
    cluster,
    samples.filter(({ hasEffect }) => hasEffect),
  );
  return {
    doubled: [...(await doubledTexts(cluster, samples)), ...doubled],
    lostEffects,
    staleWrites: await staleWrites(cluster),
    takeoversMs: await takeovers(cluster, since, until),
    longestGapMs: await longestGap(cluster, since, until),
  };
}

/** Messages or answers that are in a log, or were sent, more than once. */
async function doubledTexts({ query, telegram }: Accounted, samples: readonly Sample[]): Promise<string[]> {
  const rows = await query<{ role: string; text: string; n: number }>(
    `SELECT role, text, count(*)::int AS n FROM (
       SELECT m.role, substring(part ->> 'text' FROM 'load-[0-9]+-[0-9a-f]{8}') AS text
       FROM parley.messages m, jsonb_array_elements(m.parts::jsonb) part
       WHERE m.role IN ('user', 'assistant') AND part ->> 'type' = 'text') found
     WHERE text IS NOT NULL GROUP BY role, text HAVING count(*) > 1`,
  );
  const ids = new Set(samples.map(({ id }) => id));
  const sent = new Map<string, number>();
  for (const { text } of telegram?.sent ?? []) sent.set(text, (sent.get(text) ?? 0) + 1);
  return [
    ...rows.filter(({ text }) => ids.has(text)).map(({ role, text, n }) => `${text}: ${n} ${role} messages`),
    ...[...sent]
      .filter(([text, times]) => times > 1 && ids.has(text))
      .map(([text, times]) => `${text}: sent ${times} times`),
  ];
}

async function effectProblems(
  { query, effects }: Accounted,
  samples: readonly Sample[],
): Promise<{ doubled: string[]; lostEffects: string[] }> {
  const rows = await query<{ id: string; state: string }>(
    `SELECT substring(input FROM 'effects/(load-[0-9]+-[0-9a-f]{8})') AS id, state FROM parley.steps WHERE kind = 'tool'`,
  );
  const states = new Map(rows.map(({ id, state }) => [id, state]));
  const doubled: string[] = [];
  const lostEffects: string[] = [];
  const counts = await effects();
  for (const { id } of samples) {
    const times = counts.get(id) ?? 0;
    if (times > 1) doubled.push(`${id}: its command ran ${times} times`);
    if (states.get(id) === "done" && times === 0)
      lostEffects.push(`${id}: its command is recorded as done and did not run`);
  }
  return { doubled, lostEffects };
}

async function takeovers({ query }: Accounted, since: Date, until: Date): Promise<number[]> {
  const rows = await query<{ ms: number | null }>(
    `SELECT extract(epoch FROM
       (SELECT min(created_at) FROM parley.steps WHERE epoch = l.epoch AND kind = 'model')
       - (SELECT max(created_at) FROM parley.steps WHERE epoch < l.epoch AND kind = 'model'))::float * 1000 AS ms
     FROM parley.leadership_log l WHERE l.acquired_at BETWEEN $1 AND $2 ORDER BY l.epoch`,
    [since, until],
  );
  return rows.flatMap(({ ms }) => (ms === null ? [] : [Math.round(ms)]));
}

/** Also the time that began before `since`, or ends after `until`. */
async function longestGap({ query }: Accounted, since: Date, until: Date): Promise<number> {
  const [row] = await query<{ ms: number | null }>(
    `SELECT extract(epoch FROM max(received_at - previous))::float * 1000 AS ms FROM (
       SELECT received_at, lag(received_at) OVER (ORDER BY received_at) AS previous
       FROM parley.inbox WHERE received_at > $1::timestamptz - interval '1 minute') pairs
     WHERE received_at > $1 AND previous < $2`,
    [since, until],
  );
  return Math.round(row?.ms ?? 0);
}
