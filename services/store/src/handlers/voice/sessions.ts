// Voice sessions: requested by people, started and ended by the leader. utterances.ts stores their utterances.
import {
  newId,
  voiceChanged,
  type InputOf,
  type OutputOf,
  type ReplyAddress,
  type store,
  type VoiceSession,
} from "@parley/contracts";
import { withClient, type PoolClient } from "../../db/database.ts";
import { addressOf, senderOf } from "../../db/mappers.ts";
import { runOperation, runTransaction } from "../../db/operation.ts";
import { announceOutgoing, enqueueStandalone } from "../outbox/enqueue.ts";
import type { Handlers } from "../handler.ts";

/** Ended sessions per route that are kept for display. */
const keptPerRoute = 5;
/** How long the notice about the end may wait for delivery. */
const tellExpiresMs = 60 * 60 * 1_000;
/** Maximum characters of a displayed event. */
const shownCharacters = 2_000;

interface VoiceRow {
  id: string;
  route: string;
  session_id: string | null;
  source: string;
  state: VoiceSession["state"];
  sender: string;
  reply_to: string | null;
  claimed_epoch: number | null;
  server: string | null;
  stt_session_id: string | null;
  runner: string | null;
  since_seq: number;
  utterances: number;
  problem: string | null;
  started_at: string;
  changed_at: string;
}

const select = `
  SELECT v.id, v.route, coalesce((SELECT session_id FROM parley.bindings b WHERE b.route = v.route),
           (SELECT s.id FROM parley.sessions s WHERE s.key = v.route)) AS session_id,
         v.source, v.state, v.sender, v.reply_to, v.claimed_epoch, v.server, v.stt_session_id, v.runner, v.since_seq, v.utterances,
         v.problem, v.started_at, v.changed_at
  FROM parley.voice_sessions v`;
const open = "v.state IN ('starting', 'listening', 'stopping')";

function voiceOf(row: VoiceRow): VoiceSession {
  return {
    voiceId: row.id,
    route: row.route,
    sessionId: row.session_id,
    source: row.source,
    state: row.state,
    sender: senderOf(row.sender),
    replyTo: addressOf(row.reply_to),
    claimed: row.claimed_epoch !== null,
    server: row.server,
    sttSessionId: row.stt_session_id,
    runner: row.runner,
    sinceSeq: row.since_seq,
    utterances: row.utterances,
    problem: row.problem,
    startedAt: row.started_at,
    changedAt: row.changed_at,
  };
}

async function find(client: PoolClient, condition: string, values: unknown[]): Promise<VoiceSession | null> {
  const { rows } = await client.query<VoiceRow>(`${select} WHERE ${condition}`, values);
  return rows[0] === undefined ? null : voiceOf(rows[0]);
}

/** The current session, locked until the commit. */
export function lockVoice(client: PoolClient, voiceId: string): Promise<VoiceSession | null> {
  return find(client, "v.id = $1 FOR UPDATE", [voiceId]);
}

export const voiceHandlers = {
  async voiceOpen({ database }, input) {
    const { opId, route, source, sender, replyTo } = input;
    return runTransaction(database, async (client) => {
      // A retry returns the same session, even if it has ended.
      const known = await find(client, "v.op_id = $1", [opId]);
      if (known !== null) return { opened: true, voice: known };
      await client.query(
        `DELETE FROM parley.voice_sessions v WHERE v.route = $1 AND NOT (${open}) AND v.id NOT IN (
           SELECT id FROM parley.voice_sessions WHERE route = $1 ORDER BY started_at DESC, id DESC LIMIT ${keptPerRoute - 1})`,
        [route],
      );
      const { rowCount } = await client.query(
        `INSERT INTO parley.voice_sessions (id, op_id, route, source, sender, reply_to, state)
         VALUES ($1, $2, $3, $4, $5, $6, 'starting') ON CONFLICT DO NOTHING`,
        [newId(), opId, route, source, JSON.stringify(sender), replyTo === null ? null : JSON.stringify(replyTo)],
      );
      const voice = await find(client, `v.route = $1 AND ${open}`, [route]);
      if (voice === null) throw new Error(`the voice session of ${route} ended while it was requested`);
      return { opened: rowCount === 1, voice };
    });
  },

  async voiceStop({ database, bus }, { route }) {
    const voice = await runTransaction(database, async (client) => {
      const { rows } = await client.query<{ id: string }>(
        `UPDATE parley.voice_sessions v SET changed_at = now(),
           state = CASE WHEN v.state = 'starting' AND v.claimed_epoch IS NULL THEN 'stopped' ELSE 'stopping' END
         WHERE v.route = $1 AND ${open} RETURNING v.id`,
        [route],
      );
      return rows[0] === undefined ? null : find(client, "v.id = $1", [rows[0].id]);
    });
    if (voice?.state === "stopping") bus.publish(voiceChanged, {});
    return { voice };
  },

  async voiceGet({ database }, { voiceId, route, events: count }) {
    return withClient(database, async (client) => {
      const voice =
        voiceId === undefined
          ? await find(client, "v.route = $1 ORDER BY v.started_at DESC, v.id DESC LIMIT 1", [route ?? ""])
          : await find(client, "v.id = $1", [voiceId]);
      if (voice === null || count === 0) return { voice, events: [] };
      const { rows } = await client.query<{ seq: number; type: string; text: string; at: string }>(
        "SELECT seq, type, text, at FROM parley.voice_events WHERE voice_id = $1 ORDER BY seq DESC LIMIT $2",
        [voice.voiceId, count],
      );
      const events = rows.toReversed().map((row) => {
        const text = JSON.parse(row.text) as string;
        return { ...row, text: text.slice(0, shownCharacters).toWellFormed() };
      });
      return { voice, events };
    });
  },

  async voiceWork({ database }, { orderedMsAgo }) {
    const { rows } = await database.query<VoiceRow>(
      `${select} WHERE ${open} AND (v.state <> 'starting' OR v.started_at <= now() - $1 * interval '1 millisecond')
       ORDER BY v.started_at, v.id`,
      [orderedMsAgo],
    );
    return { voices: rows.map(voiceOf) };
  },

  async voiceMove({ database, bus }, input) {
    type Output = OutputOf<typeof store.voiceMove>;
    const { voiceId, to, tell } = input;
    const recipients: ReplyAddress[] = [];
    const output = await runOperation<Output>(database, input, {
      name: "voice_move",
      async run(client) {
        const before = await lockVoice(client, voiceId);
        if (before === null || before.state === "stopped" || before.state === "failed")
          return { result: { moved: false, voice: before } };
        if (to.state === "claimed") {
          if (before.state !== "starting" || before.claimed) return { result: { moved: false, voice: before } };
          await claims(client, voiceId, input.epoch);
        } else await (to.state === "listening" ? listens(client, voiceId, to) : ends(client, voiceId, to));
        if (tell !== null && before.replyTo !== null) {
          const outgoing = { address: before.replyTo, text: tell, expiresInMs: tellExpiresMs };
          await enqueueStandalone(client, input.opId, outgoing);
          recipients.push(before.replyTo);
        }
        return { result: { moved: true, voice: await find(client, "v.id = $1", [voiceId]) }, memo: {} };
      },
      replay: async (client) => ({ moved: true, voice: await find(client, "v.id = $1", [voiceId]) }),
    });
    announceOutgoing(bus, recipients);
    return output;
  },
} satisfies Partial<Handlers>;

type To = InputOf<typeof store.voiceMove>["to"];

async function claims(client: PoolClient, voiceId: string, epoch: number): Promise<void> {
  await client.query("UPDATE parley.voice_sessions SET claimed_epoch = $2, changed_at = now() WHERE id = $1", [
    voiceId,
    epoch,
  ]);
}

async function listens(client: PoolClient, voiceId: string, to: Extract<To, { state: "listening" }>): Promise<void> {
  await client.query(
    `UPDATE parley.voice_sessions SET server = $2, stt_session_id = $3, runner = $4, changed_at = now(),
       state = CASE state WHEN 'starting' THEN 'listening' ELSE state END
     WHERE id = $1`,
    [voiceId, to.server, to.sttSessionId, to.runner],
  );
}

async function ends(
  client: PoolClient,
  voiceId: string,
  to: Extract<To, { state: "stopped" | "failed" }>,
): Promise<void> {
  await client.query("UPDATE parley.voice_sessions SET state = $2, problem = $3, changed_at = now() WHERE id = $1", [
    voiceId,
    to.state,
    to.problem,
  ]);
}
