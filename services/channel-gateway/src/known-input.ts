// A text from somebody who is known, as the message that is kept of it. Pure.
import type { ApprovalAnswerer, Attachment, InboundMessage, QueueMode, ReplyAddress } from "@parley/contracts";

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
  /** Who can answer approval questions about it; left out: the sender. */
  approvals?: ApprovalAnswerer | undefined;
  /** Content the store has. */
  attachments?: readonly Attachment[];
}

export function messageOf(input: KnownInput): InboundMessage {
  const { text, keyed: _, mode, approvals, attachments = [], ...rest } = input;
  const files = attachments.map((attachment) => ({ ...attachment, type: "blob" as const }));
  const said = text === "" && files.length > 0 ? [] : [{ type: "text" as const, text }];
  return {
    ...rest,
    parts: [...said, ...files],
    ...(mode === undefined ? {} : { mode }),
    ...(approvals === undefined ? {} : { approvals }),
  };
}
