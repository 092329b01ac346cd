// The inbox: stores input once, in the order of its session. It does not depend on how turns process it.
import { activeTrace, faultPoint } from "@parley/chassis";
import { inboxReady, newId, priorityOf, store, trustLevel, WireError, type InboundMessage } from "@parley/contracts";
import { hashesIn, addReferences } from "../../blobs/references.ts";
import { withClient, type PoolClient } from "../../db/database.ts";
import { turnColumns, turnOf, type SessionStateRow, type TurnRow } from "../../db/mappers.ts";
import { singleRow, runTransaction } from "../../db/operation.ts";
import { allowanceOf, countMessage, limitReached, lockPerson, refuseMessage } from "../contacts/limits.ts";
import { announceTexts } from "../outbox/enqueue.ts";
import { askFromJob } from "../questions/ask.ts";
import { answerWith } from "../questions/questions.ts";
import { startedTurnOf } from "../turns/start.ts";
import { findRepeatedContent } from "./repeated-content.ts";
import { endContext, findContext, noContext, type Quote } from "./group-context.ts";
import { saveCursor } from "./cursor.ts";
import { replaceOverdueFiles, waitsForFiles } from "./files.ts";
import { extendWindow, lockBusy } from "./queue-modes.ts";
import type { Handlers } from "../handler.ts";

interface PutRow {
  id: string | null;
  session_id: string;
  asked: boolean;
  held_up_by?: string | null;
  /** Of a stored row that was found again. */
  queued?: boolean;
}

/** `parley.stored_message` */
interface StoredRow extends PutRow, SessionStateRow {
  started_at: string | null;
  seq: number;
  sent_at: string | null;
  key: string;
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

const insert = {
  name: "inbox-put",
  text: `SELECT * FROM parley.put_message(${Array.from({ length: 25 }, (_, at) => `$${at + 1}`).join(", ")})`,
};

// A crash can prevent stored input from becoming an answer, so a retry checks queued input again.
const find = {
  name: "inbox-find",
  text: `
    SELECT id, session_id, parts = $4 AS same, state = 'queued' AS queued,
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
    // A forwarded text was written by somebody else, so it is never an answer.
    const mayAnswer = message.origin === "user" && message.forwarded === undefined && !exclusive;
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
    const turnId = newId();
    /** `epoch`: of a leader with a free turn for this message. */
    const statement = (quotes: readonly Quote[] = [], epoch?: number) => ({
      ...insert,
      values: [
        sessionKey,
        ...identity,
        priority,
        quotes.length === 0 ? parts : JSON.stringify([...quotes, ...message.parts]),
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
        store.firstFileFence,
        epoch ?? null,
        turnId,
      ],
    });
    const findKnown = async (client: PoolClient) => {
      const { rows } = await client.query<PutRow & { same: boolean }>({ ...find, values: [...identity, parts] });
      const [row] = rows;
      // Stored files replace the missing ones and context precedes the text, so the parts of a redelivery differ.
      return row && { row, duplicate: true, same: isIncomplete || context !== undefined || row.same, refused: false };
    };
    let started: store.StartedTurn | undefined;
    const write = async (client: PoolClient, epoch?: number) => {
      const earlier = context === undefined ? noContext : await findContext(client, message, context);
      const row = singleRow((await client.query<StoredRow>(statement(earlier.quotes, epoch))).rows);
      if (row.id !== null) {
        if (epoch !== undefined && row.started_at !== null) {
          const { started_at } = row;
          const ids = { turn_id: turnId, inbox_id: inboxId };
          const input = {
            parts,
            sender,
            reply_to: replyTo,
            trust: trustLevel(message),
            trace: activeTrace(),
            exclusive,
          };
          started = startedTurnOf(epoch, { ...row, ...ids, ...input, started_at });
        }
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
    const { row, duplicate, same, refused, busy, overLimit, outgoing }: Put = simple
      ? await withClient(database, (client): Promise<Put> => write(client, freeEpoch))
      : await runTransaction(database, async (client): Promise<Put> => {
          if (lease !== undefined) await saveCursor(client, lease);
          const repeated = content && (await findRepeatedContent(client, message, content));
          if (repeated !== undefined) return { row: repeated, duplicate: true, same: true, refused: false };
          const busyFor = (under: string) =>
            lockBusy(client, sessionKey, under, { trust: trustLevel(message), replyTo, mayAnswer });
          if (allowance !== undefined) {
            await lockPerson(client, allowance);
            const known = await findKnown(client);
            if (known !== undefined) return { ...known, busy: await busyFor(mode) };
            const answers = async () => (await busyFor("interrupt"))?.isAnswer === true;
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
    const answers = mayAnswer && row.id !== null && row.asked && (await answerWith(database, bus, row.id));
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
      ...(duplicate && row.queued === true ? { waits: true } : {}),
      same,
      refused,
      ...(overLimit === undefined ? {} : { overLimit }),
      // An answer to a turn's question does not interrupt the turn, nor does one whose files are missing.
      runningTurnId: answers || (isIncomplete && busy?.isAnswer === true) ? null : (busy?.turnId ?? null),
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
