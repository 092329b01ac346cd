// Converts events, presses of buttons and slash commands to drafts for the gateway. Pure: no network, no clock. It authorizes nobody.
import type { IncomingFile, InboundAction, InboundDraft } from "../channel.ts";
import { contactOf, forwardedFrom, invalid, quoteOf, sentAtOf, skipped, type Parsed } from "../parsed.ts";
import type { Me } from "./api.ts";
import { MemberEvent, MessageEvent, ReactionEvent, type BlockActions, type File, type SlashCommand } from "./schema.ts";
import { readableText, withoutMention } from "./text.ts";

export interface ParseContext {
  account: string;
  me: Me;
  /** A message of a channel begins a thread, which is a conversation. */
  replyInThread: boolean;
  nameOf: (id: string) => string | undefined;
}

/** Subtypes of messages that people write. */
const written: ReadonlySet<string | undefined> = new Set([undefined, "file_share", "thread_broadcast", "me_message"]);

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
  if (!written.has(subtype)) return skipped(`subtype ${subtype ?? ""}`);
  if (event.bot_id !== undefined || user === undefined || user === me.user_id) return skipped("sent by an app");
  const place = placeOf(channel, ts, event.thread_ts, context);
  const mentioned = event.type === "app_mention" || event.text.includes(`<@${me.user_id}`);
  const own = withoutMention(event.text, me.user_id);
  const readable = readableText(own.trim() === "" && files.length === 0 ? event.text : own, nameOf);
  const shared = event.attachments?.find(({ is_share: isShare }) => isShare === true);
  const sharedText = readableText(shared?.text ?? "", nameOf);
  // A shared message without a word of its own is forwarded.
  const text = readable.trim() === "" ? sharedText : readable;
  const incoming = files.flatMap(fileOf);
  if (text.trim() === "" && incoming.length === 0) return skipped("no text");
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
      text: text.trim() === "" ? `[file${incoming[0]?.name === undefined ? "" : `: ${incoming[0].name}`}]` : text,
      ...(incoming.length === 0 ? {} : { files: incoming }),
      ...(shared === undefined ? {} : text === sharedText ? forwardedFrom(author) : quoteOf(sharedText, { author })),
    },
  };
}

/** A file that Slack hosts. Its handle is the address, which is useless without the bot's token. */
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
  // Slack also reports that it added a preview of a link.
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
  if (!parsed.success) return skipped("reaction to something else than a message");
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

export function parseAction(press: BlockActions, context: ParseContext): InboundAction {
  const { user, channel, message, actions, trigger_id: trigger } = press;
  const place = placeOf(channel.id, message.ts, message.thread_ts, { ...context, replyInThread: false });
  return {
    externalId: `action:${trigger}`,
    messageId: message.ts,
    ...place,
    contact: contactOf(user.id, context.nameOf(user.id) ?? user.name ?? user.username),
    input: actions[0]?.value ?? "",
  };
}

/** `/parley status` and a command that has the agent's own name, such as `/new`, become `/status` and `/new`. */
export function parseCommand(given: SlashCommand, names: ReadonlySet<string>, context: ParseContext): InboundDraft {
  const { command, user_id: user, user_name: name, channel_id: channel, trigger_id: trigger } = given;
  const rest = readableText(given.text, context.nameOf).trim();
  const [word = ""] = rest.split(/\s/, 1);
  const named = word.startsWith("/") ? rest : `/${rest}`;
  const commandText = names.has(`/${word.replace(/^\//, "")}`) ? named : rest;
  return {
    externalId: `command:${trigger}`,
    ...placeOf(channel, "", undefined, { ...context, replyInThread: false }),
    contact: contactOf(user, context.nameOf(user) ?? name),
    addressed: true,
    text: names.has(command) ? `${command} ${rest}`.trim() : commandText === "" ? "/help" : commandText,
  };
}
