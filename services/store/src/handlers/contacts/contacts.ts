// Admitted contacts and pairing requests.
import { newId, type store, WireError, type InputOf, type OutputOf } from "@parley/contracts";
import { and, eq, gt, lt, sql } from "drizzle-orm";
import { withClient, type Database } from "../../db/database.ts";
import { contacts, pairings } from "../../db/schema/index.ts";
import { runTransaction } from "../../db/operation.ts";
import { enqueueStandalone } from "../outbox/enqueue.ts";

/** Maximum open codes per account: limits floods of requests from unknown people. */
const maxOpenPairings = 3;

export async function get(
  database: Database,
  input: InputOf<typeof store.contactGet>,
): Promise<OutputOf<typeof store.contactGet>> {
  const rows = await database.orm
    .select({
      channel: contacts.channel,
      account: contacts.account,
      contactId: contacts.contactId,
      name: contacts.name,
      role: contacts.role,
    })
    .from(contacts)
    .where(
      and(
        eq(contacts.channel, input.channel),
        eq(contacts.account, input.account),
        eq(contacts.contactId, input.contactId),
      ),
    );
  return { contact: rows[0] ?? null };
}

export async function requestPairing(
  database: Database,
  input: InputOf<typeof store.pairingRequest>,
): Promise<OutputOf<typeof store.pairingRequest>> {
  return runTransaction(database, async (client) => {
    // Serialize the requests of an account, so that the limit holds.
    await client.query("SELECT pg_advisory_xact_lock(hashtextextended($1, 0))", [
      `pairing ${input.channel} ${input.account}`,
    ]);
    await client.query("DELETE FROM parley.pairings WHERE expires_at < now()");
    const open = await client.query<{ contact_id: string }>(
      "SELECT contact_id FROM parley.pairings WHERE channel = $1 AND account = $2",
      [input.channel, input.account],
    );
    if (open.rows.some((row) => row.contact_id === input.contactId)) return { status: "pending" };
    if (open.rows.length >= maxOpenPairings) return { status: "full" };
    await client.query(
      `INSERT INTO parley.pairings (channel, account, contact_id, name, code_sha256, expires_at)
       VALUES ($1, $2, $3, $4, $5, now() + $6 * interval '1 millisecond')`,
      [input.channel, input.account, input.contactId, input.name, input.codeSha256, input.ttlMs],
    );
    // A retry gets `pending`, so the id only has to be unique.
    if (input.outgoing !== undefined) await enqueueStandalone(client, newId(), input.outgoing);
    return { status: "created" };
  });
}

export async function listPairings(database: Database): Promise<OutputOf<typeof store.pairingList>> {
  const rows = await database.orm
    .select({
      channel: pairings.channel,
      account: pairings.account,
      contactId: pairings.contactId,
      name: pairings.name,
      expiresAt: pairings.expiresAt,
    })
    .from(pairings)
    .where(gt(pairings.expiresAt, sql`now()`));
  return { pairings: rows };
}

export async function approvePairing(
  database: Database,
  input: InputOf<typeof store.pairingApprove>,
): Promise<OutputOf<typeof store.pairingApprove>> {
  await database.orm.delete(pairings).where(lt(pairings.expiresAt, sql`now()`));
  return withClient(database, async (client) => {
    const { rows } = await client.query<OutputOf<typeof store.pairingApprove>["contact"]>(
      `WITH request AS (
         DELETE FROM parley.pairings WHERE code_sha256 = $1 RETURNING channel, account, contact_id, name
       )
       INSERT INTO parley.contacts (channel, account, contact_id, name, role)
       SELECT channel, account, contact_id, name, $2 FROM request
       ON CONFLICT (channel, account, contact_id) DO UPDATE SET role = excluded.role, name = excluded.name
       RETURNING channel, account, contact_id AS "contactId", name, role`,
      [input.codeSha256, input.role],
    );
    if (rows[0] === undefined)
      throw new WireError("NOT_FOUND", "no open pairing request has this code; codes are valid for one hour");
    return { contact: rows[0] };
  });
}
