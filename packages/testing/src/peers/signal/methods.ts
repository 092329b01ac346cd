// The methods of a signal-cli daemon that send something or return attachments. It is stricter than the daemon where a mistake would only
// show on a phone: styles outside of the text, edits and deletions of unknown messages.
import { z } from "zod";
import { maxEdits, type Fault, type SentFile, type SentMessage, type SignalState } from "./state.ts";

export class RpcError extends Error {
  override readonly name = "RpcError";
  readonly code: number;
  readonly data: unknown;

  constructor(code: number, message: string, data: unknown = null) {
    super(message);
    this.code = code;
    this.data = data;
  }
}

type Params = Record<string, unknown>;

const userError = (message: string): RpcError => new RpcError(-1, message);
/** One value or a list of them, under its name or the plural of it. */
const List = z.union([z.array(z.string()), z.string().transform((one) => [one])]).default([]);
const Target = z.object({ recipient: List, recipients: List, groupId: List, groupIds: List });
const Send = z.object({
  message: z.string().default(""),
  textStyle: List,
  textStyles: List,
  attachment: List,
  attachments: List,
  quoteTimestamp: z.number().int().optional(),
  quoteAuthor: z.string().optional(),
  editTimestamp: z.number().int().optional(),
});
const styleNames: ReadonlySet<string> = new Set(["BOLD", "ITALIC", "SPOILER", "STRIKETHROUGH", "MONOSPACE"]);
/** Clients cut longer texts. */
const maxTextBytes = 64 * 1024;

/** Methods that need no account. */
export const sharedMethods: Record<string, (state: SignalState) => unknown> = {
  version: () => ({ version: "0.13.19" }),
  listAccounts: ({ number }) => [{ number }],
};

export const accountMethods: Record<string, (state: SignalState, params: Params) => unknown> = {
  send,
  sendTyping: (state, params) => {
    const to = targetOf(state, params);
    state.typing.push({ to, stop: params["stop"] === true });
    return delivered(state, to);
  },
  sendReaction: (state, params) => {
    const Reaction = z.object({
      emoji: z.string(),
      targetAuthor: z.string(),
      targetTimestamp: z.number().int(),
      remove: z.boolean().default(false),
    });
    const given = Reaction.safeParse(params);
    if (!given.success) throw userError("invalid reaction");
    const { emoji, targetAuthor: author, targetTimestamp: timestamp, remove } = given.data;
    const graphemes = [...new Intl.Segmenter().segment(emoji)];
    if (graphemes.length !== 1) throw new RpcError(-32_603, "fake: a reaction is one grapheme");
    const to = targetOf(state, params);
    state.reactions.push({ to, emoji, author, timestamp, remove });
    return delivered(state, to);
  },
  remoteDelete: (state, params) => {
    const to = targetOf(state, params);
    messageAt(state, to, params["targetTimestamp"]).deleted = true;
    return delivered(state, to);
  },
  getAttachment: (state, params) => {
    const { recipient, groupId } = params;
    if (recipient === undefined && groupId === undefined) throw userError("No recipients given");
    const id = z.string().parse(params["id"]);
    const content = state.attachments.get(id);
    if (content === undefined) throw userError(`Could not find attachment with ID: ${id}`);
    return { data: content.toString("base64") };
  },
  receive: () => {
    throw userError("Receive command cannot be used if messages are already being received.");
  },
};

function send(state: SignalState, params: Params): unknown {
  const to = targetOf(state, params);
  const given = Send.safeParse(params);
  if (!given.success) throw new RpcError(-32_600, given.error.message);
  const { message: text, quoteTimestamp, quoteAuthor, editTimestamp, ...lists } = given.data;
  const styles = [...lists.textStyle, ...lists.textStyles].map((style) => styleOf(style, text));
  if (quoteTimestamp !== undefined && quoteAuthor === undefined) throw userError("Quote author parameter is missing");
  const given_files = [...lists.attachment, ...lists.attachments];
  if (text === "" && given_files.length === 0) {
    throw userError("Sending empty message is not allowed, either a message, attachment or sticker must be given.");
  }
  const files = given_files.map(fileOf);
  if (Buffer.byteLength(text) > maxTextBytes) throw new RpcError(-32_603, "fake: clients cut this text");
  if (editTimestamp !== undefined) {
    const edited = messageAt(state, to, editTimestamp);
    if (edited.edits >= maxEdits) throw new RpcError(-32_603, "fake: clients ignore this edit");
    Object.assign(edited, { text, styles, edits: edited.edits + 1 });
    return delivered(state, to);
  }
  const timestamp = state.nextTimestamp();
  const quote =
    quoteTimestamp === undefined || quoteAuthor === undefined
      ? null
      : { timestamp: quoteTimestamp, author: quoteAuthor };
  state.sent.push({ to, text, styles, files, quote, timestamp, edits: 0, deleted: false });
  return delivered(state, to, timestamp);
}

/** `start:length:STYLE`, in UTF-16 units. */
function styleOf(given: string, text: string): SentMessage["styles"][number] {
  const [, start, length, style = ""] = /^(\d+):(\d+):(.+)$/.exec(given) ?? [];
  if (start === undefined || length === undefined) {
    throw userError(`Invalid textStyle syntax (${given}) expected 'start:length:STYLE'`);
  }
  if (!styleNames.has(style)) throw userError(`Invalid style: ${style}`);
  const styled = text.slice(Number(start), Number(start) + Number(length));
  if (styled.length !== Number(length) || styled === "" || !styled.isWellFormed()) {
    throw new RpcError(-32_603, `fake: the style ${given} is not inside of the text`);
  }
  return { style, text: styled };
}

function fileOf(uri: string): SentFile {
  const [, mediaType = "", name, base64] = /^data:([^;,]+\/[^;,]+)(?:;filename=([^;,]+))?;base64,(.+)$/.exec(uri) ?? [];
  if (base64 === undefined || !z.base64().safeParse(base64).success) {
    throw new RpcError(-32_603, "Failed to send message: invalid attachment (AttachmentInvalidException)");
  }
  return {
    name: name === undefined ? null : decodeURIComponent(name),
    mediaType,
    content: Buffer.from(base64, "base64"),
  };
}

const refusals = { announcements: "not allowed to send message to", left: "not a member in" };

/** The conversation that the parameters name. Throws as the daemon does for invalid and unknown ones. */
function targetOf(state: SignalState, params: Params): string {
  const given = Target.safeParse(params);
  if (!given.success) throw new RpcError(-32_600, given.error.message);
  const groups = [...given.data.groupId, ...given.data.groupIds];
  const people = [...given.data.recipient, ...given.data.recipients];
  const [group] = groups;
  if (group !== undefined) {
    if (!z.base64().safeParse(group).success) throw userError(`Invalid group id: ${group}`);
    const found = state.groups.get(group);
    if (found === undefined) throw userError(`Group not found: ${group}`);
    if (found.refusal !== undefined)
      throw userError(`User is ${refusals[found.refusal]} group: ${found.name} (${group})`);
    return `group:${group}`;
  }
  const [person] = people;
  if (person === undefined || groups.length + people.length !== 1) throw userError("No recipients given");
  const found = [...state.people.values()].find(({ uuid, number }) => uuid === person || number === person);
  if (found === undefined || found.unregistered === true) {
    throw new RpcError(-1, "Failed to send message", responseOf("UNREGISTERED_FAILURE", person));
  }
  return found.uuid;
}

function messageAt(state: SignalState, to: string, timestamp: unknown): SentMessage {
  const found = state.sent.find((message) => message.to === to && message.timestamp === timestamp);
  if (found === undefined) throw new RpcError(-32_603, "fake: clients do not find this message");
  return found;
}

function delivered(state: SignalState, to: string, timestamp = state.nextTimestamp()): object {
  const group = state.groups.get(to.replace(/^group:/, ""));
  const members = group?.members ?? [to];
  const shown = to.startsWith("group:") ? { groupId: group?.id } : {};
  return { timestamp, results: members.map((member) => ({ ...recipient(member), ...shown, type: "SUCCESS" })) };
}

function recipient(uuid: string): object {
  return { recipientAddress: { uuid, number: null, username: null } };
}

function responseOf(type: string, to: string, more: object = {}): object {
  return { response: { timestamp: Date.now(), results: [{ ...recipient(to), type, ...more }] } };
}

/** The error with which the daemon reports a fault; null: the fault is one of the connection. */
export function errorFor(fault: Fault): { code: number; message: string; data: unknown } | null {
  switch (fault.kind) {
    case "rate_limit": {
      const { retryAfterSeconds } = fault;
      const more = retryAfterSeconds === undefined ? {} : { token: "challenge-token", retryAfterSeconds };
      const data = responseOf("RATE_LIMIT_FAILURE", "someone", more);
      return { code: -5, message: "Failed to send message due to rate limiting", data };
    }
    case "network_failure":
      return { code: -1, message: "Failed to send message", data: responseOf("NETWORK_FAILURE", "someone") };
    case "untrusted": {
      const data = responseOf("IDENTITY_FAILURE", "someone");
      return { code: -4, message: "Failed to send message due to untrusted identities", data };
    }
    case "io_error":
      return { code: -3, message: fault.message, data: null };
    case "internal_error":
      return { code: -32_603, message: "Command execution failed with unexpected error", data: null };
    default:
      return null;
  }
}
