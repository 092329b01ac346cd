// How fast an account may send: rates of the account and of each conversation, and the pauses that the platform demanded. All replicas share
// them. A rate is kept as the time at which its burst is full again, so one column per account or conversation is enough.
import type { InputOf, store } from "@parley/contracts";
import type { PoolClient } from "../../db/database.ts";

type ClaimInput = InputOf<typeof store.outboxClaim>;

/** What a claim may take now. */
export interface Allowance {
  /** Rows. */
  rows: number;
  /** How long the account must wait when `rows` is 0. */
  waitMs: number;
}

/** Returns how many rows the account may claim; its rates stay locked until the end of the transaction. */
export async function lockAllowance(client: PoolClient, input: ClaimInput): Promise<Allowance> {
  const { channel, account, limit, rates } = input;
  if (rates !== undefined || input.previews === true) await lockLimits(client, input);
  const { rows } = await client.query<{ ahead_ms: number; blocked_ms: number; was_blocked: boolean }>({
    name: "send-limits-account",
    text: `SELECT greatest(0, extract(epoch FROM next_at - now()) * 1000)::float8 AS ahead_ms,
                  greatest(0, coalesce(extract(epoch FROM blocked_until - now()) * 1000, 0))::float8 AS blocked_ms,
                  coalesce(blocked_until <= now(), false) AS was_blocked
           FROM parley.send_limits WHERE channel = $1 AND account = $2 AND conversation = ''`,
    values: [channel, account],
  });
  const { ahead_ms: aheadMs, blocked_ms: blockedMs } = rows[0] ?? { ahead_ms: 0, blocked_ms: 0 };
  if (blockedMs > 0) return { rows: 0, waitMs: blockedMs };
  if (rates?.account === undefined) return { rows: limit, waitMs: 0 };
  const { burst, everyMs } = rates.account;
  if (rows[0]?.was_blocked === true) return resumeGently(client, input, (burst - 1) * everyMs);
  const free = Math.floor((burst * everyMs - aheadMs) / everyMs);
  return { rows: Math.min(limit, Math.max(0, free)), waitMs: aheadMs - (burst - 1) * everyMs };
}

/**
 * The first claim after a pause: one row, and then one per interval, because the platform may still refuse and a burst would meet it on every
 * replica. `burstMs`: the time in which all of the burst but one message becomes free again.
 */
async function resumeGently(client: PoolClient, { channel, account }: ClaimInput, burstMs: number): Promise<Allowance> {
  await client.query(
    `UPDATE parley.send_limits
     SET next_at = greatest(next_at, now() + $3 * interval '1 millisecond'), blocked_until = NULL
     WHERE channel = $1 AND account = $2 AND conversation = ''`,
    [channel, account, burstMs],
  );
  return { rows: 1, waitMs: 0 };
}

type Paced = Pick<ClaimInput, "channel" | "account" | "rates">;

/**
 * Whether a preview may be sent or edited: after the pauses, and within half of each burst, so that answers are not delayed. The
 * caller holds the lock of the limits.
 */
export async function hasRoomForPreview(client: PoolClient, input: Paced & { conversation: string }): Promise<boolean> {
  const { channel, account, conversation, rates } = input;
  const { rows } = await client.query<{ conversation: string; ahead_ms: number; is_blocked: boolean }>({
    name: "send-limits-preview",
    text: `SELECT conversation, greatest(0, extract(epoch FROM next_at - now()) * 1000)::float8 AS ahead_ms,
                  coalesce(blocked_until > now(), false) AS is_blocked
           FROM parley.send_limits WHERE channel = $1 AND account = $2 AND conversation IN ('', $3)`,
    values: [channel, account, conversation],
  });
  if (rows.some((row) => row.is_blocked)) return false;
  return rows.every((row) => {
    const rate = row.conversation === "" ? rates?.account : conversationRate(rates, conversation);
    return rate === undefined || row.ahead_ms + rate.everyMs <= Math.max(1, rate.burst / 2) * rate.everyMs;
  });
}

/** Taken before rows of limits and previews, so that their writers wait for each other in one order. */
export async function lockLimits(
  client: PoolClient,
  { channel, account }: Pick<Paced, "channel" | "account">,
): Promise<void> {
  await client.query("SELECT pg_advisory_xact_lock(hashtextextended($1, 0))", [`outbox ${channel} ${account}`]);
}

function conversationRate(rates: Paced["rates"], conversation: string) {
  return rates?.conversations?.find(({ pattern }) => new RegExp(pattern).test(conversation));
}

/** Charges the rates for messages to these conversations. */
export async function debit(client: PoolClient, input: Paced, conversations: readonly string[]): Promise<void> {
  const { channel, account, rates } = input;
  if (rates === undefined || conversations.length === 0) return;
  const charges = conversations.flatMap((conversation) => {
    const rate = conversationRate(rates, conversation);
    return rate === undefined ? [] : [{ conversation, ms: rate.everyMs }];
  });
  if (rates.account !== undefined) charges.push({ conversation: "", ms: rates.account.everyMs * conversations.length });
  if (charges.length === 0) return;
  await client.query({
    name: "send-limits-debit",
    text: `INSERT INTO parley.send_limits (channel, account, conversation, next_at)
           SELECT $1, $2, each.conversation, now() + each.ms * interval '1 millisecond'
           FROM unnest($3::text[], $4::float8[]) AS each(conversation, ms)
           ON CONFLICT (channel, account, conversation) DO UPDATE
           SET next_at = greatest(send_limits.next_at, now()) + (excluded.next_at - now())`,
    values: [channel, account, charges.map(({ conversation }) => conversation), charges.map(({ ms }) => ms)],
  });
}

/**
 * Stores a pause that the platform demanded; an earlier, longer one stays. When another conversation of the account is paused as well, the
 * platform limits the account, so the whole account pauses.
 */
export async function block(
  client: PoolClient,
  address: { channel: string; account: string; conversation: string },
  afterMs: number,
  scope: "conversation" | "account",
): Promise<void> {
  const { channel, account, conversation } = address;
  await client.query(
    `INSERT INTO parley.send_limits (channel, account, conversation, blocked_until)
     SELECT $1, $2, each, now() + $4 * interval '1 millisecond' FROM unnest(
       CASE WHEN $5 OR EXISTS (SELECT FROM parley.send_limits WHERE channel = $1 AND account = $2 AND conversation NOT IN ('', $3) AND blocked_until > now())
            THEN ARRAY[$3, ''] ELSE ARRAY[$3] END) AS each
     ON CONFLICT (channel, account, conversation) DO UPDATE
     SET blocked_until = greatest(send_limits.blocked_until, excluded.blocked_until)`,
    [channel, account, conversation, afterMs, scope === "account"],
  );
}
