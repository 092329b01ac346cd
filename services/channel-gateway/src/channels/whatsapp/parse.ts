// Converts one message of a webhook request to a draft, a pressed button or a change. Pure: no network, no clock of its own. It does not
// authorize the sender.
import type { InboundAction, InboundDraft, IncomingFile } from "../channel.ts";
import { contactOf, invalid, sentAtOf, skipped, type ParsedInput, type Skipped } from "../parsed.ts";
import { contactsOf, mediaKinds, Message, type Value } from "./update-schema.ts";

export type Parsed = ParsedInput | { kind: "action"; action: InboundAction } | Skipped;

/** A message that this replica has seen, for quotes and reactions: webhooks contain only the ids of other messages. */
export interface SeenMessage {
  text: string;
  ofAgent: boolean;
}

export interface ParseContext {
  account: string;
  nowMs: number;
  seen: (messageId: string) => SeenMessage | undefined;
}

/** The platform repeats a delivery for up to 7 days; an older message is a replay of a recorded request. */
const oldestMs = 8 * 24 * 60 * 60 * 1_000;

/** What the address of an answer contains for typing and for the 24-hour window. */
export interface AnswerContext {
  /** The id of the person's message. */
  messageId: string;
  /** When they sent it, in milliseconds since 1970. */
  sentAtMs: number;
}

export function parseMessage(raw: unknown, value: Value, context: ParseContext): Parsed {
  const parsed = Message.safeParse(raw);
  if (!parsed.success) return invalid("message", parsed.error);
  const message = parsed.data;
  const sender = message.from ?? message.from_user_id;
  if (sender === undefined) return skipped("no sender");
  const sentAtMs = Number(message.timestamp) * 1_000;
  if (context.nowMs - sentAtMs > oldestMs) return skipped("older than 8 days");
  const direct = message.group_id === undefined;
  const conversation = message.group_id === undefined ? sender : groupConversation(message.group_id);
  const answer: AnswerContext = { messageId: message.id, sentAtMs };
  const base = {
    externalId: message.id,
    conversation,
    ...(message.group_id === undefined ? {} : { group: message.group_id }),
    contact: contactOf(sender, nameOf(message, value)),
    direct,
    replyTo: {
      channel: "whatsapp",
      account: context.account,
      conversation,
      context: JSON.stringify(answer),
      // In a direct conversation it is clear what is answered.
      ...(direct ? {} : { replyToId: message.id }),
    },
  };
  const { reaction, interactive } = message;
  if (message.type === "reaction" && reaction !== undefined) {
    const removed = reaction.emoji === undefined || reaction.emoji === "";
    const ofAgent = context.seen(reaction.message_id)?.ofAgent ?? direct;
    const change = {
      kind: "reaction",
      reaction: reaction.emoji ?? "",
      ...(removed ? { removed } : {}),
      ofAgent,
    } as const;
    return { kind: "change", change: { ...base, messageId: reaction.message_id, change } };
  }
  const sentAt = sentAtOf(sentAtMs);
  const pressed = interactive?.button_reply ?? interactive?.list_reply;
  if (message.type === "interactive" && pressed !== undefined) {
    return { kind: "action", action: { ...base, ...sentAt, input: pressed.id } };
  }
  const files = filesOf(message);
  const text = textOf(message);
  if (text === null) return skipped(`a message of the type ${message.type}`);
  const draft: InboundDraft = {
    ...base,
    ...sentAt,
    addressed: direct || isAddressed(message, value),
    text,
    ...(files.length === 0 ? {} : { files }),
    ...(message.context?.forwarded === true || message.context?.frequently_forwarded === true ? { forwarded: {} } : {}),
    ...quoteOf(message, context),
  };
  return { kind: "message", draft };
}

/** The conversation of a group; the conversation with a person is their number or user id. */
function groupConversation(groupId: string): string {
  return `group:${groupId}`;
}

/** Reads the context of an address; null: written without a message of the person. */
export function answerContext(text: string | undefined): AnswerContext | null {
  if (text === undefined) return null;
  const { messageId, sentAtMs } = JSON.parse(text) as AnswerContext;
  return { messageId, sentAtMs };
}

function nameOf(message: Message, value: Value): string | undefined {
  const contact = contactsOf(value).find(
    ({ wa_id: number, user_id: user }) =>
      (number !== undefined && number === message.from) || (user !== undefined && user === message.from_user_id),
  );
  return contact?.profile?.name;
}

/** In a group: a reply to the agent, or its number after an `@`. */
function isAddressed({ context, text, image, video, document }: Message, { metadata }: Value): boolean {
  const number = metadata.display_phone_number.replaceAll(/\D/g, "");
  if (number === "") return false;
  if (context?.from?.replaceAll(/\D/g, "") === number) return true;
  const written = text?.body ?? image?.caption ?? video?.caption ?? document?.caption ?? "";
  return new RegExp(`@\\+?${number}(?!\\d)`).test(written);
}

function quoteOf({ context, from }: Message, { seen }: ParseContext): Pick<InboundDraft, "quote"> {
  const quoted = context?.id === undefined ? undefined : seen(context.id);
  if (quoted === undefined) return {};
  const ofSender = !quoted.ofAgent && from !== undefined && context?.from === from;
  const author = quoted.ofAgent ? { ofAgent: true } : ofSender ? { ofSender } : {};
  return { quote: { text: quoted.text, ...author } };
}

function filesOf(message: Message): IncomingFile[] {
  return mediaKinds.flatMap((kind) => {
    const media = message.type === kind ? message[kind] : undefined;
    if (media === undefined) return [];
    return [{ kind, name: media.filename, bytes: media.file_size ?? null, handle: media.id }];
  });
}

/** The text of a message; null for one that has nothing to answer. */
function textOf(message: Message): string | null {
  const { type, text, button, location, contacts, interactive } = message;
  for (const kind of mediaKinds) {
    const media = type === kind ? message[kind] : undefined;
    if (media === undefined) continue;
    if (media.caption !== undefined && media.caption !== "") return media.caption;
    const what = kind === "audio" && message.audio?.voice === true ? "voice message" : kind;
    return media.filename === undefined ? `[${what}]` : `[${what}: ${media.filename}]`;
  }
  switch (type) {
    case "text":
      return text === undefined || text.body.trim() === "" ? null : text.body;
    case "button":
      return button?.text ?? null;
    case "location": {
      if (location === undefined) return null;
      const named = [location.name, location.address].filter(Boolean).join(", ");
      return `[location: ${named === "" ? "" : `${named}, `}${location.latitude}, ${location.longitude}]`;
    }
    case "contacts": {
      const lines = (contacts ?? []).map(({ name, phones = [] }) =>
        [name?.formatted_name, ...phones.map(({ phone }) => phone)].filter(Boolean).join(" "),
      );
      return lines.length === 0 ? null : `[contacts: ${lines.join("; ")}]`;
    }
    case "interactive":
      return `[${interactive?.type ?? "interactive"}]`;
    case "order":
    case "unsupported":
    case "unknown":
      return "[a message that WhatsApp does not deliver to programs]";
    default:
      // Notices of the platform, such as a changed number.
      return null;
  }
}
