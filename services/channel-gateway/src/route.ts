// Which thread a message belongs to. Pure; where the answer goes is another matter and never depends on it.
import { mainSessionKey, type ContactRole, type ParleySettings } from "@parley/contracts";

export interface Whereabouts {
  channel: string;
  account: string;
  conversation: string;
  /** A conversation with one person, as opposed to a group. */
  direct: boolean;
  role: ContactRole;
}

/**
 * The route of a message: the key of the session it leads to, as long as it was not led to another one. Channel and account hold
 * no colon, so that no two conversations share a key by accident.
 */
export function sessionKeyOf(policy: ParleySettings["session"]["policy"], from: Whereabouts): string {
  if (policy === "singleton" && from.role === "owner" && from.direct) return mainSessionKey;
  return conversationKey(from);
}

/** The key of the session that a conversation has to itself. */
export function conversationKey({ channel, account, conversation }: Omit<Whereabouts, "direct" | "role">): string {
  return `${channel}:${account}:${conversation}`;
}
