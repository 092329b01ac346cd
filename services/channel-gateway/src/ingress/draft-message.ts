// Converts an authorized draft of an adapter to the message that is stored. Pure.
import type { ContactRole, InboundMessage, QueueMode } from "@parley/contracts";
import type { InboundDraft } from "../channels/channel.ts";

export interface DraftOwner {
  channel: string;
  account: string;
  role: ContactRole;
}

/** How long a part of an album waits for the next part; longer than the timeout of one file (attachments.ts). */
const albumMs = 90_000;
/** The longest quoted text and author's name that are stored. */
const maxQuoteChars = 2_000;
const maxAuthorChars = 200;

/** `text`: what the person said, without a prefix that chooses the queue mode. */
export function messageOfDraft(
  { channel, account, role }: DraftOwner,
  draft: InboundDraft,
  text: string,
  files: InboundMessage["parts"],
  mode: QueueMode | undefined,
): InboundMessage {
  const { externalId, conversation, contact, direct, forwarded, replyTo } = draft;
  return {
    channel,
    account,
    externalId,
    conversation,
    contact,
    role,
    origin: "user",
    direct,
    ...(forwarded === undefined ? {} : { forwarded }),
    parts: [...quoteOf(draft), { type: "text", text }, ...files],
    replyTo,
    ...(mode === undefined ? {} : { mode }),
    ...(draft.moreOfAlbum === true ? { windowMs: albumMs } : {}),
  };
}

/** The message that a draft replies to, as a part; none without text. */
function quoteOf({ quote }: InboundDraft): InboundMessage["parts"] {
  if (quote === undefined || quote.text.trim() === "") return [];
  const { text, author, ofAgent = false, ofSender = false } = quote;
  return [
    {
      type: "quote",
      text: text.slice(0, maxQuoteChars).toWellFormed(),
      ...(author === undefined ? {} : { author: author.slice(0, maxAuthorChars).toWellFormed() }),
      ...(ofAgent ? { ofAgent } : {}),
      ...(ofSender ? { ofSender } : {}),
    },
  ];
}
