// Converts messages and interactions of Discord to drafts for the gateway. Pure: no network, no clock. It does not authorize the sender.
import { discordChannel } from "@parley/contracts";
import type { InboundAction, InboundChange, InboundDraft, IncomingFile } from "../channel.ts";
import { Deleted, type Interaction, Message, Reaction, type User } from "./schema.ts";

export type Parsed =
  | { kind: "message"; draft: InboundDraft; messageId: string | null }
  | { kind: "action"; action: InboundAction }
  | { kind: "change"; change: InboundChange }
  /** Nothing for the agent, as expected. */
  | { kind: "ignored" }
  | { kind: "skipped"; reason: string };

export interface Surroundings {
  account: string;
  me: Pick<User, "id">;
  /** The channel that contains the thread; null: not a thread. */
  parentId: string | null;
  /** The same for a repeated event. */
  eventId: string;
}

/** 0: ordinary · 19: a reply. Others are notices of Discord, such as pins and joins. */
const messageTypes: ReadonlySet<number> = new Set([0, 19]);
const forwardType = 1;
const maxNameChars = 200;
const ignored: Parsed = { kind: "ignored" };

export function parseMessage(data: unknown, { account, me, parentId }: Surroundings): Parsed {
  const parsed = Message.safeParse(data);
  if (!parsed.success) return invalid("message", parsed.error.issues[0]?.path);
  const message = parsed.data;
  const { author } = message;
  if (author.bot || message.webhook_id !== undefined) return ignored;
  if (!messageTypes.has(message.type)) return ignored;
  const direct = message.guild_id === undefined;
  const snapshot =
    message.message_reference?.type === forwardType ? message.message_snapshots?.[0]?.message : undefined;
  const attachments = snapshot?.attachments ?? message.attachments;
  const text = (snapshot?.content ?? readable(message, me)) || fileText(message, attachments);
  // Without the Message Content Intent, messages that do not mention the bot have no content.
  if (text === "") return ignored;
  const { referenced_message: quoted } = message;
  const files = attachments.map((file): IncomingFile => {
    const handle = JSON.stringify({ channel: message.channel_id, message: message.id, attachment: file.id });
    return { kind: "file", name: file.filename, bytes: file.size ?? null, handle };
  });
  const sentAtMs = Date.parse(message.timestamp);
  return {
    kind: "message",
    messageId: message.id,
    draft: {
      externalId: message.id,
      ...(Number.isNaN(sentAtMs) ? {} : { sentAt: new Date(sentAtMs).toISOString() }),
      ...placeOf(message, parentId),
      contact: contactOf(author, message.member?.nick),
      direct,
      addressed: direct || quoted?.author.id === me.id || message.mentions.some(({ id }) => id === me.id),
      text,
      ...(files.length === 0 ? {} : { files }),
      ...(message.message_reference?.type === forwardType ? { forwarded: {} } : {}),
      ...(quoted === undefined || quoted === null || quoted.content === ""
        ? {}
        : { quote: quoteOf(quoted, author, me) }),
      // No reply reference in a direct conversation, where it is clear what is answered.
      replyTo: { ...addressOf(account, message.channel_id), ...(direct ? {} : { replyToId: message.id }) },
    },
  };
}

function quoteOf({ content, author }: NonNullable<Message["referenced_message"]>, sender: User, me: Pick<User, "id">) {
  return {
    text: content,
    author: nameOf(author, undefined),
    ...(author.id === me.id ? { ofAgent: true } : {}),
    ...(author.id === sender.id ? { ofSender: true } : {}),
  };
}

/** A button or a slash command. The latter becomes the text that a person would have typed. */
export function parseInteraction(interaction: Interaction, { account, parentId }: Surroundings): Parsed {
  const { id, type, data, member, channel_id: conversation } = interaction;
  const user = member?.user ?? interaction.user;
  if (user === undefined || user.bot) return ignored;
  const common = {
    ...placeOf(interaction, parentId),
    contact: contactOf(user, member?.nick),
    direct: interaction.guild_id === undefined,
    replyTo: addressOf(account, conversation),
  };
  if (type === 3 && data?.custom_id !== undefined)
    return { kind: "action", action: { externalId: `action:${id}`, ...common, input: data.custom_id } };
  if (type !== 2 || data?.name === undefined) return { kind: "skipped", reason: `interaction of type ${type}` };
  const words = data.options.map(({ value }) => String(value ?? ""));
  const text = [`/${data.name}`, ...words].join(" ").trim();
  const draft = { externalId: `interaction:${id}`, ...common, addressed: true, text };
  return { kind: "message", messageId: null, draft };
}

/** An edit. Discord also reports link previews as updates: without an edit time. */
export function parseEdit(data: unknown, surroundings: Surroundings): Parsed {
  const edited = Message.safeParse(data).data?.edited_timestamp;
  if (edited === undefined || edited === null) return ignored;
  const parsed = parseMessage(data, surroundings);
  if (parsed.kind !== "message") return parsed;
  const { externalId, text, ...rest } = parsed.draft;
  const change: InboundChange["change"] = { kind: "edited", text };
  return changed(rest, `edit:${externalId}:${edited}`, externalId, change);
}

export function parseDeletion(data: unknown, { account, parentId }: Surroundings): Parsed {
  const parsed = Deleted.safeParse(data);
  if (!parsed.success) return invalid("deletion", parsed.error.issues[0]?.path);
  const { id, guild_id: guildId, channel_id: conversation } = parsed.data;
  // Discord does not report who deleted it.
  const rest = {
    ...placeOf(parsed.data, parentId),
    contact: { id: "" },
    direct: guildId === undefined,
    replyTo: addressOf(account, conversation),
  };
  return changed(rest, `deleted:${id}`, id, { kind: "deleted" });
}

export function parseReaction(
  data: unknown,
  removed: boolean,
  { account, me, parentId, eventId }: Surroundings,
): Parsed {
  const parsed = Reaction.safeParse(data);
  if (!parsed.success) return invalid("reaction", parsed.error.issues[0]?.path);
  const {
    user_id: userId,
    channel_id: conversation,
    message_id: messageId,
    emoji,
    member,
    guild_id: guildId,
  } = parsed.data;
  const user = member?.user;
  if (userId === me.id || user?.bot === true) return ignored;
  const reaction = emoji.name ?? emoji.id ?? "";
  // Discord describes the person only in servers.
  const contact = contactOf({ username: "", ...user, id: userId }, member?.nick);
  const rest = {
    ...placeOf(parsed.data, parentId),
    contact,
    direct: guildId === undefined,
    replyTo: addressOf(account, conversation),
  };
  const ofAgent = parsed.data.message_author_id === me.id;
  return changed(rest, `reaction:${eventId}`, messageId, {
    kind: "reaction",
    reaction,
    ...(removed ? { removed } : {}),
    ofAgent,
  });
}

function changed(
  { conversation, group, contact, direct, replyTo }: Omit<InboundChange, "externalId" | "messageId" | "change">,
  externalId: string,
  messageId: string,
  change: InboundChange["change"],
): Parsed {
  const place = { conversation, ...(group === undefined ? {} : { group }), contact, direct, replyTo };
  return { kind: "change", change: { externalId, messageId, ...place, change } };
}

/** A thread is a conversation of its own; its group is the channel that contains it. */
function placeOf({ channel_id: conversation }: { channel_id: string }, parentId: string | null) {
  return { conversation, ...(parentId === null ? {} : { group: parentId }) };
}

function addressOf(account: string, conversation: string): InboundDraft["replyTo"] {
  return { channel: discordChannel.name, account, conversation };
}

function contactOf(user: Omit<User, "bot">, nick: string | null | undefined): InboundDraft["contact"] {
  const name = nameOf(user, nick);
  return { id: user.id, ...(name === "" ? {} : { name }) };
}

function nameOf({ username, global_name: displayName }: Omit<User, "bot">, nick: string | null | undefined): string {
  return (nick ?? displayName ?? username).slice(0, maxNameChars).toWellFormed();
}

/** The text without a leading mention of the bot; other mentions and emoji are names. */
function readable({ content, mentions }: Message, me: Pick<User, "id">): string {
  const own = new RegExp(`^\\s*<@!?${me.id}>[\\s,:]*`);
  const names = new Map(mentions.map((user) => [user.id, nameOf(user, user.member?.nick)]));
  const text = content.replace(own, "") || content;
  return text
    .replaceAll(/<@!?(\d{1,20})>/g, (mention, id: string) => (names.has(id) ? `@${names.get(id)}` : mention))
    .replaceAll(/<a?(:\w{1,32}:)\d{1,20}>/g, "$1")
    .trim();
}

/** The text for a message that consists only of files or stickers. */
function fileText({ sticker_items: stickers }: Message, attachments: Message["attachments"]): string {
  return [
    ...attachments.map(({ filename }) => `[file: ${filename}]`),
    ...stickers.map(({ name }) => `[sticker: ${name}]`),
  ].join("\n");
}

function invalid(what: string, path: readonly PropertyKey[] = []): Parsed {
  return { kind: "skipped", reason: `invalid ${what} at ${path.map(String).join(".")}` };
}
