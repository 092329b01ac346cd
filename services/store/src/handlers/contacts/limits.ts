// Limits of people: messages a minute, turns and dollars a day. A message is checked and counted in the transaction that stores it, under a
// lock of its person, so that the limits hold over all replicas. Only messages to which a limit applies are counted.
import { newId, type InboundMessage, type InputOf, type Outgoing, type store } from "@parley/contracts";
import type { Database, PoolClient } from "../../db/database.ts";
import { singleRow } from "../../db/operation.ts";
import { enqueueStandalone } from "../outbox/enqueue.ts";
import type { Handlers } from "../handler.ts";

/** A person with the limits that apply to them. */
export interface Allowance {
  person: readonly [channel: string, account: string, contactId: string];
  limits: store.PersonLimits;
}

type OwnLimits = { [K in keyof store.PersonLimits]: number | null };

const ownColumns = `messages_per_minute AS "messagesPerMinute", turns_per_day AS "turnsPerDay", usd_per_day AS "usdPerDay"`;

/** The limits of a message's sender: their own ones, else those of their role. Undefined: none applies. */
export async function allowanceOf(
  database: Database,
  { channel, account }: InboundMessage,
  { personId, defaults }: NonNullable<InputOf<typeof store.inboxPut>["limits"]>,
): Promise<Allowance | undefined> {
  const person = [channel, account, personId] as const;
  const { rows } = await database.query<OwnLimits>({
    name: "person-limits",
    text: `SELECT ${ownColumns} FROM parley.person_limits WHERE channel = $1 AND account = $2 AND contact_id = $3`,
    values: [...person],
  });
  const limits = {
    messagesPerMinute: rows[0]?.messagesPerMinute ?? defaults.messagesPerMinute,
    turnsPerDay: rows[0]?.turnsPerDay ?? defaults.turnsPerDay,
    usdPerDay: rows[0]?.usdPerDay ?? defaults.usdPerDay,
  };
  return Object.values(limits).some((limit) => limit > 0) ? { person, limits } : undefined;
}

/** Waits for the other messages of the person: they are checked one after the other. */
export async function lockPerson(client: PoolClient, { person }: Allowance): Promise<void> {
  await client.query("SELECT pg_advisory_xact_lock(hashtextextended($1, 0))", [`person ${JSON.stringify(person)}`]);
}

/**
 * Of the messages since midnight UTC and in the last minute. A message that no turn has read counts as a turn unless it was cancelled, and
 * so does one that was deleted.
 */
const counted = `
  counted AS (
    SELECT p.channel, p.account, p.contact_id, p.inbox_id, p.at, coalesce(i.turn_id, p.inbox_id) AS turn_id,
           p.at >= clock.today AND NOT (i.turn_id IS NULL AND i.state IS NOT DISTINCT FROM 'cancelled') AS is_turn
    FROM clock, parley.person_messages p LEFT JOIN parley.inbox i ON i.id = p.inbox_id
    WHERE p.at >= least(clock.today, clock.now - interval '1 minute')`;

const clock = "clock AS (SELECT clock_timestamp() AS now, date_trunc('day', clock_timestamp(), 'UTC') AS today)";

const usage = {
  name: "person-usage",
  text: `
    WITH ${clock}, ${counted} AND p.channel = $1 AND p.account = $2 AND p.contact_id = $3), begun AS (
      SELECT DISTINCT turn_id FROM counted WHERE is_turn
    ), tree AS (
      SELECT t.cost_micros FROM begun JOIN parley.turns t ON t.id = begun.turn_id
      UNION ALL SELECT t.cost_micros FROM begun JOIN parley.turns t ON t.root_turn_id = begun.turn_id
    )
    SELECT (SELECT count(*) FROM begun)::int AS turns, (SELECT coalesce(sum(cost_micros), 0) FROM tree)::bigint AS micros,
           (SELECT extract(epoch FROM at + interval '1 minute' - now) * 1000 FROM counted
            WHERE at > now - interval '1 minute' ORDER BY at DESC OFFSET greatest($4 - 1, 0) LIMIT 1)::float8 AS minute_ms,
           (extract(epoch FROM today + interval '1 day' - now) * 1000)::float8 AS day_ms
    FROM clock`,
};

interface Usage {
  turns: number;
  micros: number;
  /** Until the oldest of the last `messagesPerMinute` messages is a minute old; null: there are fewer. */
  minute_ms: number | null;
  day_ms: number;
}

type Reached = Pick<store.OverLimit, "limit" | "retryAfterMs">;

/**
 * The limit that a further message of the person would exceed; undefined: none. `answers`: whether it answers a question, which starts no
 * turn.
 */
export async function limitReached(
  client: PoolClient,
  { person, limits }: Allowance,
  answers: () => Promise<boolean>,
): Promise<Reached | undefined> {
  const { messagesPerMinute, turnsPerDay, usdPerDay } = limits;
  const { rows } = await client.query<Usage>({ ...usage, values: [...person, messagesPerMinute] });
  const { turns, micros, minute_ms: minuteMs, day_ms: dayMs } = singleRow(rows);
  const after = (limit: store.PersonLimitName, ms: number) => ({ limit, retryAfterMs: Math.max(1, Math.ceil(ms)) });
  if (messagesPerMinute > 0 && minuteMs !== null) return after("messages_per_minute", minuteMs);
  const isOver = {
    turns_per_day: turnsPerDay > 0 && turns >= turnsPerDay,
    usd_per_day: usdPerDay > 0 && micros >= usdPerDay * 1_000_000,
  };
  if (!isOver.turns_per_day && !isOver.usd_per_day) return undefined;
  if (await answers()) return undefined;
  return after(isOver.turns_per_day ? "turns_per_day" : "usd_per_day", dayMs);
}

/** Counts a stored message toward the limits of its person. */
export async function countMessage(client: PoolClient, { person }: Allowance, inboxId: string): Promise<void> {
  await client.query(
    `INSERT INTO parley.person_messages (inbox_id, channel, account, contact_id, at)
     VALUES ($1, $2, $3, $4, clock_timestamp()) ON CONFLICT DO NOTHING`,
    [inboxId, ...person],
  );
}

/** A refusal that is old when it can be sent is not sent. */
const textExpiresMs = 10 * 60_000;

/**
 * Counts a refused message. The first one of its minute or day gets an entry in the audit log, and its sender is told where they wrote;
 * `outgoing` is to be announced after the commit.
 */
export async function refuseMessage(
  client: PoolClient,
  { person, limits }: Allowance,
  reached: Reached,
  { replyTo }: InboundMessage,
): Promise<{ overLimit: store.OverLimit; outgoing: Outgoing | undefined }> {
  const windowMs = reached.limit === "messages_per_minute" ? 60_000 : reached.retryAfterMs;
  const { rows } = await client.query<{ first: boolean }>(
    `WITH earlier AS (
       SELECT told_until > clock_timestamp() AS told FROM parley.person_refusals
       WHERE channel = $1 AND account = $2 AND contact_id = $3 AND limit_name = $4
     )
     INSERT INTO parley.person_refusals AS r (channel, account, contact_id, limit_name, day, refused, told_until)
     VALUES ($1, $2, $3, $4, (clock_timestamp() AT TIME ZONE 'UTC')::date, 1, clock_timestamp() + $5 * interval '1 millisecond')
     ON CONFLICT (channel, account, contact_id, limit_name) DO UPDATE SET
       refused = CASE WHEN r.day = excluded.day THEN r.refused + 1 ELSE 1 END, day = excluded.day,
       told_until = CASE WHEN r.told_until > clock_timestamp() THEN r.told_until ELSE excluded.told_until END
     RETURNING NOT coalesce((SELECT told FROM earlier), false) AS first`,
    [...person, reached.limit, windowMs],
  );
  const { first } = singleRow(rows);
  const text = refusalText(limits, reached);
  if (!first) return { overLimit: { ...reached, text, first }, outgoing: undefined };
  const [channel, account, contactId] = person;
  await client.query("INSERT INTO parley.audit_log (actor, action, target, outcome) VALUES ($1, $2, $3, $4)", [
    `${contactId} (${channel}:${account})`,
    "people.limited",
    JSON.stringify({ channel, account, contactId, limit: reached.limit }),
    "refused",
  ]);
  const outgoing = replyTo === null ? undefined : { address: replyTo, text, expiresInMs: textExpiresMs };
  // `first` holds for one message only, so the id only has to be unique.
  if (outgoing !== undefined) await enqueueStandalone(client, newId(), outgoing);
  return { overLimit: { ...reached, text, first }, outgoing };
}

function refusalText(
  { messagesPerMinute, turnsPerDay, usdPerDay }: store.PersonLimits,
  { limit, retryAfterMs }: Reached,
) {
  if (limit === "messages_per_minute") {
    const seconds = Math.ceil(retryAfterMs / 1_000);
    return `Message not accepted: you may send at most ${messagesPerMinute} a minute; try again in ${seconds} s.`;
  }
  const used = limit === "turns_per_day" ? `your ${turnsPerDay} requests` : `your budget ($${usdPerDay.toFixed(2)})`;
  return `Message not accepted: you have used up ${used} of today; try again after midnight UTC.`;
}

interface ListedRow extends OwnLimits {
  channel: string;
  account: string;
  contactId: string;
  name: string | null;
  messages: number;
  turns: number;
  micros: number;
  unpriced: number;
  refused: number;
}

export const personLimitHandlers = {
  async personLimitsList({ database }) {
    const { rows } = await database.query<ListedRow>(
      `WITH ${clock}, ${counted}), begun AS (
         SELECT DISTINCT channel, account, contact_id, turn_id FROM counted WHERE is_turn
       ), cost AS (
         SELECT b.channel, b.account, b.contact_id, count(DISTINCT b.turn_id)::int AS turns,
                coalesce(sum(t.cost_micros), 0)::bigint AS micros, coalesce(sum(t.unpriced_calls), 0)::int AS unpriced
         FROM begun b LEFT JOIN LATERAL (
           SELECT cost_micros, unpriced_calls FROM parley.turns WHERE id = b.turn_id
           UNION ALL SELECT cost_micros, unpriced_calls FROM parley.turns WHERE root_turn_id = b.turn_id
         ) AS t ON true GROUP BY 1, 2, 3
       ), messages AS (
         SELECT channel, account, contact_id, count(*)::int AS messages FROM counted, clock WHERE at >= today GROUP BY 1, 2, 3
       ), refusals AS (
         SELECT channel, account, contact_id, sum(refused)::int AS refused FROM parley.person_refusals, clock
         WHERE day = (today AT TIME ZONE 'UTC')::date GROUP BY 1, 2, 3
       ), people AS (
         SELECT channel, account, contact_id FROM parley.person_limits
         UNION SELECT channel, account, contact_id FROM messages UNION SELECT channel, account, contact_id FROM refusals
       )
       SELECT channel, account, contact_id AS "contactId", c.name, ${ownColumns},
              coalesce(messages, 0) AS messages, coalesce(turns, 0) AS turns, coalesce(micros, 0) AS micros,
              coalesce(unpriced, 0) AS unpriced, coalesce(refused, 0) AS refused
       FROM people LEFT JOIN parley.person_limits USING (channel, account, contact_id)
         LEFT JOIN parley.contacts c USING (channel, account, contact_id) LEFT JOIN messages USING (channel, account, contact_id)
         LEFT JOIN cost USING (channel, account, contact_id) LEFT JOIN refusals USING (channel, account, contact_id)
       ORDER BY coalesce(refused, 0) DESC, coalesce(micros, 0) DESC, coalesce(turns, 0) DESC, channel, account, contact_id LIMIT 500`,
    );
    return { people: rows.map(personOfRow) };
  },

  async personLimitsSet({ database }, { channel, account, contactId, ...change }) {
    const person = [channel, account, contactId];
    const { rows } = await database.query<OwnLimits>(
      `WITH told AS (
         UPDATE parley.person_refusals SET told_until = clock_timestamp() WHERE channel = $1 AND account = $2 AND contact_id = $3
       )
       INSERT INTO parley.person_limits AS l (channel, account, contact_id, messages_per_minute, turns_per_day, usd_per_day)
       VALUES ($1, $2, $3, $4, $5, $6)
       ON CONFLICT (channel, account, contact_id) DO UPDATE SET changed_at = now(),
         messages_per_minute = CASE WHEN $7 THEN excluded.messages_per_minute ELSE l.messages_per_minute END,
         turns_per_day = CASE WHEN $8 THEN excluded.turns_per_day ELSE l.turns_per_day END,
         usd_per_day = CASE WHEN $9 THEN excluded.usd_per_day ELSE l.usd_per_day END
       RETURNING ${ownColumns}`,
      [
        ...person,
        ...[change.messagesPerMinute, change.turnsPerDay, change.usdPerDay].map((limit) => limit ?? null),
        ...[change.messagesPerMinute, change.turnsPerDay, change.usdPerDay].map((limit) => limit !== undefined),
      ],
    );
    await database.query(
      `DELETE FROM parley.person_limits WHERE channel = $1 AND account = $2 AND contact_id = $3
         AND messages_per_minute IS NULL AND turns_per_day IS NULL AND usd_per_day IS NULL`,
      person,
    );
    return { own: singleRow(rows) };
  },
} satisfies Partial<Handlers>;

function personOfRow(row: ListedRow): store.LimitedPerson {
  const { channel, account, contactId, name, messagesPerMinute, turnsPerDay, usdPerDay, micros, unpriced, ...today } =
    row;
  const { messages, turns, refused } = today;
  return {
    channel,
    account,
    contactId,
    name,
    own: { messagesPerMinute, turnsPerDay, usdPerDay },
    today: { messages, turns, usd: micros / 1_000_000, unpricedCalls: unpriced, refused },
  };
}
