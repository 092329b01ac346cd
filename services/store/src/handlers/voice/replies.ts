// Spoken answers: recorded in the commit that sends the text, synthesized by the leader afterwards, sent once.
import { type Outgoing, type ReplyAddress, type SpokenReply } from "@parley/contracts";
import { type PoolClient } from "../../db/database.ts";
import { addressOf, overridesOf } from "../../db/mappers.ts";
import { runOperation } from "../../db/operation.ts";
import { announceOutgoing, enqueueText } from "../outbox/enqueue.ts";
import type { Handlers } from "../handler.ts";

/** Spoken answers expire after this time. */
const expiresMs = 10 * 60 * 1_000;
/** Maximum stored bytes of text in one reply, except that the first text is always included. */
const pendingBytes = 256 * 1024;
/** How long the audio may wait for delivery. */
const soundExpiresMs = 60 * 60 * 1_000;

interface TurnRow {
  overrides: string | null;
  reply_to: string | null;
}

/** Records texts to the turn's own conversation for speech, if the session has spoken answers enabled. Returns whether any was recorded. */
export async function recordReply(client: PoolClient, turnId: string, outgoing: readonly Outgoing[]): Promise<boolean> {
  const texts = outgoing.filter(({ text }) => text.trim() !== "");
  if (texts.length === 0) return false;
  const { rows } = await client.query<TurnRow>(
    "SELECT s.overrides, t.reply_to FROM parley.turns t JOIN parley.sessions s ON s.id = t.session_id WHERE t.id = $1",
    [turnId],
  );
  const turn = rows[0];
  if (turn === undefined || overridesOf(turn.overrides).voiceReplies !== true) return false;
  const here = addressOf(turn.reply_to);
  const replies = texts.filter(({ address }) => here !== null && samePlace(address, here));
  for (const { address, text } of replies) {
    await client.query(
      `INSERT INTO parley.spoken_replies (turn_id, text, address, expires_at)
       VALUES ($1, $2, $3, now() + $4 * interval '1 millisecond')`,
      [turnId, JSON.stringify(text), JSON.stringify(address), expiresMs],
    );
  }
  return replies.length > 0;
}

function samePlace(a: ReplyAddress, b: ReplyAddress): boolean {
  return a.channel === b.channel && a.account === b.account && a.conversation === b.conversation;
}

interface SpokenRow {
  id: number;
  turn_id: string;
  session_id: string;
  text: string;
  attempts: number;
  fits: boolean;
}

export const replyHandlers = {
  async spokenPending({ database }, { limit }) {
    await database.query("DELETE FROM parley.spoken_replies WHERE expires_at < now()");
    const { rows } = await database.query<SpokenRow>(
      `SELECT r.id, r.turn_id, t.session_id, r.text, r.attempts,
              row_number() OVER w = 1 OR sum(octet_length(r.text)) OVER w <= $2 AS fits
       FROM parley.spoken_replies r JOIN parley.turns t ON t.id = r.turn_id WHERE r.not_before <= now()
       WINDOW w AS (ORDER BY r.id) ORDER BY r.id LIMIT $1`,
      [limit, pendingBytes],
    );
    return { spoken: rows.filter(({ fits }) => fits).map(spokenOf) };
  },

  async spokenSettle({ database, bus }, input) {
    const { spokenId, outcome } = input;
    const sent: ReplyAddress[] = [];
    await runOperation<undefined>(database, input, {
      name: "spoken_settle",
      async run(client) {
        if (outcome.state === "retry") {
          await client.query(
            `UPDATE parley.spoken_replies SET attempts = attempts + 1, not_before = now() + $2 * interval '1 millisecond' WHERE id = $1`,
            [spokenId, outcome.afterMs],
          );
          return { result: undefined, memo: {} };
        }
        // A second settlement finds no row and sends nothing.
        const { rows } = await client.query<{ turn_id: string; address: string }>(
          "DELETE FROM parley.spoken_replies WHERE id = $1 RETURNING turn_id, address",
          [spokenId],
        );
        const row = rows[0];
        const address = addressOf(row?.address ?? null);
        if (row !== undefined && address !== null && outcome.state === "made") {
          const { replyToId: _, ...place } = address;
          const { attachment } = outcome;
          await enqueueText(client, row.turn_id, {
            address: place,
            text: "",
            attachments: [attachment],
            expiresInMs: soundExpiresMs,
          });
          sent.push(address);
        }
        return { result: undefined, memo: {} };
      },
      replay: async () => undefined,
    });
    announceOutgoing(bus, sent);
    return {};
  },
} satisfies Partial<Handlers>;

function spokenOf(row: SpokenRow): SpokenReply {
  return {
    spokenId: String(row.id),
    turnId: row.turn_id,
    sessionId: row.session_id,
    text: JSON.parse(row.text) as string,
    attempts: row.attempts,
  };
}
