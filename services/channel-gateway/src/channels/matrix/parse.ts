// Converts one event of a room to a draft or a change for the gateway. Pure: related events and names are parameters. It does not
// authorize the sender.
import { slashCommands } from "@parley/contracts";
import type { InboundChange, InboundDraft, IncomingFile } from "../channel.ts";
import { changeOf, contactOf, sentAtOf, skipped, type ParsedInput, type Skipped } from "../parsed.ts";
import { conversationOf, objectOf, relationOf, textOf, type Relation } from "./relations.ts";
import type { MatrixEvent } from "./schema.ts";

/** The agent's account; `names`: display names by which people may call it. */
export interface Me {
  userId: string;
  names: readonly string[];
}

export interface ParseContext {
  account: string;
  roomId: string;
  me: Me;
  /** The room is a conversation with one person. */
  direct: boolean;
  nameOf: (userId: string) => string | undefined;
  /** The event that this one replies to, edits, reacts to or redacts; null: none, or it cannot be read. */
  related: MatrixEvent | null;
}

/** `encrypted`: a message that only a client with keys can read. */
export type Parsed = ParsedInput | { kind: "encrypted" } | Skipped;

/** The id of the event that `related` has to be. */
export function relatedIdOf(event: MatrixEvent): string | undefined {
  if (event.type === "m.room.redaction") return event.redacts ?? textOf(event.content["redacts"]);
  const { replyTo, replaces, annotates } = relationOf(event);
  return replaces ?? annotates ?? replyTo;
}

export function parse(event: MatrixEvent, context: ParseContext): Parsed {
  if (event.type === "m.room.member") return membership(event, context);
  if (event.sender === context.me.userId) return skipped("own event");
  switch (event.type) {
    case "m.room.encrypted":
      return { kind: "encrypted" };
    case "m.room.redaction":
      return redaction(event, context);
    case "m.reaction":
      return reaction(event, context);
    case "m.room.message":
      return relationOf(event).replaces === undefined ? message(event, context) : edit(event, context);
    default:
      return skipped(`unsupported event: ${event.type.slice(0, 100)}`);
  }
}

function message(event: MatrixEvent, context: ParseContext): Parsed {
  const { content, event_id: externalId, origin_server_ts: sentAtMs } = event;
  const body = textOf(content["body"]);
  // The content of a redacted message is empty.
  if (body === undefined) return skipped("no text");
  // The specification forbids automated clients to answer notices, so that two of them cannot talk forever.
  if (content["msgtype"] === "m.notice") return skipped("notice");
  const relation = relationOf(event);
  const file = fileOf(content, body);
  const written =
    file === null
      ? withoutFallback(body, relation)
      : (file.caption ?? `[${file.incoming.kind}: ${file.incoming.name ?? ""}]`);
  const isMention = isMentioned(content, context.me.userId);
  const text = isMention ? withoutMention(written, content, context.me) : written;
  if (text.trim() === "") return skipped("no text");
  const { direct, related } = context;
  const isReplyToAgent = relation.replyTo !== undefined && related?.sender === context.me.userId;
  return {
    kind: "message",
    draft: {
      externalId,
      ...sentAtOf(sentAtMs),
      ...placeOf(event, relation.thread, context),
      addressed: direct || isReplyToAgent || isMention || isCommand(text),
      text,
      ...(file === null ? {} : { files: [file.incoming] }),
      ...(relation.replyTo === undefined ? {} : quoteOf(event, context)),
    },
  };
}

function edit(event: MatrixEvent, context: ParseContext): Parsed {
  const { related } = context;
  const text = textOf(objectOf(event.content["m.new_content"])["body"]);
  if (text === undefined || text.trim() === "") return skipped("edit without text");
  // Servers deliver an edit of anybody; only the author's counts.
  if (related === null || related.sender !== event.sender) return skipped("edit of a message of somebody else");
  const isMention = isMentioned(related.content, context.me.userId);
  const shown = isMention ? withoutMention(text, objectOf(event.content["m.new_content"]), context.me) : text;
  return changed(event, related.event_id, { kind: "edited", text: shown }, context);
}

function reaction(event: MatrixEvent, context: ParseContext): Parsed {
  const { annotates } = relationOf(event);
  const key = textOf(objectOf(event.content["m.relates_to"])["key"]);
  if (annotates === undefined || key === undefined || key === "") return skipped("reaction without a target");
  const ofAgent = context.related?.sender === context.me.userId;
  return changed(event, annotates, { kind: "reaction", reaction: key.slice(0, 100).toWellFormed(), ofAgent }, context);
}

function redaction(event: MatrixEvent, context: ParseContext): Parsed {
  const target = relatedIdOf(event);
  if (target === undefined) return skipped("redaction without a target");
  return changed(event, target, { kind: "deleted" }, context);
}

function membership(event: MatrixEvent, context: ParseContext): Parsed {
  if (event.state_key !== context.me.userId) return skipped("membership of others");
  const [is, was] = [event.content["membership"], event.unsigned?.prev_content?.["membership"]];
  if (is === was || is === "invite") return skipped("membership unchanged");
  return changed(event, event.event_id, { kind: "membership", joined: is === "join" }, context);
}

function changed(
  event: MatrixEvent,
  messageId: string,
  change: InboundChange["change"],
  context: ParseContext,
): Parsed {
  const thread = context.related === null ? undefined : relationOf(context.related).thread;
  return changeOf(placeOf(event, thread, context), { externalId: event.event_id, messageId, change });
}

function placeOf({ event_id: replyToId, sender }: MatrixEvent, thread: string | undefined, context: ParseContext) {
  const { account, roomId, direct } = context;
  const conversation = conversationOf(roomId, thread);
  return {
    conversation,
    ...(thread === undefined || direct ? {} : { group: roomId }),
    contact: contactOf(sender, context.nameOf(sender)),
    direct,
    replyTo: { channel: "matrix", account, conversation, ...(direct ? {} : { replyToId }) },
  };
}

const fileKinds: Readonly<Record<string, string>> = {
  "m.image": "image",
  "m.file": "file",
  "m.audio": "audio",
  "m.video": "video",
};

function fileOf(content: MatrixEvent["content"], body: string): { incoming: IncomingFile; caption?: string } | null {
  const kind = fileKinds[textOf(content["msgtype"]) ?? ""];
  const handle = textOf(content["url"]);
  if (kind === undefined || handle === undefined || mediaOf(handle) === null) return null;
  const size = objectOf(content["info"])["size"];
  const filename = textOf(content["filename"]);
  const isVoice = "org.matrix.msc3245.voice" in content;
  const bytes = typeof size === "number" && Number.isSafeInteger(size) && size >= 0 ? size : null;
  return {
    incoming: { kind: isVoice ? "voice" : kind, name: filename ?? body, bytes, handle },
    // With a file name, the body is a caption.
    ...(filename === undefined || filename === body || body.trim() === "" ? {} : { caption: body }),
  };
}

/** The server and id of an `mxc:` address; null when it is not one. */
export function mediaOf(address: string): { server: string; id: string } | null {
  const [, server, id] = /^mxc:\/\/(?!\.{1,2}\/)([\w.:[\]-]{1,255})\/([\w-]{1,255})$/.exec(address) ?? [];
  return server === undefined || id === undefined ? null : { server, id };
}

/** Removes the copy of the quoted message with which older clients begin a reply. */
function withoutFallback(body: string, { replyTo }: Relation): string {
  if (replyTo === undefined || !/^> [<*]/.test(body)) return body;
  const lines = body.split("\n");
  const end = lines.findIndex((line) => !line.startsWith(">"));
  return end === -1 ? "" : lines.slice(end).join("\n").replace(/^\n/, "");
}

function isMentioned(content: MatrixEvent["content"], userId: string): boolean {
  if ("m.mentions" in content) {
    const userIds = objectOf(content["m.mentions"])["user_ids"];
    return Array.isArray(userIds) && userIds.includes(userId);
  }
  // Clients from before `m.mentions` link to the person.
  const html = textOf(content["formatted_body"]) ?? "";
  return [userId, encodeURIComponent(userId)].some((id) => html.includes(`https://matrix.to/#/${id}"`));
}

/** A command of the agent; other bots of the room have commands of their own. */
function isCommand(text: string): boolean {
  const name = /^!(\w+)/.exec(text)?.[1];
  return name !== undefined && slashCommands.some((command) => command.name === `/${name}`);
}

/** Whether a message mentions the agent and begins with none of its known names, one of which may have changed. */
export function mayNeedName({ type, content }: MatrixEvent, me: Me): boolean {
  const body = textOf(content["body"]) ?? "";
  return type === "m.room.message" && isMentioned(content, me.userId) && withoutMention(body, content, me) === body;
}

/** Removes the agent's name from the beginning, as clients write it for a mention. */
function withoutMention(text: string, content: MatrixEvent["content"], { userId, names }: Me): string {
  const lower = text.toLowerCase();
  for (const name of [...names, linkedName(content, userId), userId]) {
    const spelled = [name, `@${name}`].find((form) => lower.startsWith(form.toLowerCase()));
    if (name === "" || spelled === undefined) continue;
    const rest = text.slice(spelled.length);
    if (/^[:,]?\s/.test(rest)) return rest.replace(/^[:,]?\s+/, "");
  }
  return text;
}

/** The name that the sender's client knew: the text of its link to the agent. */
function linkedName(content: MatrixEvent["content"], userId: string): string {
  const html = textOf(content["formatted_body"]) ?? "";
  for (const [, id = "", name = ""] of html.matchAll(
    /<a [^>]*href="https:\/\/matrix\.to\/#\/([^"]+)"[^>]*>([^<]+)<\/a>/g,
  )) {
    if (id === userId || id === encodeURIComponent(userId)) return name;
  }
  return "";
}

function quoteOf(event: MatrixEvent, { related, me, nameOf }: ParseContext): Pick<InboundDraft, "quote"> {
  if (related === null || related.type !== "m.room.message") return {};
  const latest = related.unsigned?.["m.relations"]?.["m.replace"]?.content["m.new_content"];
  const body = textOf(objectOf(latest)["body"]) ?? textOf(related.content["body"]);
  if (body === undefined || body.trim() === "") return {};
  const ofAgent = related.sender === me.userId;
  const author = ofAgent ? undefined : nameOf(related.sender);
  return {
    quote: {
      text: withoutFallback(body, relationOf(related)),
      ...(author === undefined ? {} : { author }),
      ...(ofAgent ? { ofAgent } : {}),
      ...(related.sender === event.sender ? { ofSender: true } : {}),
    },
  };
}
