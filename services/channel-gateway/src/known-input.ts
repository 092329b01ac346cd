// A text from somebody who is known, as the message that is kept of it. Pure.
import type { ApprovalAnswerer, Attachment, InboundMessage, QueueMode, ReplyAddress } from "@parley/contracts";

/**
 * `own`: the session of this one call, named by its conversation, unless `[session] synchronous` is `shared`. `named`: the session that
 * the conversation names, regardless of the policy.
 */
export const threadChoices = ["own", "named"] as const;
type ThreadChoice = (typeof threadChoices)[number];

/** A text from somebody who is known: the API's token holder, a webhook. */
export interface KnownInput {
  channel: string;
  account: string;
  conversation: string;
  externalId: string;
  text: string;
  contact: InboundMessage["contact"];
  role: InboundMessage["role"];
  origin: InboundMessage["origin"];
  replyTo: ReplyAddress | null;
  /** The sender chose the id as a key: with another text it is refused. Else the first text counts, and that is logged. */
  keyed: boolean;
  /** What is done with it while the session is busy; left out: as the session or the settings have it. */
  mode?: QueueMode | undefined;
  /** The caller waits for the answer to this input: it is a turn of its own, unless `mode` makes it join others. */
  exclusive?: boolean | undefined;
  /** Which session it belongs to, where that is not the policy's choice; left out: it is. */
  thread?: ThreadChoice | undefined;
  /** Who can answer approval questions about it; left out: the sender. */
  approvals?: ApprovalAnswerer | undefined;
  /** Content the store has. */
  attachments?: readonly Attachment[];
}

export function messageOf(input: KnownInput): InboundMessage {
  const { text, keyed: _, thread: __, mode, exclusive, approvals, attachments = [], ...rest } = input;
  const files = attachments.map((attachment) => ({ ...attachment, type: "blob" as const }));
  const said = text === "" && files.length > 0 ? [] : [{ type: "text" as const, text }];
  return {
    ...rest,
    parts: [...said, ...files],
    ...(mode === undefined ? {} : { mode }),
    ...(exclusive === true ? { exclusive } : {}),
    ...(approvals === undefined ? {} : { approvals }),
  };
}
