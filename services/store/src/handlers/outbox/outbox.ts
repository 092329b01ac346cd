// The outbox: `pending → sending → sent | unknown | dropped`. A row is claimed before it is sent, one per conversation at a time, which
// preserves the order and detects possible duplicates.
import { faultPoint } from "@parley/chassis";
import { type store, WireError, type OutputOf, type ReplyAddress } from "@parley/contracts";
import { withClient } from "../../db/database.ts";
import { singleRow, runOperation } from "../../db/operation.ts";
import { announceOutgoing, enqueueStandalone } from "./enqueue.ts";
import { claimHandlers } from "./claim.ts";
import { block } from "./limits.ts";
import { heldTextHandlers } from "./held-texts.ts";
import { previewHandlers } from "./previews.ts";
import type { Handlers } from "../handler.ts";

/** `store.outbox.find` reads so many of the newest texts, and returns so much of one. */
const findableTexts = 5_000;
const foundTextChars = 2_000;

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
  ...claimHandlers,
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

  async outboxOpen({ database }, { accounts }) {
    const { rows } = await database.query<{ account: string }>({
      name: "outbox-open",
      text: `SELECT each AS account FROM unnest($1::text[]) AS each,
               LATERAL (SELECT split_part(each, ':', 1) AS channel, substr(each, strpos(each, ':') + 1) AS account) AS one
             WHERE EXISTS (SELECT FROM parley.outbox o
                           WHERE o.channel = one.channel AND o.account = one.account AND o.state IN ('pending', 'sending'))
                OR EXISTS (SELECT FROM parley.previews p WHERE p.channel = one.channel AND p.account = one.account)`,
      values: [accounts],
    });
    return { accounts: rows.map(({ account }) => account) };
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
