// Converts events, button presses and slash commands to drafts for the gateway. Pure: no network, no clock. The gateway authorizes senders.
import type { IncomingFile, InboundAction, InboundDraft } from "../channel.ts";
import { contactOf, forwardedFrom, invalid, quoteOf, sentAtOf, skipped, type Parsed } from "../parsed.ts";
import type { Me } from "./api.ts";
import { MemberEvent, MessageEvent, ReactionEvent, type BlockActions, type File, type SlashCommand } from "./schema.ts";
import { readableText, withoutMention } from "./text.ts";

/** What the parser knows about the account. */
export interface ParseContext {
  account: string;
  /** The bot's own identity. */
  me: Me;
  /** Each message in a channel begins a thread, and each thread is a conversation of its own. */
  replyInThread: boolean;
  /** The display name of a user; undefined when it is not known. */
  nameOf: (id: string) => string | undefined;
}

/** The subtypes of messages that people write; all others are written by Slack or by apps. */
const userSubtypes: ReadonlySet<string | undefined> = new Set([
  undefined,
  "file_share",
  "thread_broadcast",
  "me_message",
]);

/** Parses an event of the Events API. `eventId` makes a repeated delivery of a change recognizable. */
export function parseEvent(event: { type: string }, eventId: string, context: ParseContext): Parsed {
  if (event.type === "message" || event.type === "app_mention") {
    const parsed = MessageEvent.safeParse(event);
    if (!parsed.success) return invalid("message", parsed.error);
    const { subtype } = parsed.data;
    if (subtype === "message_changed" || subtype === "message_deleted") return parseEdit(parsed.data, eventId, context);
    return parseMessage(parsed.data, context);
  }
  if (event.type.startsWith("reaction_")) return parseReaction(event, eventId, context);
  if (event.type.startsWith("member_")) return parseMember(event, eventId, context);
  return skipped(`unsupported event: ${event.type}`);
}

/** The conversation of a message: a direct conversation, a channel, or a thread (`C…/<ts>`) whose group is its channel. */
function placeOf(channel: string, ts: string, threadTs: string | undefined, { account, replyInThread }: ParseContext) {
  const direct = channel.startsWith("D");
  const thread = threadTs ?? (direct || !replyInThread ? undefined : ts);
  const conversation = thread === undefined ? channel : `${channel}/${thread}`;
  return {
    conversation,
    ...(thread === undefined || direct ? {} : { group: channel }),
    ...(thread === undefined || threadTs !== undefined ? {} : { opensThread: true as const }),
    direct,
    replyTo: { channel: "slack", account, conversation },
  };
}

/** The id of a message; the same for `message` and `app_mention`, which Slack sends both for a mention. */
function externalIdOf(channel: string, ts: string): string {
  return `${channel}:${ts}`;
}

function parseMessage(event: MessageEvent, context: ParseContext): Parsed {
  const { me, nameOf } = context;
  const { user, subtype, channel, ts, files = [] } = event;
  if (!userSubtypes.has(subtype)) return skipped(`subtype ${subtype ?? ""}`);
  if (event.bot_id !== undefined || user === undefined || user === me.user_id) return skipped("sent by an app");
  const place = placeOf(channel, ts, event.thread_ts, context);
  const mentioned = event.type === "app_mention" || event.text.includes(`<@${me.user_id}`);
  const unmentioned = withoutMention(event.text, me.user_id);
  // A message that only mentions the agent keeps the mention: it is not empty.
  const source = unmentioned.trim() === "" && files.length === 0 ? event.text : unmentioned;
  const ownText = readableText(source, nameOf);
  const shared = event.attachments?.find(({ is_share: isShare }) => isShare === true);
  const sharedText = readableText(shared?.text ?? "", nameOf);
  // A shared message without own text counts as forwarded, with own text as quoted.
  const text = ownText.trim() === "" ? sharedText : ownText;
  const incomingFiles = files.flatMap(fileOf);
  if (text.trim() === "" && incomingFiles.length === 0) return skipped("no text");
  const author = shared?.author_name;
  return {
    kind: "message",
    draft: {
      externalId: externalIdOf(channel, ts),
      messageId: ts,
      ...sentAtOf(Number(ts) * 1_000),
      ...place,
      contact: contactOf(user, nameOf(user)),
      addressed: place.direct || mentioned || event.parent_user_id === me.user_id,
      text: text.trim() === "" ? fileNote(incomingFiles[0]?.name) : text,
      ...(incomingFiles.length === 0 ? {} : { files: incomingFiles }),
      ...(shared === undefined ? {} : text === sharedText ? forwardedFrom(author) : quoteOf(sharedText, { author })),
    },
  };
}

/** The text of a message that consists of files only. */
function fileNote(name: string | undefined): string {
  return name === undefined ? "[file]" : `[file: ${name}]`;
}

/** A file that Slack hosts; none for deleted and external files. Its handle is a URL, which only the bot's token can download. */
function fileOf({ name, mimetype, size, mode, ...file }: File): IncomingFile[] {
  const handle = file.url_private_download ?? file.url_private;
  if (handle === undefined || handle === null || mode === "tombstone" || mode === "external") return [];
  const [kind = "file"] = (mimetype ?? "file").split("/");
  return [{ kind, name: name ?? undefined, bytes: size ?? null, handle }];
}

function parseEdit(event: MessageEvent, eventId: string, context: ParseContext): Parsed {
  const { message, previous_message: before, channel } = event;
  const deleted = event.subtype === "message_deleted";
  const changed = deleted ? before : message;
  if (changed?.user === undefined || changed.bot_id !== undefined || changed.user === context.me.user_id) {
    return skipped("change of a message of an app");
  }
  // Slack sends the same event when it adds a preview of a link; the text is then unchanged.
  if (!deleted && message?.text === before?.text) return skipped("change without new text");
  const text = readableText(withoutMention(changed.text, context.me.user_id), context.nameOf);
  return {
    kind: "change",
    change: {
      externalId: eventId,
      messageId: changed.ts,
      ...placeOf(channel, changed.ts, changed.thread_ts, context),
      contact: contactOf(changed.user, context.nameOf(changed.user)),
      change: deleted ? { kind: "deleted" } : { kind: "edited", text },
    },
  };
}

function parseReaction(event: unknown, eventId: string, context: ParseContext): Parsed {
  const parsed = ReactionEvent.safeParse(event);
  if (!parsed.success) return skipped("reaction to something other than a message");
  const { type, user, reaction, item, item_user: author } = parsed.data;
  const { me } = context;
  if (user === me.user_id) return skipped("own reaction");
  return {
    kind: "change",
    change: {
      externalId: eventId,
      messageId: item.ts,
      // Slack does not say whether the message is in a thread.
      ...placeOf(item.channel, item.ts, undefined, context),
      contact: contactOf(user, context.nameOf(user)),
      change: {
        kind: "reaction",
        reaction,
        ...(type === "reaction_removed" ? { removed: true } : {}),
        ofAgent: author === me.user_id,
      },
    },
  };
}

function parseMember(event: unknown, eventId: string, context: ParseContext): Parsed {
  const parsed = MemberEvent.safeParse(event);
  if (!parsed.success || parsed.data.user !== context.me.user_id) return skipped("membership of somebody else");
  const { type, channel, inviter: inviterId = context.me.user_id } = parsed.data;
  return {
    kind: "change",
    change: {
      externalId: eventId,
      messageId: eventId,
      conversation: channel,
      contact: contactOf(inviterId, context.nameOf(inviterId)),
      direct: false,
      replyTo: { channel: "slack", account: context.account, conversation: channel },
      change: { kind: "membership", joined: type === "member_joined_channel" },
    },
  };
}

/** Parses the press of a button. The input of the action is the button's value. */
export function parseAction(payload: BlockActions, context: ParseContext): InboundAction {
  const { user, channel, message, actions, trigger_id: trigger } = payload;
  const place = placeOf(channel.id, message.ts, message.thread_ts, { ...context, replyInThread: false });
  return {
    externalId: `action:${trigger}`,
    messageId: message.ts,
    ...place,
    contact: contactOf(user.id, context.nameOf(user.id) ?? user.name ?? user.username),
    input: actions[0]?.value ?? "",
  };
}

/**
 * Converts a slash command to the text of a message. `/parley status` becomes `/status`. A command with a name of the agent's commands,
 * such as `/new`, stays as it is. Other text after `/parley` is a plain message. `names`: the agent's commands, with slash.
 */
export function parseCommand(payload: SlashCommand, names: ReadonlySet<string>, context: ParseContext): InboundDraft {
  const { command, user_id: user, user_name: name, channel_id: channel, trigger_id: trigger } = payload;
  const argumentText = readableText(payload.text, context.nameOf).trim();
  const [firstWord = ""] = argumentText.split(/\s/, 1);
  const withSlash = firstWord.startsWith("/") ? argumentText : `/${argumentText}`;
  const commandText = names.has(`/${firstWord.replace(/^\//, "")}`) ? withSlash : argumentText;
  return {
    externalId: `command:${trigger}`,
    ...placeOf(channel, "", undefined, { ...context, replyInThread: false }),
    contact: contactOf(user, context.nameOf(user) ?? name),
    addressed: true,
    text: names.has(command) ? `${command} ${argumentText}`.trim() : commandText === "" ? "/help" : commandText,
  };
}
