// The outbox: `pending → sending → sent | unknown | dropped`. A row is claimed before it is sent, one per conversation at a time, which
// preserves the order and detects possible duplicates.
import { faultPoint } from "@parley/chassis";
import {
  type store,
  WireError,
  type InputOf,
  type OutboxRow,
  type OutputOf,
  type ReplyAddress,
} from "@parley/contracts";
import { withClient } from "../../db/database.ts";
import { singleRow, runOperation } from "../../db/operation.ts";
import { announceOutgoing, enqueueStandalone } from "./enqueue.ts";
import { isPaused } from "../accounts/accounts.ts";
import { checkLease } from "./lease-check.ts";
import { block, debit, lockAllowance } from "./limits.ts";
import { heldTextHandlers } from "./held-texts.ts";
import { joinFiles } from "./join-files.ts";
import { noPreviewAhead, previewHandlers, resolvePreviews, supersedePreviews } from "./previews.ts";
import type { Handlers } from "../handler.ts";

/** `store.outbox.find` reads so many of the newest texts, and returns so much of one. */
const findableTexts = 5_000;
const foundTextChars = 2_000;

interface Row {
  id: number;
  turn_id: string | null;
  op_id: string | null;
  ordinal: number;
  channel: string;
  account: string;
  conversation: string;
  reply_to_id: string | null;
  body: string;
  attachment: string | null;
  files: string | null;
  actions: string | null;
  reply_context: string | null;
  attempts: number;
  position: number;
  parts: number;
  interrupted: boolean;
  replaces: string | null;
  expires_at: string;
  trace: string | null;
}

function outboxRowOf(row: Row): OutboxRow {
  return {
    outboxId: String(row.id),
    turnId: row.turn_id,
    ordinal: row.ordinal,
    address: {
      channel: row.channel,
      account: row.account,
      conversation: row.conversation,
      ...(row.reply_to_id === null ? {} : { replyToId: row.reply_to_id }),
      ...(row.reply_context === null ? {} : { context: row.reply_context }),
    },
    text: JSON.parse(row.body) as string,
    attachment: row.attachment === null ? null : (JSON.parse(row.attachment) as OutboxRow["attachment"]),
    ...(row.files === null ? {} : { files: JSON.parse(row.files) as OutboxRow["files"] }),
    ...(row.actions === null ? {} : { actions: JSON.parse(row.actions) as store.Action[] }),
    idempotencyKey: `${row.turn_id ?? row.op_id ?? ""}-${row.ordinal}${row.position === 0 ? "" : `-${row.position}`}`,
    attempts: row.attempts - 1,
    position: row.position,
    parts: row.parts,
    interrupted: row.interrupted,
    ...(row.replaces === null ? {} : { replaces: row.replaces }),
    expiresAt: row.expires_at,
    trace: row.trace,
  };
}

// A sender counts as dead when its claim has expired, when its replica has a new incarnation, or when another process owns the account's
// connection.
const leftBehind = `
  state = 'sending' AND channel = $1 AND account = $2
  AND (claim_until < now() OR (claim_replica = $3 AND claim_incarnation <> $4) OR ($5 AND claim_incarnation <> $4))`;

const columns =
  "id, turn_id, op_id, ordinal, channel, account, conversation, reply_to_id, body, attachment, files, actions, reply_context, attempts, position, parts, interrupted, replaces, expires_at, trace";

/** The oldest open row of each conversation, and when its limits allow to send it. */
const heads = (pattern: string, slackMs: string) => `
  SELECT first.id, first.state, first.bytes, greatest(first.not_before, l.blocked_until, l.next_at - r.slack_ms * interval '1 millisecond') AS due_at
  FROM (
    SELECT DISTINCT ON (conversation) id, state, not_before, conversation, octet_length(body) AS bytes FROM parley.outbox
    WHERE channel = $1 AND account = $2 AND state IN ('pending', 'sending') ORDER BY conversation, id
  ) AS first
  LEFT JOIN parley.send_limits l ON l.channel = $1 AND l.account = $2 AND l.conversation = first.conversation
  LEFT JOIN LATERAL (
    SELECT slack_ms FROM unnest(${pattern}::text[], ${slackMs}::float8[]) WITH ORDINALITY AS rate(pattern, slack_ms, place)
    WHERE first.conversation ~ rate.pattern ORDER BY place LIMIT 1
  ) r ON true
  WHERE ${noPreviewAhead}`;

/** Texts beyond this size wait for the next claim: the reply of a claim must fit into one message of the bus. */
const maxClaimBytes = 200_000;

const claimRows = {
  name: "outbox-claim",
  text: `
    UPDATE parley.outbox SET
      state = 'sending', attempts = attempts + 1, claim_replica = $3, claim_incarnation = $4,
      claim_until = now() + $5 * interval '1 millisecond', error = CASE WHEN doubtful_parts > 0 THEN error END
    WHERE state = 'pending' AND id IN (
      SELECT id FROM (
        SELECT id, sum(bytes) OVER (ORDER BY id) - bytes AS bytes_before
        FROM (${heads("$7", "$8")}) AS head WHERE state = 'pending' AND due_at <= now() ORDER BY id LIMIT $6
      ) AS due WHERE bytes_before < ${maxClaimBytes}
    )
    RETURNING ${columns}`,
};

const nextDue = {
  name: "outbox-next-due",
  text: `SELECT extract(epoch FROM min(due_at) - now())::float8 * 1000 AS wait_ms
         FROM (${heads("$3", "$4")}) AS head WHERE state = 'pending' AND due_at > now()`,
};

/** What becomes of the rows of a crashed sender. */
function recovery({ deduplicates, continues }: InputOf<typeof store.outboxClaim>): string {
  const crashed = "the sender crashed while sending";
  if (deduplicates) return `UPDATE parley.outbox SET state = 'pending', error = '${crashed}' WHERE ${leftBehind}`;
  return continues === true
    ? `UPDATE parley.outbox SET state = 'pending', interrupted = true, not_before = now() WHERE ${leftBehind}`
    : `UPDATE parley.outbox SET state = 'unknown', settled_at = now(), error = '${crashed}' WHERE ${leftBehind}`;
}

const settleRow = {
  name: "outbox-settle",
  text: `
    UPDATE parley.outbox SET
      state = CASE WHEN $3 IN ('retry', 'part', 'doubtful') THEN 'pending' WHEN $3 = 'sent' AND doubtful_parts > 0 THEN 'unknown' ELSE $3 END,
      provider_message_id = coalesce(provider_message_id, $4),
      provider_message_ids = CASE WHEN $4::text IS NULL THEN provider_message_ids ELSE provider_message_ids || $4::text END,
      error = CASE WHEN $3 IN ('part', 'sent') THEN (CASE WHEN doubtful_parts > 0 THEN error END) ELSE $5 END,
      not_before = now() + $6 * interval '1 millisecond',
      position = coalesce($7, position),
      parts = parts + CASE WHEN $3 IN ('part', 'sent') THEN 1 ELSE 0 END,
      doubtful_parts = doubtful_parts + CASE WHEN $3 IN ('doubtful', 'unknown') THEN 1 ELSE 0 END,
      -- Each message of a text has its own attempts.
      attempts = CASE WHEN $3 IN ('part', 'doubtful') THEN 0 WHEN $10 THEN greatest(attempts - 1, 0) ELSE attempts END,
      interrupted = false,
      held_at = $9,
      replaces = CASE WHEN $8 THEN NULL ELSE replaces END,
      settled_at = CASE WHEN $3 IN ('retry', 'part', 'doubtful') THEN NULL ELSE now() END
    WHERE id = $1 AND state = 'sending' AND claim_incarnation = $2
    RETURNING channel, account, conversation`,
};

export const outboxHandlers = {
  ...previewHandlers,
  ...heldTextHandlers,

  async outboxPut({ database, bus }, input) {
    const { address } = input.outgoing;
    faultPoint("store.before_outbox_put");
    const id = await withClient(database, async (client) => {
      const known =
        (await enqueueStandalone(client, input.opId, input.outgoing)) ??
        singleRow(
          (await client.query<{ id: number }>("SELECT id FROM parley.outbox WHERE op_id = $1", [input.opId])).rows,
        );
      return known.id;
    });
    announceOutgoing(bus, [address]);
    return { outboxId: String(id) };
  },

  async outboxGet({ database }, { outboxId }) {
    const { rows } = await database.query<OutputOf<typeof store.outboxGet>>(
      `SELECT state, attempts, provider_message_id AS "providerMessageId",
         provider_message_ids AS "providerMessageIds", error FROM parley.outbox WHERE id = $1`,
      [outboxId],
    );
    if (rows[0] === undefined) throw new WireError("NOT_FOUND", `no outbox row ${outboxId}`);
    return rows[0];
  },

  async outboxFind({ database }, { channel, account, conversation, messageId }) {
    const { rows } = await database.query<{ body: string }>(
      `SELECT body FROM (SELECT * FROM parley.outbox ORDER BY id DESC LIMIT ${findableTexts}) AS recent
       WHERE channel = $1 AND account = $2 AND conversation = $3 AND $4 = ANY (provider_message_ids) LIMIT 1`,
      [channel, account, conversation, messageId],
    );
    const [found] = rows;
    return { text: found === undefined ? null : (JSON.parse(found.body) as string).slice(0, foundTextChars) };
  },

  outboxClaim({ database }, input) {
    const { owner, channel, account, lease } = input;
    return runOperation(
      database,
      { opId: input.opId, epoch: null },
      {
        name: "outbox_claim",
        async run(client) {
          if (lease !== undefined) await checkLease(client, lease);
          if (await isPaused(client, channel, account)) return { result: { rows: [] } };
          await client.query(
            `UPDATE parley.outbox SET state = 'dropped', settled_at = now(), error = 'expired before it could be sent'
           WHERE state = 'pending' AND channel = $1 AND account = $2 AND expires_at < now()`,
            [channel, account],
          );
          await client.query(recovery(input), [
            channel,
            account,
            owner.replica,
            owner.incarnation,
            lease !== undefined,
          ]);
          const allowance = await lockAllowance(client, input);
          if (allowance.rows === 0) return { result: { rows: [], waitMs: allowance.waitMs } };
          if (input.previews === true) await resolvePreviews(client, input);
          const tolerances = [
            input.rates?.conversations?.map(({ pattern }) => pattern) ?? [],
            input.rates?.conversations?.map(({ burst, everyMs }) => (burst - 1) * everyMs) ?? [],
          ];
          const { rows } = await client.query<Row>({
            ...claimRows,
            values: [channel, account, owner.replica, owner.incarnation, input.claimMs, allowance.rows, ...tolerances],
          });
          const conversations = rows.map(({ conversation }) => conversation);
          await debit(client, input, conversations);
          if (input.previews === true) await supersedePreviews(client, input, conversations);
          if (input.filesWithText === true) await joinFiles(client, rows);
          const next = await client.query<{ wait_ms: number | null }>({
            ...nextDue,
            values: [channel, account, ...tolerances],
          });
          const waitMs = next.rows[0]?.wait_ms ?? null;
          const claimed = rows.sort((a, b) => a.id - b.id).map(outboxRowOf);
          // An empty claim changes nothing, so it needs no memo.
          return {
            result: { rows: claimed, ...(waitMs === null ? {} : { waitMs }) },
            ...(rows.length === 0 ? {} : { memo: { ids: rows.map((row) => row.id) } }),
          };
        },
        async replay(client, memo) {
          const { rows } = await client.query<Row>(
            `SELECT ${columns} FROM parley.outbox WHERE id = ANY($1::bigint[]) AND state = 'sending' AND claim_incarnation = $2 ORDER BY id`,
            [(memo as { ids: number[] }).ids, owner.incarnation],
          );
          return { rows: rows.map(outboxRowOf) };
        },
      },
    );
  },

  outboxSettle({ database }, input) {
    const { outcome } = input;
    return runOperation(
      database,
      { opId: input.opId, epoch: null },
      {
        name: "outbox_settle",
        async run(client) {
          const { rows } = await client.query<ReplyAddress>({
            ...settleRow,
            values: [
              input.outboxId,
              input.owner.incarnation,
              outcome.state,
              "providerMessageId" in outcome ? outcome.providerMessageId : null,
              "reason" in outcome ? outcome.reason : null,
              outcome.state === "retry" ? outcome.afterMs : 0,
              "position" in outcome ? outcome.position : null,
              outcome.state === "retry" && outcome.withoutPreview === true,
              outcome.state === "sent" ? (outcome.heldAt ?? null) : null,
              outcome.state === "retry" && outcome.held === true,
            ],
          });
          const [address] = rows;
          if (address !== undefined && outcome.state === "retry" && outcome.scope !== undefined) {
            await block(client, address, outcome.afterMs, outcome.scope);
          }
          const result = { settled: address !== undefined };
          return { result, memo: result };
        },
      },
    );
  },
} satisfies Partial<Handlers>;
