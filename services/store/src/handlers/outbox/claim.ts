// Claims rows of the outbox for a sender: what is due within the limits, what a crashed sender left behind, and what the caller claimed
// without learning of it.
import { omitUndefined } from "@parley/kit";
import type { InputOf, OutboxRow, OutputOf, store } from "@parley/contracts";
import type { PoolClient } from "../../db/database.ts";
import { runOperation, type Outcome } from "../../db/operation.ts";
import { isPaused } from "../accounts/accounts.ts";
import type { Handlers } from "../handler.ts";
import { joinFiles } from "./join-files.ts";
import { checkLease } from "./lease-check.ts";
import { debit, lockAllowance } from "./limits.ts";
import { noPreviewAhead, resolvePreviews, supersedePreviews } from "./previews.ts";

type ClaimInput = InputOf<typeof store.outboxClaim>;
type Claim = OutputOf<typeof store.outboxClaim>;

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
// connection. What the caller itself claimed and does not know was never sent: `returnUnknown` returns it.
const leftBehind = `
  state = 'sending' AND channel = $1 AND account = $2
  AND (claim_until < now() OR (claim_replica = $3 AND claim_incarnation <> $4) OR ($5 AND claim_incarnation <> $4))
  AND ($6::bigint[] IS NULL OR claim_incarnation <> $4 OR id = ANY($6))`;

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

/** Rows that the caller claimed and does not know, because the response of the claim did not reach it; their claim begins again. */
const returnUnknown = {
  name: "outbox-claim-unknown",
  text: `
    UPDATE parley.outbox SET claim_until = now() + $5 * interval '1 millisecond'
    WHERE state = 'sending' AND claim_incarnation = $3 AND id IN (
      SELECT id FROM (
        SELECT id, sum(octet_length(body)) OVER (ORDER BY id) - octet_length(body) AS bytes_before FROM parley.outbox
        WHERE state = 'sending' AND channel = $1 AND account = $2 AND claim_incarnation = $3 AND id <> ALL($4::bigint[])
        ORDER BY id LIMIT $6
      ) AS lost WHERE bytes_before < ${maxClaimBytes}
    )
    RETURNING ${columns}`,
};

const nextDue = {
  name: "outbox-next-due",
  text: `SELECT extract(epoch FROM min(due_at) - now())::float8 * 1000 AS wait_ms
         FROM (${heads("$3", "$4")}) AS head WHERE state = 'pending' AND due_at > now()`,
};

/** What becomes of the rows of a crashed sender. */
function recovery({ deduplicates, continues }: ClaimInput): string {
  const crashed = "the sender crashed while sending";
  if (deduplicates) return `UPDATE parley.outbox SET state = 'pending', error = '${crashed}' WHERE ${leftBehind}`;
  return continues === true
    ? `UPDATE parley.outbox SET state = 'pending', interrupted = true, not_before = now() WHERE ${leftBehind}`
    : `UPDATE parley.outbox SET state = 'unknown', settled_at = now(), error = '${crashed}' WHERE ${leftBehind}`;
}

async function claim(client: PoolClient, input: ClaimInput): Promise<Outcome<Claim>> {
  const { owner, channel, account, lease, unsettled, claimMs, limit } = input;
  if (lease !== undefined) await checkLease(client, lease);
  if (await isPaused(client, channel, account)) return { result: { rows: [] } };
  await client.query(
    `UPDATE parley.outbox SET state = 'dropped', settled_at = now(), error = 'expired before it could be sent' || coalesce(': ' || error, '')
     WHERE state = 'pending' AND channel = $1 AND account = $2 AND expires_at < now()`,
    [channel, account],
  );
  const crashed = [channel, account, owner.replica, owner.incarnation, lease !== undefined, unsettled ?? null];
  await client.query(recovery(input), crashed);
  const allowance = await lockAllowance(client, input);
  const { rows, waitMs } =
    allowance.rows === 0 ? { rows: [], waitMs: allowance.waitMs } : await take(client, input, allowance.rows);
  // After the claim: it waits for an earlier attempt of the same request, which may have taken the rows.
  if (unsettled !== undefined) {
    const known = [...unsettled, ...rows.map(({ id }) => id)];
    const lost = await client.query<Row>({
      ...returnUnknown,
      values: [channel, account, owner.incarnation, known, claimMs, limit],
    });
    rows.push(...lost.rows);
  }
  return {
    result: { rows: rows.sort((a, b) => a.id - b.id).map(outboxRowOf), ...omitUndefined({ waitMs }) },
    // An empty claim changes nothing, so it needs no memo.
    ...(rows.length === 0 ? {} : { memo: { ids: rows.map((row) => row.id) } }),
  };
}

/** Claims the rows that are due, at most `limit`. `waitMs`: when the next one is due. */
async function take(
  client: PoolClient,
  input: ClaimInput,
  limit: number,
): Promise<{ rows: Row[]; waitMs: number | undefined }> {
  const { owner, channel, account, rates, claimMs } = input;
  if (input.previews === true) await resolvePreviews(client, input);
  const tolerances = [
    rates?.conversations?.map(({ pattern }) => pattern) ?? [],
    rates?.conversations?.map(({ burst, everyMs }) => (burst - 1) * everyMs) ?? [],
  ];
  const { rows } = await client.query<Row>({
    ...claimRows,
    values: [channel, account, owner.replica, owner.incarnation, claimMs, limit, ...tolerances],
  });
  const conversations = rows.map(({ conversation }) => conversation);
  await debit(client, input, conversations);
  if (input.previews === true) await supersedePreviews(client, input, conversations);
  if (input.filesWithText === true) await joinFiles(client, rows);
  const next = await client.query<{ wait_ms: number | null }>({
    ...nextDue,
    values: [channel, account, ...tolerances],
  });
  return { rows, waitMs: next.rows[0]?.wait_ms ?? undefined };
}

export const claimHandlers = {
  outboxClaim({ database }, input) {
    return runOperation(
      database,
      { opId: input.opId, epoch: null },
      {
        name: "outbox_claim",
        run: (client) => claim(client, input),
        async replay(client, memo) {
          const { rows } = await client.query<Row>(
            `SELECT ${columns} FROM parley.outbox WHERE id = ANY($1::bigint[]) AND state = 'sending' AND claim_incarnation = $2 ORDER BY id`,
            [(memo as { ids: number[] }).ids, input.owner.incarnation],
          );
          return { rows: rows.map(outboxRowOf) };
        },
      },
    );
  },
} satisfies Partial<Handlers>;
