// The contract between the gateway and a channel adapter (one folder under `channels/` each). The gateway depends on no platform; an
// adapter depends neither on the store, nor on sessions, nor on access rules.
import type { WriteFields } from "@parley/chassis";
import type { ChannelCapabilities, InboundMessage, ReplyAddress, store } from "@parley/contracts";
import type { FastifyInstance } from "fastify";
import type { RenderedText } from "./text/render.ts";

/** A file of an inbound message. The gateway stores or fetches it only after it has authorized the sender. */
export interface IncomingFile {
  /** The name of a file without one: `photo`, `voice` … */
  kind: string;
  /** The file name from the sender. */
  name: string | undefined;
  /** The size reported by the platform; null: unknown. */
  bytes: number | null;
  /** What `fetchFile` of the adapter needs on any replica, in a format of the adapter's choice. No secret; at most 2,048 characters. */
  handle?: string;
  /** The content, if it came with the message: stored before the message. Either this or `handle`. */
  content?: Uint8Array;
}

/** The message that a message replies to, as far as the platform shows it. */
interface QuotedMessage {
  text: string;
  /** The author's name on the platform. */
  author?: string;
  /** The agent wrote it. */
  ofAgent?: boolean;
  /** The sender of the reply wrote it themself. Without this and `ofAgent` the text is untrusted. */
  ofSender?: boolean;
}

/** A platform update, as parsed by an adapter. `inbound.ts` decides whether it is accepted. */
export interface InboundDraft {
  /** The platform's id of the message; the same for a redelivery. */
  externalId: string;
  /** The id that edits, deletions and reactions name; omitted: `externalId`. */
  messageId?: string;
  /** When it was sent by the platform's clock, ISO 8601. */
  sentAt?: string;
  conversation: string;
  /** The group to look up in the settings when it is larger than the conversation: a topic belongs to its group. */
  group?: string;
  /** The message is in the group itself, and an answer to it opens the thread `conversation`. */
  opensThread?: true;
  contact: { id: string; name?: string };
  /** A conversation with one person, as opposed to a group. */
  direct: boolean;
  /** In a group: the agent was mentioned, replied to or commanded. True in a direct conversation. */
  addressed: boolean;
  text: string;
  files?: readonly IncomingFile[];
  /** The sender forwarded the message; `from` is the original author as named by the platform. Untrusted, and never a command. */
  forwarded?: NonNullable<InboundMessage["forwarded"]>;
  quote?: QuotedMessage;
  /** One of several messages of an album; it waits briefly for the others. */
  album?: boolean;
  /** Further parts of the album are already being processed, however long that takes. */
  moreOfAlbum?: boolean;
  replyTo: ReplyAddress;
}

/** A person pressed a button of a message. It counts as if they had typed the input of the action. */
export interface InboundAction extends Omit<
  InboundDraft,
  "addressed" | "text" | "files" | "forwarded" | "quote" | "album" | "moreOfAlbum"
> {
  /** The input of the pressed action. The platform may deliver any text; it gets the rights of the person, no more. */
  input: string;
}

/** What happened to an earlier message, or to the agent's membership of a group. */
export interface InboundChange extends Pick<
  InboundDraft,
  "externalId" | "conversation" | "group" | "contact" | "direct" | "replyTo"
> {
  /** The message that changed; for `membership` the id of the event. */
  messageId: string;
  change:
    | { kind: "edited"; text: string }
    | { kind: "deleted" }
    /** `ofAgent`: the agent wrote the message; `unknown`: the platform does not say who wrote it. */
    | { kind: "reaction"; reaction: string; removed?: true; ofAgent: boolean | "unknown" }
    /** The agent was added to or removed from the conversation; `contact` did it. */
    | { kind: "membership"; joined: boolean };
}

export interface ActionResult {
  /** For the person who pressed the button. */
  text: string;
  /** The buttons have had their effect and can be removed; false: this person may not press them. */
  done: boolean;
}

/** Where an owned connection is after an update. */
export interface Position {
  lease: LeaseRef;
  cursor: string;
}

/**
 * stored: committed. duplicate: already stored. executed: a command ran. ignored: sender not authorized. In each case the platform may
 * be acknowledged. When the promise rejects, nothing was stored and the platform must NOT be acknowledged.
 */
export type AcceptResult = "stored" | "duplicate" | "executed" | "ignored";

/** A held lease: the right to open the account's only connection. */
export interface LeaseRef {
  readonly name: string;
  /** Which of the account's connections this is, from 0; omitted: 0. */
  readonly slot?: number;
  readonly fence: number;
  /** Saved with the last accepted message of this connection; null at the very first one. */
  readonly cursor: string | null;
  /** Aborted when the lease is lost or released: close the connection immediately. */
  readonly signal: AbortSignal;
}

/** The platform refuses the account's credentials. Until they change, retrying soon is pointless. */
export class AccountRejectedError extends Error {
  override readonly name = "AccountRejectedError";
}

/** The platform limits the account: it sends nothing for `afterMs` milliseconds. */
export class RateLimitedError extends Error {
  override readonly name = "RateLimitedError";
  readonly afterMs: number;

  constructor(afterMs: number) {
    super(`limited for ${afterMs} ms`);
    this.afterMs = afterMs;
  }
}

/** The gateway's interface for an adapter. */
export interface ChannelHost {
  /** Saves `cursor` in the same commit as the message. Rejects with a WireError FENCED when the lease is lost. */
  accept(draft: InboundDraft, position?: Position): Promise<AcceptResult>;
  /** Runs the input of a pressed button. Rejects like `accept`. */
  act(action: InboundAction, position?: Position): Promise<ActionResult>;
  /** Applies an edit, a deletion, a reaction or a change of membership. Rejects like `accept`. */
  change(change: InboundChange, position?: Position): Promise<void>;
  /** Saves the cursor of input that needs nothing else. Rejects with a WireError FENCED when the lease is lost. */
  checkpoint(position: Position): Promise<void>;
  /** Called when a connection is established, and when repeated attempts fail. */
  report(state: { state: "connected"; as: string } | { state: "failing"; reason: string }): void;
  /** How long a rate limit forbids to send to the conversation, in milliseconds; 0: it does not. For calls that the host does not hold. */
  pauseMs(conversation: string): number;
  /** The commands of the agent, for the menus of clients. */
  commands: readonly { name: string; summary: string }[];
  log: Readonly<Record<"info" | "warn" | "error", WriteFields>>;
}

/** One platform message: a text within the limits of the channel's entry, or a file. The host splits, renders and paces. */
export interface OutboundPart {
  /** `replyToId` only for the first message of an answer. */
  address: ReplyAddress;
  /** In the format of the channel's entry; null: a file is sent. */
  text: RenderedText | null;
  /** Only for channels with `files`. */
  file?: OutboundFile;
  /** Sent together with the text; only for channels with `filesWithText`. */
  files?: readonly OutboundFile[];
  /** Stable over retries of this message. */
  idempotencyKey: string;
  /** The number of earlier attempts. */
  attempts: number;
  /** Buttons of this message; only for channels with `actions`. */
  actions?: readonly store.Action[];
}

export interface OutboundFile {
  name: string;
  mediaType: string;
  content: Uint8Array;
}

/**
 * sent · retry: certainly not delivered (refused connection, 429, 5xx before the platform accepted it); `scope`: the platform limits the
 * conversation or the account, which pauses on every replica; `held`: set by the host when it did not call the adapter · unknown: the request was sent and no answer arrived · dropped: can never be
 * delivered (blocked by the user, chat deleted).
 */
export type SendOutcome =
  | { state: "sent"; providerMessageId: string | null }
  | { state: "retry"; afterMs: number; reason: string; scope?: "conversation" | "account"; held?: true }
  | { state: "unknown"; reason: string }
  | { state: "dropped"; reason: string };

export interface ChannelAdapter {
  readonly channel: string;
  readonly account: string;
  readonly capabilities: ChannelCapabilities;
  /** The platform allows one connection per account. The connection is leased; only the lease holder receives and sends. */
  readonly ownedConnection: boolean;
  /** How many connections the account has, each with a lease and a cursor of its own; omitted: 1. */
  readonly slots?: number;
  /** With an owned connection: sends do not need it, so every replica delivers and not only the lease holder. */
  readonly sendsWithoutConnection?: true;
  /** For platforms that call the gateway: registers webhook routes below `/channels/<channel>/<account>`. The host limits the body size. */
  routes?(app: FastifyInstance, host: ChannelHost): void;
  /**
   * For platforms that the gateway connects to: holds the connection until it breaks or `lease.signal` aborts, then returns. The gateway
   * calls it again, with backoff, while it holds the lease. Throws AccountRejectedError when the platform refuses the credentials.
   */
  connect?(host: ChannelHost, lease: LeaseRef): Promise<void>;
  /**
   * For platforms that reach the gateway by another protocol than HTTP, such as LMTP: listens on every replica, without a lease, until
   * `signal` aborts. Calls `host.report` when it listens. Rejects when it cannot; the gateway calls it again, with backoff.
   */
  listen?(host: ChannelHost, signal: AbortSignal): Promise<void>;
  /**
   * Fetches a file of a stored message, on any replica, also one without the connection. Rejects when that fails, and is then called again a
   * few times; the error message contains no secret. Required for adapters whose files have a `handle`.
   */
  fetchFile?(handle: string, maxBytes: number, signal: AbortSignal): Promise<Uint8Array | "too_large">;
  /**
   * Checks the credentials; null: only the connection can show whether they are right. Rejects with a readable reason; the message contains
   * no secret.
   */
  check?(signal: AbortSignal): Promise<{ as: string } | null>;
  /** The longest text of the next message to this address when it is shorter than in the entry, in the entry's unit. */
  maxLength?(address: ReplyAddress): number;
  /** Sends one message. Never throws because of a response of the platform; `signal` aborts after the gateway's send timeout. */
  send(part: OutboundPart, signal: AbortSignal): Promise<SendOutcome>;
  /**
   * Replaces the text of a message of this account and removes its buttons. May be repeated: a message that has the text already counts as
   * sent. `dropped`: the message cannot be edited, for example because somebody deleted it.
   */
  edit?(address: ReplyAddress, messageId: string, text: RenderedText, signal: AbortSignal): Promise<SendOutcome>;
  /** Deletes a message of this account. May be repeated: a message that does not exist counts as deleted (`sent`). */
  remove?(address: ReplyAddress, messageId: string, signal: AbortSignal): Promise<SendOutcome>;
  /** Sets the account's reaction to a message; null removes it. */
  react?(address: ReplyAddress, messageId: string, reaction: string | null, signal: AbortSignal): Promise<SendOutcome>;
  /** Shows the typing indicator, if the platform has one. Rejects with RateLimitedError when the platform limits the account. */
  typing?(address: ReplyAddress): Promise<void>;
  /** Hides the typing indicator, where it does not end with the next message by itself. */
  stopTyping?(address: ReplyAddress): Promise<void>;
}

/** What sending needs of an adapter. */
export type SendingAdapter = Pick<
  ChannelAdapter,
  "channel" | "account" | "capabilities" | "maxLength" | "send" | "edit" | "remove" | "react" | "typing" | "stopTyping"
>;

/** What an adapter does with single messages. */
export type MessageOperations = Required<Pick<ChannelAdapter, "edit" | "remove" | "react">>;
