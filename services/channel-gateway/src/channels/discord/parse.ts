// Converts messages and interactions of Discord to drafts for the gateway. Pure: no network, no clock. It does not authorize the sender.
import { discordChannel } from "@parley/contracts";
import type { InboundAction, InboundChange, InboundDraft, IncomingFile } from "../channel.ts";
import { changeOf, contactOf, invalid, quoteOf, sentAtOf, shownName, type Skipped } from "../parsed.ts";
import { Deleted, type Interaction, Message, Reaction, type User } from "./schema.ts";

export type Parsed =
  | { kind: "message"; draft: InboundDraft; messageId: string | null }
  | { kind: "action"; action: InboundAction }
  | { kind: "change"; change: InboundChange }
  /** Nothing for the agent, as expected. */
  | { kind: "ignored" }
  | Skipped;

export interface EventContext {
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
const ignored: Parsed = { kind: "ignored" };

export function parseMessage(data: unknown, { account, me, parentId }: EventContext): Parsed {
  const parsed = Message.safeParse(data);
  if (!parsed.success) return invalid("message", parsed.error);
  const message = parsed.data;
  const { author } = message;
  if (author.bot || message.webhook_id !== undefined) return ignored;
  if (!messageTypes.has(message.type)) return ignored;
  const { replyTo, ...place } = placeOf(message, { account, parentId });
  const { direct } = place;
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
  return {
    kind: "message",
    messageId: message.id,
    draft: {
      externalId: message.id,
      ...sentAtOf(Date.parse(message.timestamp)),
      ...place,
      contact: personOf(author, message.member?.nick),
      addressed: direct || quoted?.author.id === me.id || message.mentions.some(({ id }) => id === me.id),
      text,
      ...(files.length === 0 ? {} : { files }),
      ...(message.message_reference?.type === forwardType ? { forwarded: {} } : {}),
      ...quotedBy(message, me),
      // No reply reference in a direct conversation, where it is clear what is answered.
      replyTo: direct ? replyTo : { ...replyTo, replyToId: message.id },
    },
  };
}

function quotedBy({ referenced_message: quoted, author: sender }: Message, me: Pick<User, "id">) {
  if (quoted === undefined || quoted === null) return {};
  const { content, author } = quoted;
  const by = { ofAgent: author.id === me.id, ofSender: author.id === sender.id };
  return quoteOf(content, { author: nameOf(author, undefined) ?? "", ...by });
}

/** A button or a slash command. The latter becomes the text that a person would have typed. */
export function parseInteraction(interaction: Interaction, eventContext: EventContext): Parsed {
  const { id, type, data, member } = interaction;
  const user = member?.user ?? interaction.user;
  if (user === undefined || user.bot) return ignored;
  const common = { ...placeOf(interaction, eventContext), contact: personOf(user, member?.nick) };
  if (type === 3 && data?.custom_id !== undefined)
    return { kind: "action", action: { externalId: `action:${id}`, ...common, input: data.custom_id } };
  if (type !== 2 || data?.name === undefined) return { kind: "skipped", reason: `interaction of type ${type}` };
  const words = data.options.map(({ value }) => String(value ?? ""));
  const text = [`/${data.name}`, ...words].join(" ").trim();
  const draft = { externalId: `interaction:${id}`, ...common, addressed: true, text };
  return { kind: "message", messageId: null, draft };
}

/** An edit. Discord also reports link previews as updates: without an edit time. */
export function parseEdit(data: unknown, eventContext: EventContext): Parsed {
  const edited = Message.safeParse(data).data?.edited_timestamp;
  if (edited === undefined || edited === null) return ignored;
  const parsed = parseMessage(data, eventContext);
  if (parsed.kind !== "message") return parsed;
  const { externalId: messageId, text } = parsed.draft;
  const externalId = `edit:${messageId}:${edited}`;
  return changeOf(parsed.draft, { externalId, messageId, change: { kind: "edited", text } });
}

export function parseDeletion(data: unknown, eventContext: EventContext): Parsed {
  const parsed = Deleted.safeParse(data);
  if (!parsed.success) return invalid("deletion", parsed.error);
  const { id } = parsed.data;
  // Discord does not report who deleted it.
  const place = { ...placeOf(parsed.data, eventContext), contact: { id: "" } };
  return changeOf(place, { externalId: `deleted:${id}`, messageId: id, change: { kind: "deleted" } });
}

export function parseReaction(data: unknown, removed: boolean, eventContext: EventContext): Parsed {
  const parsed = Reaction.safeParse(data);
  if (!parsed.success) return invalid("reaction", parsed.error);
  const { me, eventId } = eventContext;
  const { user_id: userId, message_id: messageId, message_author_id: authorId, emoji, member } = parsed.data;
  if (userId === me.id || member?.user?.bot === true) return ignored;
  // Discord describes the person only in servers.
  const contact = personOf({ username: "", ...member?.user, id: userId }, member?.nick);
  const reaction = emoji.name ?? emoji.id ?? "";
  return changeOf(
    { ...placeOf(parsed.data, eventContext), contact },
    {
      externalId: `reaction:${eventId}`,
      messageId,
      change: { kind: "reaction", reaction, ...(removed ? { removed } : {}), ofAgent: authorId === me.id },
    },
  );
}

/** A thread is a conversation of its own; its group is the channel that contains it. */
function placeOf(
  { channel_id: conversation, guild_id: guildId }: { channel_id: string; guild_id?: string | undefined },
  { account, parentId }: Pick<EventContext, "account" | "parentId">,
) {
  return {
    conversation,
    ...(parentId === null ? {} : { group: parentId }),
    direct: guildId === undefined,
    replyTo: { channel: discordChannel.name, account, conversation },
  };
}

function personOf(user: Omit<User, "bot">, nick: string | null | undefined): InboundDraft["contact"] {
  return contactOf(user.id, nameOf(user, nick));
}

function nameOf({ username, global_name: displayName }: Omit<User, "bot">, nick: string | null | undefined) {
  return shownName(nick ?? displayName ?? username);
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
