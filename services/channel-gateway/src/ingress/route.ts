// Maps a message to its session key. Pure; the reply address does not depend on it.
import { mainSessionKey, type ContactRole, type ParleySettings } from "@parley/contracts";

export interface ConversationRef {
  channel: string;
  account: string;
  conversation: string;
  /** A conversation with one person, as opposed to a group. */
  direct: boolean;
  role: ContactRole;
}

/**
 * Returns the route of a message: the key of its session, unless the route was bound to another one. Channel and account contain no
 * colon, so two conversations never share a key.
 */
export function sessionKeyOf(policy: ParleySettings["session"]["policy"], from: ConversationRef): string {
  if (policy === "singleton" && from.role === "owner" && from.direct) return mainSessionKey;
  return conversationKey(from);
}

/** The key of the session that belongs to one conversation alone. */
export function conversationKey({ channel, account, conversation }: Omit<ConversationRef, "direct" | "role">): string {
  return `${channel}:${account}:${conversation}`;
}
