// Whose memory a turn may see, from what stands in the database about the turn at the top of its tree. What agent-core believes
// does not come into it.
import type { Sender } from "@parley/contracts";
import type { PoolClient } from "../database.ts";
import { senderOf } from "../rows.ts";

export interface Audience {
  kind: "owner" | "contact" | "none";
  /** Of what was said; null: nobody's. */
  said: string | null;
}

/** Of the owner's notes. */
export const notesScope = "notes";

const nobody: Audience = { kind: "none", said: null };
/** Jobs and the agent's own doings are the owner's. */
const owners: ReadonlySet<string> = new Set(["owner", "cron", "heartbeat"]);

/**
 * `senders`: of all the input of the turn. In a group nobody's memory is shown: others read along. Input of several people
 * has no memory in common.
 */
export function audienceOf(trust: string, senders: readonly Sender[]): Audience {
  if (senders.length === 0 || senders.some((sender) => sender.direct === false)) return nobody;
  if (owners.has(trust)) return { kind: "owner", said: "said:owner" };
  if (trust !== "user" && trust !== "guest") return nobody;
  const [said, ...others] = new Set(senders.map(contactScope));
  return said === undefined || others.length > 0 ? nobody : { kind: "contact", said };
}

function contactScope({ channel, account, contact }: Sender): string {
  return `said:${JSON.stringify([channel, account, contact.id])}`;
}

/** Nobody's memory for a turn that is not there. */
export async function audienceOfTurn(client: PoolClient, turnId: string): Promise<Audience> {
  const { rows } = await client.query<{ trust: string; sender: string }>(
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

/** The scopes of the index that an audience is answered from. */
export function scopesOf({ kind, said }: Audience, sessions: boolean): string[] {
  return [...(kind === "owner" ? [notesScope] : []), ...(sessions && said !== null ? [said] : [])];
}
