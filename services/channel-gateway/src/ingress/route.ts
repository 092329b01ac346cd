// Decides to which session a message belongs, and its queue mode when that session is busy. Pure; the reply address does not depend on it.
import { mainSessionKey, type ContactRole, type Origin, type ParleySettings, type QueueMode } from "@parley/contracts";

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
export function sessionKeyOf({ policy, share }: Routing, from: ConversationRef): string {
  const joins =
    policy === "singleton" &&
    (from.direct ? from.role === "owner" || share.includes("users") : share.includes("groups"));
  return joins ? mainSessionKey : conversationKey(from);
}

type Routing = Pick<ParleySettings["session"], "policy" | "share">;

/** Whether deliveries of a webhook join the owner's thread. */
export function joinsMain({ policy, share }: Routing, target: string | undefined): boolean {
  return target === undefined ? policy === "singleton" && share.includes("webhooks") : target === "main";
}

/** Whether a message in the thread of its key comes from somebody else than the owner in person; it then never joins a running turn. */
export function isShared(sessionKey: string, { direct, role }: Pick<ConversationRef, "direct" | "role">): boolean {
  return sessionKey === mainSessionKey && !(direct && role === "owner");
}

/** The key of the session that belongs to one conversation alone. */
export function conversationKey({ channel, account, conversation }: Omit<ConversationRef, "direct" | "role">): string {
  return `${channel}:${account}:${conversation}`;
}

/**
 * The mode of the message takes precedence, then the session's, then the configured one. Messages from machines always queue for their
 * own turn. So do messages whose caller waits for the answer (`exclusive`), unless the message names a mode.
 */
export function queueModeOf(message: {
  origin: Origin;
  requested: QueueMode | undefined;
  exclusive: boolean;
  session: QueueMode | null;
  setting: QueueMode;
}): QueueMode {
  if (message.origin !== "user") return "queue";
  if (message.exclusive) return message.requested ?? "queue";
  return message.requested ?? message.session ?? message.setting;
}

/**
 * The mode that a person's message asks for; undefined: none. Parts of an album wait for each other. `shared`: the thread belongs to
 * somebody else, whose running turn the message neither joins nor stops.
 */
export function requestedModeOf(
  asked: QueueMode | undefined,
  message: { shared: boolean; album: boolean | undefined; setting: QueueMode },
): QueueMode | undefined {
  const { shared, album = false, setting } = message;
  if (shared) return album || setting === "coalesce" ? "coalesce" : "queue";
  return asked ?? (album ? "coalesce" : undefined);
}

/** Whether a message in this mode may share a turn with others. Its caller then receives the answer of the joined turn. */
export function joinsOthers(mode: QueueMode): boolean {
  return mode === "steer" || mode === "coalesce";
}
