// Converts input from an authenticated sender (API, webhook) to the message that is stored, and limits its size. Pure.
import {
  maxInboundBytes,
  type AnswerRequirements,
  type ApprovalAnswerer,
  type Attachment,
  type InboundMessage,
  type InputOf,
  type QueueMode,
  type ReplyAddress,
  type store,
} from "@parley/contracts";
import type { ApiAccess } from "../operations/operation.ts";

/**
 * `own`: a session for this call alone, named by its conversation, unless `[session] synchronous` is `shared`. `separate`: the same
 * regardless of the settings. `named`: the session that the conversation names, regardless of the policy.
 */
export const threadChoices = ["own", "separate", "named"] as const;
type ThreadChoice = (typeof threadChoices)[number];

/** Input from an authenticated sender: the holder of the API token, or a webhook. */
export interface AuthorizedInput {
  channel: string;
  account: string;
  conversation: string;
  externalId: string;
  /** Identifies the message when its sender does not sign `externalId`. */
  content?: InputOf<typeof store.inboxPut>["content"];
  /** Texts that precede `text`: instructions and earlier messages of the calling program. */
  before?: readonly string[];
  text: string;
  contact: InboundMessage["contact"];
  /** The rights of a caller of the API; undefined: those of the role. */
  access?: ApiAccess | undefined;
  role: InboundMessage["role"];
  origin: InboundMessage["origin"];
  replyTo: ReplyAddress | null;
  /** The id is an idempotency key: a different text with it is refused. Otherwise the first text is kept and the reuse is logged. */
  keyed: boolean;
  /** The queue mode while the session is busy; undefined: the mode of the session or the settings. */
  mode?: QueueMode | undefined;
  /** The caller waits for the answer, so the input gets its own turn unless `mode` makes it join another. */
  exclusive?: boolean | undefined;
  /** Which session the input belongs to; undefined: the session policy decides. `main`: the owner's thread. */
  thread?: ThreadChoice | "main" | undefined;
  /** The route of the session that the sender chose; undefined: `thread` and the session policy decide. */
  route?: string | undefined;
  /** The profile that answers, in a session of its own. */
  profile?: string | undefined;
  /** Who can answer approval questions about this input; undefined: the sender. */
  approvals?: ApprovalAnswerer | undefined;
  /** What the caller requires of the answer. */
  answer?: AnswerRequirements | undefined;
  /** Attachments whose content is already in the store. */
  attachments?: readonly Attachment[];
}

/** Instructions of the calling program, as text for the agent. */
export function instructionsText(text: string): string {
  return `[Instructions of the program that sent this message]\n${text}`;
}

export function messageOf(input: AuthorizedInput): InboundMessage {
  const {
    before = [],
    text,
    content: ______,
    keyed: _,
    thread: __,
    route: ___,
    profile: ____,
    access: _____,
    mode,
    exclusive,
    approvals,
    answer,
    attachments = [],
    ...rest
  } = input;
  const files = attachments.map((attachment) => ({ ...attachment, type: "blob" as const }));
  const textParts = text === "" && files.length > 0 ? [] : [{ type: "text" as const, text }];
  return {
    ...rest,
    parts: [...before.map((each) => ({ type: "text" as const, text: each })), ...textParts, ...files],
    ...(mode === undefined ? {} : { mode }),
    ...(exclusive === true ? { exclusive } : {}),
    ...(approvals === undefined ? {} : { approvals }),
    ...(answer === undefined ? {} : { answer }),
  };
}

/** Thrown for a message above the limit; nothing was stored. */
export class MessageTooLargeError extends Error {
  override readonly name = "MessageTooLargeError";
  readonly bytes: number;

  constructor(bytes: number) {
    super(
      `the message is too long: ${bytes} bytes as JSON, at most ${maxInboundBytes}. Attach it as a file, or send it in parts`,
    );
    this.bytes = bytes;
  }
}

/** One UTF-16 unit takes at most six bytes as JSON (`\u0000`). */
const maxBytesPerUnit = 6;
const roomForTheRest = 16 * 1024;

/** Throws MessageTooLargeError. */
export function assertMessageSize(message: InboundMessage): void {
  let units = 0;
  for (const part of message.parts) {
    if (part.type === "text") units += part.text.length;
    if (part.type === "binary") units += part.data.length;
  }
  if (units * maxBytesPerUnit + roomForTheRest <= maxInboundBytes) return;
  const bytes = Buffer.byteLength(JSON.stringify(message));
  if (bytes > maxInboundBytes) throw new MessageTooLargeError(bytes);
}
