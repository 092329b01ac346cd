// Messages of a group that did not mention the agent, kept until one does: that message then contains their texts as quotations, in the
// same commit. Bounded for each place, which is a group or one of its threads.
import type { InboundMessage, InputOf, store } from "@parley/contracts";
import type { PoolClient } from "../../db/database.ts";
import type { Handlers } from "../handler.ts";

/** The newest messages of a place that are kept, and the bytes of their texts together. */
const maxMessages = 50;
const maxBytes = 16_384;
/** The longest text of one message. */
const maxChars = 1_000;
const maxAuthorChars = 200;
/** How long a message is context. */
export const contextDays = 1;

export type Quote = Extract<InboundMessage["parts"][number], { type: "quote" }>;
type Context = NonNullable<InputOf<typeof store.inboxPut>["context"]>;

export const groupContextHandlers = {
  async groupKeep(
    { database },
    { channel, account, externalId, messageId, conversation, place, route, contact, text },
  ) {
    const kept = storable(text).slice(0, maxChars).toWellFormed();
    // Rows that somebody else locks are taken or deleted by them; waiting for them could end in a deadlock.
    const { rowCount } = await database.query({
      name: "group-keep",
      text: `
        WITH newest AS (
          SELECT n, row_number() OVER latest AS rank, sum(octet_length(text)) OVER latest AS bytes FROM parley.group_context
          WHERE channel = $1 AND account = $2 AND place = $6 WINDOW latest AS (ORDER BY n DESC)
        ), pruned AS (
          DELETE FROM parley.group_context WHERE n IN (
            SELECT n FROM parley.group_context WHERE n IN (SELECT n FROM newest WHERE rank >= ${maxMessages} OR bytes > $11)
            FOR UPDATE SKIP LOCKED)
        )
        INSERT INTO parley.group_context (channel, account, external_id, message_id, conversation, place, route, contact_id, author, text)
        VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)
        ON CONFLICT ON CONSTRAINT group_context_message_key DO NOTHING`,
      values: [
        channel,
        account,
        externalId,
        messageId ?? externalId,
        conversation,
        place,
        route,
        contact.id,
        storable(contact.name ?? contact.id)
          .slice(0, maxAuthorChars)
          .toWellFormed(),
        kept,
        maxBytes - Buffer.byteLength(kept),
      ],
    });
    return { kept: rowCount === 1 };
  },
} satisfies Partial<Handlers>;

/** Context that a message is about to contain. */
export interface FoundContext {
  ids: string[];
  quotes: Quote[];
}

export const noContext: FoundContext = { ids: [], quotes: [] };

interface Row {
  n: string;
  contact_id: string;
  author: string;
  text: string;
}

/** What was written in the place of a message before it, oldest first; nothing of blocked people. Locks the rows. */
export async function findContext(
  client: PoolClient,
  { channel, account, conversation, contact }: InboundMessage,
  { place }: Context,
): Promise<FoundContext> {
  // A thread's context begins with the message that opened it.
  const { rows } = await client.query<Row>({
    name: "group-context",
    text: `SELECT n, contact_id, author, text FROM parley.group_context g
           WHERE channel = $1 AND account = $2 AND (place = $3 OR conversation = $4) AND text IS NOT NULL
             AND created_at > now() - interval '${contextDays} days'
             AND NOT EXISTS (SELECT FROM parley.contacts c
               WHERE c.channel = $1 AND c.account = $2 AND c.contact_id = g.contact_id AND c.role = 'blocked')
           ORDER BY n DESC LIMIT ${maxMessages} FOR UPDATE OF g`,
    values: [channel, account, place, conversation],
  });
  let bytes = 0;
  const kept = rows.filter(({ text }) => (bytes += Buffer.byteLength(text)) <= maxBytes).toReversed();
  const quotes = kept.map(({ contact_id: contactId, author, text }): Quote => {
    const ofSender = contactId === contact.id ? { ofSender: true } : {};
    return { type: "quote", earlier: true, author, text, ...ofSender };
  });
  return { ids: rows.map(({ n }) => n), quotes };
}

/** A message contains these texts. */
export async function endContext(client: PoolClient, { ids }: FoundContext): Promise<void> {
  await client.query("UPDATE parley.group_context SET text = NULL WHERE n = ANY($1)", [ids]);
}

/**
 * Drops the texts that meet a condition. Not those that a message receives at this moment: it holds their rows while it waits for the
 * session that the caller has locked.
 */
export async function dropContext(client: PoolClient, condition: string, values: string[]): Promise<void> {
  await client.query(
    `UPDATE parley.group_context SET text = NULL
     WHERE n IN (SELECT n FROM parley.group_context WHERE text IS NOT NULL AND ${condition} FOR UPDATE SKIP LOCKED)`,
    values,
  );
}

/** Applies an edit or a deletion on the platform. Only the author edits a message; others may delete it. */
export async function changeContext(
  client: PoolClient,
  { channel, account, conversation, messageId, contactId, change }: InputOf<typeof store.inboxChange>,
): Promise<void> {
  const text = change.do === "withdraw" ? null : storable(change.text).slice(0, maxChars).toWellFormed();
  await client.query(
    `UPDATE parley.group_context SET text = $5
     WHERE channel = $1 AND account = $2 AND conversation = $3 AND message_id = $4 AND text IS NOT NULL AND ($6::text IS NULL OR contact_id = $6)`,
    [channel, account, conversation, messageId, text, change.do === "withdraw" ? null : contactId],
  );
}

/** PostgreSQL stores no NUL. */
function storable(text: string): string {
  return text.replaceAll("\0", "");
}
