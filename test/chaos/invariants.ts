// Checks the invariants I1 to I6 over a whole run, from the database and from the requests that the fake model received.
import type { Chaos } from "./setup.ts";

export interface Violation {
  invariant: "I1" | "I2" | "I3" | "I4" | "I5" | "I6";
  what: string;
}

const checks: { invariant: Violation["invariant"]; what: string; sql: string }[] = [
  {
    invariant: "I1",
    what: "inbox rows that did not end",
    sql: "SELECT id FROM parley.inbox WHERE state NOT IN ('done', 'dead', 'cancelled')",
  },
  {
    invariant: "I1",
    what: "turns that ended without anything to say",
    sql: "SELECT id FROM parley.turns WHERE state <> 'running' AND (answer IS NULL OR exit_reason IS NULL)",
  },
  { invariant: "I1", what: "turns still running", sql: "SELECT id FROM parley.turns WHERE state = 'running'" },
  {
    // A model step is written once and never changed: its transaction is the one that wrote it.
    invariant: "I2",
    what: "writes of an earlier epoch committed after a takeover",
    sql: `SELECT s.turn_id FROM parley.steps s JOIN parley.leadership_log l ON l.epoch > s.epoch
          WHERE s.kind = 'model' AND pg_xact_commit_timestamp(s.xmin) > l.acquired_at`,
  },
  {
    invariant: "I3",
    what: "tools of class once started more than once",
    sql: "SELECT turn_id, n FROM parley.steps WHERE class = 'once' AND starts > 1",
  },
  {
    invariant: "I3",
    what: "tool calls run although a person had not said yes",
    sql: `SELECT s.turn_id, s.n FROM parley.steps s JOIN parley.approvals a ON a.turn_id = s.turn_id AND a.n = s.n
          WHERE s.state = 'done' GROUP BY s.turn_id, s.n HAVING bool_and(a.state <> 'allowed')`,
  },
  {
    invariant: "I3",
    what: "settled tool steps without exactly one result in the history",
    sql: `SELECT st.turn_id, st.n FROM parley.steps st
          LEFT JOIN parley.messages m ON m.turn_id = st.turn_id AND m.role = 'tool' AND m.parts LIKE '%"id":"' || st.call_id || '"%'
          WHERE st.kind = 'tool' GROUP BY st.turn_id, st.n HAVING count(m.seq) <> 1`,
  },
  {
    invariant: "I4",
    what: "a conversation's texts settled out of order",
    sql: `SELECT a.id FROM parley.outbox a JOIN parley.outbox b
          ON a.channel = b.channel AND a.account = b.account AND a.conversation = b.conversation AND a.id < b.id
          WHERE a.state = 'sent' AND b.state = 'sent' AND a.settled_at > b.settled_at`,
  },
  {
    invariant: "I4",
    what: "gaps or doubles in a session's log",
    sql: `SELECT s.id FROM parley.sessions s
          WHERE s.seq <> (SELECT count(*) FROM parley.messages m WHERE m.session_id = s.id)
                       + (SELECT count(*) FROM parley.events e WHERE e.session_id = s.id)`,
  },
];

/** All violations. `repeats` is the number of model calls that the injected faults may have repeated. */
export async function violations(
  chaos: Pick<Chaos, "query"> & {
    /** Without it, the requests to the model and the texts sent are not checked. */
    cluster?: Pick<Chaos["cluster"], "strict">;
    telegram?: Pick<Chaos["telegram"], "sent"> | undefined;
  },
  repeats: number,
): Promise<Violation[]> {
  const found: Violation[] = [];
  for (const { invariant, what, sql } of checks) {
    const rows = await chaos.query(sql);
    if (rows.length > 0) found.push({ invariant, what: `${rows.length} ${what}: ${JSON.stringify(rows.slice(0, 3))}` });
  }
  for (const refusal of chaos.cluster?.strict?.refusals ?? [])
    found.push({ invariant: "I5", what: `the real API would have refused: ${refusal}` });
  // Checked again over the whole run, because some results arrive long after their own trial.
  const said = new Map<string, number>();
  for (const { text } of chaos.telegram?.sent ?? []) said.set(text, (said.get(text) ?? 0) + 1);
  for (const [text, times] of said)
    if (times > 1) found.push({ invariant: "I4", what: `"${text}" was sent ${times} times` });
  const steps = await chaos.query<{ n: number }>("SELECT count(*)::int AS n FROM parley.steps WHERE kind = 'model'");
  const calls = chaos.cluster?.strict?.requests.length ?? 0;
  const summaries = await chaos.query<{ n: number }>(
    "SELECT count(*)::int AS n FROM parley.events WHERE type = 'compacted'",
  );
  const allowed = (steps[0]?.n ?? 0) + (summaries[0]?.n ?? 0) + repeats;
  if (calls > allowed) found.push({ invariant: "I6", what: `${calls} model calls where ${allowed} are explained` });
  return found;
}

/** Writes that an earlier leader committed after a takeover. */
export async function staleWrites(chaos: Pick<Chaos, "query">): Promise<number> {
  const check = checks.find((each) => each.invariant === "I2");
  return check === undefined ? 0 : (await chaos.query(check.sql)).length;
}
