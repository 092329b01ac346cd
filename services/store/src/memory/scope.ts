// Derives whose memory a turn may read from the stored root turn of its tree, never from data of the request.
import type { Sender, TrustLevel } from "@parley/contracts";
import type { PoolClient } from "../db/database.ts";
import { senderOf } from "../db/mappers.ts";

export interface Audience {
  kind: "owner" | "contact" | "none";
  /** Scope of conversations; null: none. */
  conversations: string | null;
}

/** Scope of the owner's notes. */
export const notesScope = "notes";

const nobody: Audience = { kind: "none", conversations: null };
/** Trust values that read the owner's memory, including jobs and heartbeats. */
const owners: ReadonlySet<string> = new Set(["owner", "cron", "heartbeat"]);

/**
 * `senders`: the senders of all input of the turn. A group reads no memory, because other people read along. Input of several people shares
 * no memory.
 */
export function audienceOf(trust: TrustLevel, senders: readonly Sender[]): Audience {
  if (senders.length === 0 || senders.some((sender) => sender.direct === false)) return nobody;
  if (owners.has(trust)) return { kind: "owner", conversations: "said:owner" };
  if (trust !== "user" && trust !== "guest") return nobody;
  const [only, ...others] = new Set(senders.map(contactScope));
  return only === undefined || others.length > 0 ? nobody : { kind: "contact", conversations: only };
}

function contactScope({ channel, account, contact }: Sender): string {
  return `said:${JSON.stringify([channel, account, contact.id])}`;
}

/** No memory for an unknown turn. */
export async function audienceOfTurn(client: PoolClient, turnId: string): Promise<Audience> {
  const { rows } = await client.query<{ trust: TrustLevel; sender: string }>(
    `SELECT root.trust, i.sender FROM parley.turns t
     JOIN parley.turns root ON root.id = coalesce(t.root_turn_id, t.id)
     JOIN parley.inbox i ON i.turn_id = root.id WHERE t.id = $1`,
    [turnId],
  );
  return audienceOf(
    rows[0]?.trust ?? "guest",
    rows.map(({ sender }) => senderOf(sender)),
  );
}

/** The index scopes that an audience may search. */
export function scopesOf({ kind, conversations }: Audience, sessions: boolean): string[] {
  return [...(kind === "owner" ? [notesScope] : []), ...(sessions && conversations !== null ? [conversations] : [])];
}
