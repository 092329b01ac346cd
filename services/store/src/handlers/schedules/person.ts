// The person whom a job belongs to: the sender of the messages that the creating turn answers. Their job runs only while they are let in.
import {
  admissionOf,
  PeoplePolicySchema,
  routeOfKey,
  WireError,
  type Admission,
  type JobPerson,
  type ReplyAddress,
  type Schedule,
  type Sender,
} from "@parley/contracts";
import type { PoolClient, Queryable } from "../../db/database.ts";
import { addressOf, senderOf } from "../../db/mappers.ts";
import { singleRow } from "../../db/operation.ts";
import { personKey, personOf } from "../../schedule/rows.ts";
import { nextDue, type Recurrence } from "../../schedule/recurrence.ts";

/** Minimum time between two runs of a job of a person other than the owner. */
const minIntervalMs = 60_000;

/** A job's person with what its input needs. */
export interface JobOwner {
  key: string;
  sender: Sender;
  /** Of the conversation's session. */
  route: string;
  /** Of the conversation's session; a session that a run has to create gets it too. */
  profile: string | null;
  replyTo: ReplyAddress | null;
}

/**
 * The person whose messages a turn answers. `changes`: the turn creates, changes or runs jobs. Throws INVALID_INPUT when there is no such
 * person, when there are several, and for a change by a job's own turn.
 */
export async function ownerOfTurn(client: Queryable, turnId: string, changes: boolean): Promise<JobOwner> {
  const { rows } = await client.query<{
    sender: string;
    reply_to: string | null;
    key: string;
    profile: string | null;
  }>(
    `SELECT i.sender, i.reply_to, s.key, s.profile FROM parley.inbox i JOIN parley.sessions s ON s.id = i.session_id
     WHERE i.turn_id = $1 ORDER BY i.seq`,
    [turnId],
  );
  const first = rows[0];
  if (first === undefined) throw new WireError("INVALID_INPUT", "nobody wrote a message to this turn");
  const senders = rows.map(({ sender }) => senderOf(sender));
  const sender = senderOf(first.sender);
  if (senders.some(({ role, origin }) => role !== "user" || (origin !== "user" && origin !== "cron")))
    throw new WireError("INVALID_INPUT", "only people whom the owner let in have jobs");
  if (senders.some((each) => keyOf(each) !== keyOf(sender)))
    throw new WireError(
      "INVALID_INPUT",
      "several people wrote to this turn: each has to ask in a message of their own",
    );
  if (changes && senders.some(({ origin }) => origin === "cron"))
    throw new WireError("INVALID_INPUT", "a job may list and remove jobs, but not create, change or run them");
  const { profile } = first;
  return { key: keyOf(sender), sender, route: routeOfKey(first.key), profile, replyTo: addressOf(first.reply_to) };
}

function keyOf({ channel, account, contact }: Sender): string {
  return personKey({ channel, account, contactId: contact.id });
}

/** The key of the turn's person, to filter jobs by; null without a turn: any job. */
export async function keyOfTurn(
  client: Queryable,
  turnId: string | undefined,
  changes: boolean,
): Promise<string | null> {
  return turnId === undefined ? null : (await ownerOfTurn(client, turnId, changes)).key;
}

/** Throws INVALID_INPUT if the person has `limit` upcoming jobs. Their creations are serialized until the commit. */
export async function assertBelowLimit(client: PoolClient, key: string, limit: number | undefined): Promise<void> {
  if (limit === undefined) return;
  await client.query("SELECT pg_advisory_xact_lock(hashtextextended($1, 0))", [`jobs of ${key}`]);
  const { rows } = await client.query<{ count: number }>(
    "SELECT count(*)::int AS count FROM parley.schedules WHERE person_key = $1 AND next_due IS NOT NULL",
    [key],
  );
  if (singleRow(rows).count < limit) return;
  const why = limit === 0 ? "only the owner may have jobs" : `at most ${limit} upcoming jobs are allowed; remove one`;
  throw new WireError("INVALID_INPUT", why);
}

/** Throws INVALID_INPUT if a person's job ran too often. */
export function assertRareEnough(when: Recurrence, timeZone: string, now: number): void {
  let before = nextDue(when, timeZone, now, now);
  for (let n = 0; n < 60 && before !== null; n += 1) {
    const next = nextDue(when, timeZone, now, before);
    if (next !== null && next - before < minIntervalMs)
      throw new WireError("INVALID_INPUT", `schedule: at least ${minIntervalMs / 1_000} seconds between two runs`);
    before = next;
  }
}

type PersonRow = { person: string | null };

/**
 * Whether each of these jobs may run: its person is listed in the settings, or a stored contact that was let in. `told`: what the caller's
 * settings say about the job's person, by job.
 */
export async function admittedJobs(
  client: Queryable,
  jobs: readonly (PersonRow & Pick<Schedule, "id">)[],
  sentAdmissions: ReadonlyMap<string, Admission | undefined>,
): Promise<ReadonlySet<string>> {
  const people = jobs.map(({ id, person }) => ({ id, person: personOf(person) }));
  const known = await storedPeople(
    client,
    people.flatMap(({ person }) => person ?? []),
  );
  return new Set(
    people.flatMap(({ id, person }) =>
      person === undefined || isAdmitted(person, sentAdmissions.get(id), known) ? [id] : [],
    ),
  );
}

interface StoredPerson {
  role: string | null;
  /** JSON; null: the store has no settings of this account. */
  settings: string | null;
}

async function storedPeople(client: Queryable, people: readonly JobPerson[]): Promise<Map<string, StoredPerson>> {
  if (people.length === 0) return new Map();
  const { rows } = await client.query<StoredPerson & Pick<JobPerson, "channel" | "account" | "contactId">>(
    `SELECT w.channel, w.account, w.contact_id AS "contactId", c.role, a.settings
     FROM unnest($1::text[], $2::text[], $3::text[]) AS w(channel, account, contact_id)
     LEFT JOIN parley.contacts c USING (channel, account, contact_id)
     LEFT JOIN parley.channel_accounts a USING (channel, account)`,
    [
      people.map(({ channel }) => channel),
      people.map(({ account }) => account),
      people.map(({ contactId }) => contactId),
    ],
  );
  return new Map(rows.map((row) => [personKey(row), row]));
}

function isAdmitted(
  person: JobPerson,
  sentAdmission: Admission | undefined,
  known: ReadonlyMap<string, StoredPerson>,
): boolean {
  const stored = known.get(personKey(person));
  const admission = sentAdmission ?? storedAdmission(person, stored?.settings ?? null);
  if (admission === "if_paired") return stored?.role === "user" || stored?.role === "owner";
  return admission === "listed";
}

/** Without settings nobody is let in: the account was removed. */
function storedAdmission(person: JobPerson, settings: string | null): Admission {
  const policy = PeoplePolicySchema.safeParse(settings === null ? undefined : JSON.parse(settings));
  return policy.success ? admissionOf(policy.data, person) : "never";
}
