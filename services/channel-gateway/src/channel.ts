// The contract between the gateway and a channel adapter: one folder under `channels/` each. The gateway knows no platform;
// an adapter knows neither the store, nor sessions, nor who may speak.
import type { InboundMessage, ReplyAddress } from "@parley/contracts";
import type { FastifyInstance } from "fastify";

/** What a platform can do, as data, so that no code asks which platform it is. */
interface ChannelCapabilities {
  /** Longest text one platform message may hold; the adapter splits longer ones. */
  maxTextLength: number;
  lengthUnit: "utf16" | "bytes";
  /** The platform drops a second send with the same key, so a send with an unknown outcome may be repeated. */
  deduplicates: boolean;
  /** The platform allows one connection an account: it is leased, and only its holder receives and sends. */
  ownedConnection: boolean;
  typing: boolean;
  /** The adapter sends files; left out: what is a file is named in a text instead. */
  files?: boolean;
}

/** A file of a message that is still on the platform. It is fetched only when its sender may speak. */
export interface OfferedFile {
  /** What it is called where it has no name: `photo`, `voice` … */
  kind: string;
  /** As its sender calls it. */
  name: string | undefined;
  /** As the platform says; null: it does not. */
  bytes: number | null;
  /** Rejects when it cannot be had, with a message that holds no secret. */
  fetch(maxBytes: number, signal: AbortSignal): Promise<Uint8Array | "too_large">;
}

/** What an adapter makes of one update. Whether it is let in is decided by `inbound.ts`. */
export interface InboundDraft {
  /** The platform's id of the message; a redelivery carries the same. */
  externalId: string;
  conversation: string;
  /** The group that is listed or not, where that is more than the conversation: a topic belongs to its group. */
  group?: string;
  contact: { id: string; name?: string };
  /** A conversation with one person, as opposed to a group. */
  direct: boolean;
  /** In a group: the agent was mentioned, replied to or commanded. True in a direct conversation. */
  addressed: boolean;
  text: string;
  files?: readonly OfferedFile[];
  /** The sender forwarded it; `from` is the original author as the platform names them. It is untrusted, and never a command. */
  forwarded?: NonNullable<InboundMessage["forwarded"]>;
  /** One of several messages that were sent as one: it waits a moment for the others. */
  album?: boolean;
  /** More of the album is at hand and being taken in, however long that takes. */
  moreOfAlbum?: boolean;
  replyTo: ReplyAddress;
}

/**
 * stored: committed. duplicate: was already. ignored: not let in, or a command that was carried out. In each case the
 * platform may be acknowledged. When the promise rejects nothing was kept and the platform must NOT be acknowledged.
 */
export type AcceptResult = "stored" | "duplicate" | "ignored";

/** A held lease: the right to be the account's one connection. */
export interface HeldLease {
  readonly name: string;
  readonly fence: number;
  /** Saved with the last accepted message; null at the very first connection. */
  readonly cursor: string | null;
  /** Aborted when the lease is lost or given up: close the connection at once. */
  readonly signal: AbortSignal;
}

/** The platform refuses the account's credentials: until they change, trying again soon is pointless. */
export class AccountRefused extends Error {
  override readonly name = "AccountRefused";
}

/** What the gateway offers to an adapter. */
export interface ChannelHost {
  /** `cursor` is saved in the same commit as the message. With a lost lease it rejects with a WireError FENCED. */
  accept(draft: InboundDraft, position?: { lease: HeldLease; cursor: string }): Promise<AcceptResult>;
  /** Called when a connection is up, and when one that is tried again and again is not. */
  report(state: { state: "connected"; as: string } | { state: "failing"; reason: string }): void;
  log: {
    info(fields: object, message: string): void;
    warn(fields: object, message: string): void;
    error(fields: object, message: string): void;
  };
  fetch: typeof fetch;
}

export interface OutboundText {
  address: ReplyAddress;
  /** Empty where a file goes out. */
  text: string;
  /** Only for adapters with `files`. */
  file?: OutboundFile;
  /** Stable over retries. */
  idempotencyKey: string;
  /** How often it was tried before. */
  attempts: number;
}

export interface OutboundFile {
  name: string;
  mediaType: string;
  content: Uint8Array;
}

/**
 * sent · retry: it certainly did not arrive (refused connection, 429, 5xx answered before the platform took it) · unknown: the
 * request left and no answer came · dropped: it can never arrive (blocked by the user, chat gone).
 */
export type SendOutcome =
  | { state: "sent"; providerMessageId: string | null }
  | { state: "retry"; afterMs: number; reason: string }
  | { state: "unknown"; reason: string }
  | { state: "dropped"; reason: string };

export interface ChannelAdapter {
  readonly channel: string;
  readonly account: string;
  readonly capabilities: ChannelCapabilities;
  /** For platforms that call us: registers webhook routes (below `/channels/<channel>/<account>`). Raw body and size cap are the host's. */
  routes?(app: FastifyInstance, host: ChannelHost): void;
  /**
   * For platforms we connect to: holds the connection until it breaks or `lease.signal` aborts, then returns. Called again
   * by the gateway, with backoff, while it holds the lease. Throws AccountRefused where the platform refuses the credentials.
   */
  connect?(host: ChannelHost, lease: HeldLease): Promise<void>;
  /** Never throws for what the platform answers; `signal` aborts after the gateway's send timeout. */
  send(message: OutboundText, signal: AbortSignal): Promise<SendOutcome>;
  /** Shows that an answer is being written, where the platform can. */
  typing?(address: ReplyAddress): Promise<void>;
}
