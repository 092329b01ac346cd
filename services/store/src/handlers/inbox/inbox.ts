// The inbox: stores input once, in the order of its session. It does not depend on how turns process it.
import { activeTrace, faultPoint } from "@parley/chassis";
import { inboxReady, newId, priorityOf, store, trustLevel, WireError, type InboundMessage } from "@parley/contracts";
import { hashesIn, addReferences } from "../../blobs/references.ts";
import { withClient, type PoolClient } from "../../db/database.ts";
import { turnColumns, turnOf, type TurnRow } from "../../db/mappers.ts";
import { singleRow, runTransaction } from "../../db/operation.ts";
import { allowanceOf, countMessage, limitReached, lockPerson, refuseMessage } from "../contacts/limits.ts";
import { announceTexts } from "../outbox/enqueue.ts";
import { askFromJob } from "../questions/ask.ts";
import { answerWith } from "../questions/questions.ts";
import { startArrivedStatement, startedTurnOf, storeAndStart } from "../turns/start.ts";
import { findRepeatedContent } from "./repeated-content.ts";
import { endContext, findContext, noContext } from "./group-context.ts";
import { saveCursor } from "./cursor.ts";
import { replaceOverdueFiles, waitsForFiles } from "./files.ts";
import { extendWindow, lockBusy } from "./queue-modes.ts";
import type { Handlers } from "../handler.ts";

interface PutRow {
  id: string | null;
  session_id: string;
  /** An open question in the session, or of a job anywhere, waits for people of this trust: this input may be the answer. */
  asked: boolean;
  /** The approval that the running turn waits for. */
  held_up_by?: string | null;
}

/** What became of a message. */
interface Put extends Partial<Awaited<ReturnType<typeof refuseMessage>>> {
  row: PutRow;
  duplicate: boolean;
  /** False for a duplicate with other parts. */
  same: boolean;
  refused: boolean;
  busy?: Awaited<ReturnType<typeof lockBusy>>;
}

/** A refusal: nothing is stored. */
function refusalIn(sessionId: string): Put {
  const row = { id: null, session_id: sessionId, asked: false, held_up_by: null };
  return { row, duplicate: false, same: true, refused: true };
}

/** Sets the profile of a session that has no messages yet. */
function profileOnce(profile: string): string {
  return `profile = CASE WHEN sessions.seq = 0 AND sessions.inbox_seq = 0 THEN coalesce(${profile}, sessions.profile) ELSE sessions.profile END`;
}

// The session's row is locked until the commit, so rows of one session get their numbers in commit order. A route refers to the session
// it was bound to, otherwise to the session with its name, which its first message creates.
const insert = {
  name: "inbox-put",
  text: `
    WITH bound AS (
      SELECT session_id FROM parley.bindings WHERE route = $1
    ), known AS (
      UPDATE parley.sessions SET inbox_seq = inbox_seq + 1, status = 'active', ${profileOnce("$17")} WHERE id = (SELECT session_id FROM bound) RETURNING id, inbox_seq
    ), made AS (
      INSERT INTO parley.sessions (id, key, single_call, profile) SELECT $9, $1, $16, $17 WHERE NOT EXISTS (SELECT FROM bound)
      ON CONFLICT (key) DO UPDATE SET inbox_seq = sessions.inbox_seq + 1, status = 'active', single_call = sessions.single_call OR excluded.single_call,
        ${profileOnce("excluded.profile")}
      RETURNING id, inbox_seq
    ), session AS (
      SELECT * FROM known UNION ALL SELECT * FROM made
    ), row AS (
      INSERT INTO parley.inbox (id, session_id, seq, channel, account, external_id, priority, parts, reply_to, sender, mode, trust, ready_at, trace, exclusive,
                                conversation, message_id, sent_at, files_due, files_claimed_until, files_fence)
      SELECT $10, id, inbox_seq, $2, $3, $4, $5, $6, $7, $8, $11, $12, now() + $13 * interval '1 millisecond', $14, $15,
             $18, $19, $20, now() + $21::int * interval '1 millisecond', now() + $22::int * interval '1 millisecond', CASE WHEN $21::int IS NULL THEN 0 ELSE ${store.firstFileFence} END
      FROM session
      ON CONFLICT (channel, account, external_id) DO NOTHING
      RETURNING id
    )
    SELECT (SELECT id FROM row) AS id, session.id AS session_id,
           NOT $15 AND (EXISTS (SELECT FROM parley.questions q
             WHERE q.session_id = session.id AND q.state = 'open' AND q.trust = $12 AND q.expires_at > now())
             OR ${askFromJob("$12")}) AS asked,
           (SELECT a.id FROM parley.approvals a JOIN parley.turns t ON t.id = a.turn_id
            WHERE a.session_id = session.id AND a.state = 'pending' AND a.expires_at > now() AND t.state = 'running'
            ORDER BY a.requested_at DESC LIMIT 1) AS held_up_by
    FROM session`,
};

// A crash can prevent stored input from becoming an answer, so a retry checks queued input again.
const find = {
  name: "inbox-find",
  text: `
    SELECT id, session_id, parts = $4 AS same,
           state = 'queued' AND NOT exclusive AND (EXISTS (SELECT FROM parley.questions q
             WHERE q.session_id = inbox.session_id AND q.state = 'open' AND q.trust = inbox.trust AND q.expires_at > now())
             OR ${askFromJob("inbox.trust")}) AS asked
    FROM parley.inbox WHERE channel = $1 AND account = $2 AND external_id = $3`,
};

/** Longer messages start no turn with their commit: the hint would repeat their text on the bus for every subscriber. */
const maxStartedChars = 64 * 1024;

export const inboxHandlers = {
  async inboxPut(
    { database, bus, leaderCapacity },
    { message, sessionKey, lease, files, content, context, limits, singleCall = false, profile = null, newSessionId },
  ) {
    faultPoint("store.before_inbox");
    const { mode = "queue", exclusive = false } = message;
    const identity = [message.channel, message.account, message.externalId];
    const parts = JSON.stringify(message.parts);
    const priority = priorityOf[message.origin];
    const windowMs = mode === "coalesce" ? (message.windowMs ?? 0) : 0;
    const replyTo = message.replyTo === null ? null : JSON.stringify(message.replyTo);
    const sender = senderOf(message);
    const attached = hashesIn(message.parts.filter((part) => part.type === "blob"));
    const isIncomplete = message.parts.some((part) => part.type === "pending_file");
    if (isIncomplete !== (files !== undefined))
      throw new WireError("INVALID_INPUT", "`files` belongs to missing files");
    const inboxId = newId();
    const statement = {
      ...insert,
      values: [
        sessionKey,
        ...identity,
        priority,
        parts,
        replyTo,
        sender,
        newSessionId ?? newId(),
        inboxId,
        mode,
        trustLevel(message),
        windowMs,
        activeTrace(),
        exclusive,
        singleCall,
        profile,
        JSON.stringify(message.conversation),
        JSON.stringify(message.messageId ?? content?.id ?? message.externalId),
        message.sentAt ?? null,
        files?.dueMs ?? null,
        files?.claimMs ?? null,
      ],
    };
    const findKnown = async (client: PoolClient) => {
      const { rows } = await client.query<PutRow & { same: boolean }>({ ...find, values: [...identity, parts] });
      const [row] = rows;
      // Stored files replace the missing ones and context precedes the text, so the parts of a redelivery differ.
      return row && { row, duplicate: true, same: isIncomplete || context !== undefined || row.same, refused: false };
    };
    const write = async (client: PoolClient, stored?: PutRow[]) => {
      const earlier = context === undefined ? noContext : await findContext(client, message, context);
      const values = [...statement.values];
      if (earlier.quotes.length > 0) values[5] = JSON.stringify([...earlier.quotes, ...message.parts]);
      const row = singleRow(stored ?? (await client.query<PutRow>({ ...statement, values })).rows);
      if (row.id !== null) {
        if (earlier.ids.length > 0) await endContext(client, earlier);
        await addReferences(client, row.session_id, attached);
        return { row, duplicate: false, same: true, refused: false };
      }
      const known = await findKnown(client);
      if (known === undefined) throw new Error("the message is neither new nor stored");
      return known;
    };
    const allowance = limits && (await allowanceOf(database, message, limits));
    const simple =
      allowance === undefined &&
      lease === undefined &&
      content === undefined &&
      context === undefined &&
      attached.length === 0 &&
      (mode === "queue" || mode === "steer");
    const freeEpoch =
      simple && !isIncomplete && parts.length <= maxStartedChars ? leaderCapacity.freeEpoch() : undefined;
    let started: store.StartedTurn | undefined;
    const { row, duplicate, same, refused, busy, overLimit, outgoing }: Put = simple
      ? await withClient(database, async (client): Promise<Put> => {
          if (freeEpoch === undefined) return write(client);
          const start = startArrivedStatement(inboxId, freeEpoch, newId());
          const { stored, turn } = await storeAndStart(client, statement, start);
          started = startedTurnOf(freeEpoch, turn);
          return write(client, stored as PutRow[]);
        })
      : await runTransaction(database, async (client): Promise<Put> => {
          if (lease !== undefined) await saveCursor(client, lease);
          const repeated = content && (await findRepeatedContent(client, message, content));
          if (repeated !== undefined) return { row: repeated, duplicate: true, same: true, refused: false };
          const busyFor = (under: string) =>
            lockBusy(client, sessionKey, under, { trust: trustLevel(message), replyTo, exclusive });
          if (allowance !== undefined) {
            await lockPerson(client, allowance);
            const known = await findKnown(client);
            if (known !== undefined) return known;
            const answers = async () =>
              message.forwarded === undefined && (await busyFor("interrupt"))?.isAnswer === true;
            const reached = await limitReached(client, allowance, answers);
            if (reached !== undefined)
              return { ...refusalIn(""), ...(await refuseMessage(client, allowance, reached, message)) };
          }
          const busy = await busyFor(mode);
          if (busy !== undefined && mode === "reject" && busy.waits)
            return { ...((await findKnown(client)) ?? refusalIn(busy.sessionId)), busy };
          const written = await write(client);
          if (allowance !== undefined && !written.duplicate) await countMessage(client, allowance, inboxId);
          if (mode === "coalesce" && !written.duplicate) await extendWindow(client, written.row, sender, windowMs);
          return { ...written, busy };
        });
    if (outgoing !== undefined) announceTexts(bus, [outgoing]);
    faultPoint("store.after_inbox");
    // A forwarded text was written by somebody else, so it is never an answer.
    const mayAnswer = row.id !== null && row.asked && message.origin === "user" && message.forwarded === undefined;
    const answers = mayAnswer && (await answerWith(database, bus, row.id ?? ""));
    if (answers) faultPoint("store.after_answer");
    else if (!duplicate && !refused && !isIncomplete) {
      bus.publish(inboxReady, {
        sessionId: row.session_id,
        priority,
        ...(windowMs === 0 ? {} : { afterMs: windowMs }),
        ...(mode === "steer" && started === undefined ? { steers: trustLevel(message) } : {}),
        ...(started === undefined ? {} : { started }),
      });
    }
    return {
      inboxId: row.id ?? "",
      sessionId: row.session_id,
      duplicate,
      same,
      refused,
      ...(overLimit === undefined ? {} : { overLimit }),
      // An answer to a turn's question does not interrupt the turn.
      runningTurnId: answers ? null : (busy?.turnId ?? null),
      runningTrust: busy?.trust ?? null,
      ...(busy?.exclusive === true ? { runningExclusive: true } : {}),
      ...(answers || duplicate || row.held_up_by == null ? {} : { heldUpBy: row.held_up_by }),
    };
  },

  async inboxGet({ database }, { inboxId }) {
    const { rows } = await database.query<{
      state: Awaited<ReturnType<Handlers["inboxGet"]>>["state"];
      session_id: string;
      turn_id: string | null;
    }>({
      name: "inbox-get",
      text: "SELECT state, session_id, turn_id FROM parley.inbox WHERE id = $1",
      values: [inboxId],
    });
    const row = rows[0];
    if (row === undefined) throw new WireError("NOT_FOUND", `no message ${inboxId}`);
    if (row.turn_id === null) return { state: row.state, sessionId: row.session_id, turn: null };
    const turn = await database.query<TurnRow>(`SELECT ${turnColumns} FROM parley.turns WHERE id = $1`, [row.turn_id]);
    // The turn may be deleted: the question it answered can belong to another session, which may be deleted earlier.
    const kept = turn.rows[0];
    return { state: row.state, sessionId: row.session_id, turn: kept === undefined ? null : turnOf(kept) };
  },

  async inboxPending(context, { epoch, limit }) {
    const { database } = context;
    await replaceOverdueFiles(context);
    const { rows } = await database.query<{ sessionId: string; priority: number; resume: boolean }>({
      ...pendingSessions,
      values: [epoch, limit],
    });
    return { sessions: rows };
  },
} satisfies Partial<Handlers>;

function senderOf(message: InboundMessage): string {
  const { channel, account, conversation, contact, role, origin, direct, tainted, forwarded, approvals, answer } =
    message;
  return JSON.stringify({
    channel,
    account,
    conversation,
    contact,
    role,
    origin,
    direct,
    tainted,
    forwarded,
    approvals,
    answer,
  });
}

const pendingSessions = {
  name: "inbox-pending",
  text: `
    SELECT session_id AS "sessionId", min(priority)::int AS priority, bool_or(resume) AS resume FROM (
      SELECT session_id, priority, false AS resume FROM parley.inbox
      WHERE state = 'queued' AND ready_at <= now() AND NOT ${waitsForFiles("inbox")}
        AND NOT EXISTS (SELECT FROM parley.turns WHERE turns.session_id = inbox.session_id AND turns.state = 'running')
      UNION ALL
      SELECT session_id, 1, true FROM parley.turns
      WHERE state = 'running' AND epoch <= $1 AND (NOT parked OR wake_at <= now())
    ) AS work
    GROUP BY session_id ORDER BY resume DESC, priority LIMIT $2`,
};
