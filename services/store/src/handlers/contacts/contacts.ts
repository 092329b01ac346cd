// Admitted contacts and pairing requests.
import { newId, type ContactRole, type store, WireError, type ReplyAddress } from "@parley/contracts";
import { oneLine } from "@parley/kit";
import { and, eq, gt, sql } from "drizzle-orm";
import { contacts, pairings } from "../../db/schema/index.ts";
import type { PoolClient } from "../../db/database.ts";
import { runChange, runTransaction, singleRow } from "../../db/operation.ts";
import { announceOutgoing, enqueueStandalone } from "../outbox/enqueue.ts";
import { ownerAddress } from "../outbox/owner-address.ts";
import type { Handlers } from "../handler.ts";

const columns = 'channel, account, contact_id AS "contactId", name, role, route';

const maxNameChars = 60;

/** Maximum open codes per account: limits floods of requests from unknown people. */
const maxOpenPairings = 3;

/** How long a request keeps its place while others ask: untrusted senders block pairing for at most this time. */
const keepsPlaceMs = 10 * 60_000;

export const contactHandlers = {
  async contactGet({ database }, input) {
    const rows = await database.orm
      .select({
        channel: contacts.channel,
        account: contacts.account,
        contactId: contacts.contactId,
        name: contacts.name,
        role: contacts.role,
        route: contacts.route,
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
  },

  async contactList({ database }) {
    const { rows } = await database.query<store.Contact>(
      `SELECT ${columns} FROM parley.contacts ORDER BY created_at DESC LIMIT 500`,
    );
    return { contacts: rows };
  },

  async contactSet({ database }, { channel, account, contactId, name, role }) {
    const { rows } = await database.query<store.Contact>(
      `WITH request AS (
         DELETE FROM parley.pairings WHERE channel = $1 AND account = $2 AND contact_id = $3 RETURNING name
       )
       INSERT INTO parley.contacts (channel, account, contact_id, name, role)
       VALUES ($1, $2, $3, coalesce($4, (SELECT name FROM request)), $5)
       ON CONFLICT (channel, account, contact_id) DO UPDATE
       SET role = excluded.role, name = coalesce($4, contacts.name)
       RETURNING ${columns}`,
      [channel, account, contactId, name, role],
    );
    return { contact: singleRow(rows) };
  },

  async contactRemove({ database }, { opId, channel, account, contactId }) {
    return runChange(database, "contact_remove", opId, async (client) => {
      const { rowCount } = await client.query(
        "DELETE FROM parley.contacts WHERE channel = $1 AND account = $2 AND contact_id = $3",
        [channel, account, contactId],
      );
      return { removed: rowCount === 1 };
    });
  },

  async pairingRequest({ database, bus }, input) {
    const recipients: Pick<ReplyAddress, "channel" | "account">[] = [];
    const status = await runTransaction(database, async (client) => {
      // Serialize the requests of an account, so that the limit holds.
      await client.query("SELECT pg_advisory_xact_lock(hashtextextended($1, 0))", [
        `pairing ${input.channel} ${input.account}`,
      ]);
      await client.query("DELETE FROM parley.pairings WHERE expires_at < now()");
      const open = await client.query<{ contact_id: string }>(
        "SELECT contact_id FROM parley.pairings WHERE channel = $1 AND account = $2",
        [input.channel, input.account],
      );
      if (open.rows.some((row) => row.contact_id === input.contactId)) return "pending";
      if (open.rows.length >= maxOpenPairings && !(await withdrawOldest(client, input))) return "full";
      await client.query(
        `INSERT INTO parley.pairings (channel, account, contact_id, name, code_sha256, expires_at)
         VALUES ($1, $2, $3, $4, $5, now() + $6 * interval '1 millisecond')`,
        [input.channel, input.account, input.contactId, input.name, input.codeSha256, input.ttlMs],
      );
      // A retry gets `pending`, so the id only has to be unique.
      if (input.outgoing !== undefined) {
        await enqueueStandalone(client, newId(), input.outgoing);
        recipients.push(input.outgoing.address);
      }
      const owner = input.toOwner === undefined ? null : await ownerAddress(client);
      if (input.toOwner !== undefined && owner !== null) {
        await enqueueStandalone(client, newId(), { ...input.toOwner, address: owner });
        recipients.push(owner);
      }
      return "created";
    });
    announceOutgoing(bus, recipients);
    return { status };
  },

  async pairingList({ database }) {
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
  },

  async pairingApprove({ database }, { opId, codeSha256, role }) {
    return runChange(database, "pairing_approve", opId, async (client) => ({
      contact: await admit(client, { codeSha256, role, route: null }),
    }));
  },

  async contactLink({ database, bus }, { opId, toOwner, ...admission }) {
    const { contact, owner } = await runChange(database, "contact_link", opId, async (client) => {
      const linked = await admit(client, admission);
      const address = toOwner === undefined ? null : await ownerAddress(client);
      if (toOwner === undefined || address === null) return { contact: linked, owner: null };
      const { name, contactId, channel, account } = linked;
      const text = `${toOwner.text} ${oneLine(name ?? contactId, maxNameChars)} (${contactId}) on ${channel}:${account}`;
      // Without an operation id a retry finds no code, so the id only has to be unique.
      await enqueueStandalone(client, newId(), { ...toOwner, text, address });
      return { contact: linked, owner: address };
    });
    if (owner !== null) announceOutgoing(bus, [owner]);
    return { contact };
  },
} satisfies Partial<Handlers>;

/** Deletes the oldest open request of an account if it has kept its place long enough. Returns false if none has. */
async function withdrawOldest(
  client: PoolClient,
  { channel, account, ttlMs }: { channel: string; account: string; ttlMs: number },
): Promise<boolean> {
  const { rowCount } = await client.query(
    `DELETE FROM parley.pairings WHERE code_sha256 = (
       SELECT code_sha256 FROM parley.pairings
       WHERE channel = $1 AND account = $2 AND expires_at <= now() + $3 * interval '1 millisecond'
       ORDER BY expires_at LIMIT 1
     )`,
    [channel, account, ttlMs - keepsPlaceMs],
  );
  return rowCount === 1;
}

/** Admits the person with this code. Throws NOT_FOUND when no open request has it. */
async function admit(
  client: PoolClient,
  { codeSha256, role, route }: { codeSha256: string; role: ContactRole; route: string | null },
): Promise<store.Contact> {
  await client.query("DELETE FROM parley.pairings WHERE expires_at < now()");
  const { rows } = await client.query<store.Contact>(
    `WITH request AS (
       DELETE FROM parley.pairings WHERE code_sha256 = $1 RETURNING channel, account, contact_id, name
     )
     INSERT INTO parley.contacts (channel, account, contact_id, name, role, route)
     SELECT channel, account, contact_id, name, $2, $3 FROM request
     ON CONFLICT (channel, account, contact_id) DO UPDATE
     SET role = excluded.role, name = excluded.name, route = excluded.route
     RETURNING ${columns}`,
    [codeSha256, role, route],
  );
  if (rows[0] === undefined) throw new WireError("NOT_FOUND", "no open pairing request has this code; codes expire");
  return rows[0];
}
