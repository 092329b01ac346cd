// Stores recognized speech of voice sessions: each final utterance becomes one inbox row, and the cursor advances in the same commit. Events
// that a new leader, a runner or the bus delivers again are before the cursor and are ignored.
import { WireError, type Utterance, type OutputOf, type store, type VoiceSession } from "@parley/contracts";
import type { PoolClient } from "../../db/database.ts";
import { runOperation } from "../../db/operation.ts";
import { enqueueSystemInput } from "../inbox/system-input.ts";
import { answerWith } from "../questions/questions.ts";
import { publishReady, type ReadyHint } from "../turns/notify.ts";
import { lockVoice } from "./sessions.ts";
import type { Handlers } from "../handler.ts";

/** The kind of event that becomes a turn. */
const finalType = "utterance_final";

type Output = OutputOf<typeof store.voiceAdvance>;

export const utteranceHandlers = {
  /** Throws NOT_FOUND. */
  async voiceAdvance({ database, bus }, input) {
    const wakes: ReadyHint[] = [];
    const output = await runOperation<Output>(database, input, {
      name: "voice_advance",
      async run(client) {
        const voice = await lockVoice(client, input.voiceId);
        if (voice === null) throw new WireError("NOT_FOUND", `no voice session ${input.voiceId}`);
        const { state, sinceSeq } = voice;
        const fresh = newEvents(input.events, sinceSeq);
        const last = fresh.at(-1);
        if (last === undefined || (state !== "listening" && state !== "stopping"))
          return { result: { state, sinceSeq, inboxIds: [] } };
        const finals = fresh.filter(({ type, text }) => type === finalType && text.trim() !== "");
        const queued = await enqueueSystemInput(
          client,
          finals.map((utterance) => inputOf(voice, utterance)),
          wakes,
        );
        await keep(client, input.voiceId, fresh, input.keep);
        await client.query(
          "UPDATE parley.voice_sessions SET since_seq = $2, utterances = utterances + $3, changed_at = now() WHERE id = $1",
          [input.voiceId, last.seq, finals.length],
        );
        const inboxIds = queued.flatMap(({ inboxId }) => (inboxId === null ? [] : [inboxId]));
        const result: Output = { state, sinceSeq: last.seq, inboxIds };
        return { result, memo: result };
      },
    });
    // An utterance answers an open question, like a written message.
    for (const inboxId of output.inboxIds) await answerWith(database, bus, inboxId);
    publishReady(bus, wakes);
    return output;
  },
} satisfies Partial<Handlers>;

/** Events after the cursor, in order, without duplicates. */
function newEvents(events: readonly Utterance[], sinceSeq: number): Utterance[] {
  const byNumber = new Map<number, Utterance>();
  for (const event of events) if (event.seq > sinceSeq && !byNumber.has(event.seq)) byNumber.set(event.seq, event);
  return [...byNumber.values()].sort((a, b) => a.seq - b.seq);
}

function inputOf({ voiceId, route, sender, replyTo }: VoiceSession, { seq, text }: Utterance) {
  return { route, account: "voice", externalId: `voice:${voiceId}:${seq}`, text: text.trim(), sender, replyTo };
}

/** Stores the newest events for display and deletes older ones. */
async function keep(client: PoolClient, voiceId: string, events: readonly Utterance[], most: number): Promise<void> {
  await client.query(
    `INSERT INTO parley.voice_events (voice_id, seq, type, text)
     SELECT $1, * FROM unnest($2::bigint[], $3::text[], $4::text[]) ON CONFLICT DO NOTHING`,
    [
      voiceId,
      events.map(({ seq }) => seq),
      events.map(({ type }) => type),
      events.map(({ text }) => JSON.stringify(text)),
    ],
  );
  await client.query(
    `DELETE FROM parley.voice_events WHERE voice_id = $1 AND seq <= (
       SELECT seq FROM parley.voice_events WHERE voice_id = $1 ORDER BY seq DESC OFFSET $2 LIMIT 1)`,
    [voiceId, most],
  );
}
