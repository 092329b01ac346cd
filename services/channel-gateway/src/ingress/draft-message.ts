// Converts an authorized draft of an adapter to the message that is stored. Pure.
import type { ContactRole, InboundMessage, QueueMode } from "@parley/contracts";
import type { InboundDraft } from "../channels/channel.ts";

export interface DraftOwner {
  channel: string;
  account: string;
  role: ContactRole;
}

/** How long a part of an album waits for the next part of the same batch, which is stored right after it. */
const albumMs = 10_000;
/** The latest time that PostgreSQL and JavaScript both write with a four-digit year. */
const latestMs = Date.parse("9999-12-31T00:00:00Z");
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
  const { externalId, messageId, conversation, contact, direct, forwarded, replyTo } = draft;
  return {
    channel,
    account,
    externalId,
    ...(messageId === undefined ? {} : { messageId }),
    ...sentAtOf(draft),
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

/** Omitted when the platform's time is invalid. */
function sentAtOf({ sentAt }: InboundDraft): Pick<InboundMessage, "sentAt"> {
  const sentMs = Date.parse(sentAt ?? "");
  return sentMs >= 0 && sentMs < latestMs ? { sentAt: new Date(sentMs).toISOString() } : {};
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
