// The state of the fake: what people have received, media, open windows, injected faults, and waiters. The rules of the platform are
// in `messages.ts` and `media.ts`.
import { PeerState } from "../peer-state.ts";

/** A message of the business as the person sees it. */
export interface WhatsAppMessage {
  id: string;
  to: string;
  toGroup: boolean;
  type: string;
  /** The text, the caption, or the body of a message with buttons; empty without. */
  text: string;
  /** The text as the person sees it: without the marks of the formatting. */
  shown: string;
  /** The message it replies to; null without. */
  contextId: string | null;
  /** The reply buttons, or the rows of the list. */
  buttons: { id: string; title: string }[];
  /** The uploaded file of a media message. */
  file: { name: string | null; mediaType: string; content: Buffer } | null;
  /** The name and body parameters of a template message. */
  template: { name: string; language: string; parameters: string[] } | null;
  /** The emoji of a reaction, and the message it belongs to. */
  reaction: { messageId: string; emoji: string } | null;
  callbackData: string | null;
}

/** One call that reached the fake. */
export interface WhatsAppCall {
  endpoint: WhatsAppEndpoint;
  body: unknown;
  /** HTTP status of the answer; null where the call was never answered. */
  status: number | null;
}

export type WhatsAppEndpoint = "messages" | "typing" | "upload" | "media" | "download" | "phone";

/**
 * A fault of the next call of an endpoint.
 * error: the Graph API refuses it with this code · server_error: 500 before any work · bad_gateway: 502 with a page that is not JSON ·
 * hang_after_commit: done, never answered · reset_after_commit / reset_before_commit: the connection is cut.
 */
export type WhatsAppFault =
  | { kind: "error"; code: number; message?: string; retryAfterSeconds?: number }
  | { kind: "server_error" | "bad_gateway" | "hang_after_commit" | "reset_after_commit" | "reset_before_commit" };

export interface StoredMedia {
  mediaType: string;
  name: string | null;
  content: Buffer;
  /** The end of the current download address; null before one was requested. */
  url: { key: string; expiresAtMs: number } | null;
}

/** One webhook request: kept until the receiver answers 2xx. */
export interface PendingDelivery {
  body: string;
  ids: string[];
}

export interface WhatsAppNumber {
  phoneNumberId: string;
  displayPhoneNumber: string;
  businessAccountId: string;
}

export const dayMs = 24 * 60 * 60 * 1_000;

export class WhatsAppState extends PeerState<WhatsAppFault, WhatsAppEndpoint> {
  readonly number: WhatsAppNumber;
  readonly sent: WhatsAppMessage[] = [];
  readonly calls: WhatsAppCall[] = [];
  readonly media = new Map<string, StoredMedia>();
  /** The end of each person's 24-hour window, in milliseconds since 1970. */
  readonly windows = new Map<string, number>();
  readonly pending: PendingDelivery[] = [];
  /** How often each message or status was delivered, by its id. */
  readonly deliveries = new Map<string, number>();
  /** Message ids that people have sent, which may be marked as read. */
  readonly received = new Set<string>();
  readonly read = new Set<string>();
  /** The message ids for which the typing indicator was shown, in order. */
  readonly typing: string[] = [];
  /** Approved templates: the number of their body parameters. */
  readonly templates = new Map<string, number>();
  /** Whether a message outside of the window fails immediately or by a status, as the real service does for some numbers. */
  refusesLate: "response" | "status" = "response";
  webhook: string | null = null;
  #next = 0;

  constructor(number: WhatsAppNumber) {
    super("WhatsApp");
    this.number = number;
  }

  /** An id in the form of the platform. */
  id(): string {
    this.#next += 1;
    return `wamid.${Buffer.from(`stand-in-message-${this.#next}`).toString("base64").replaceAll("=", "")}`;
  }

  mediaId(): string {
    this.#next += 1;
    return String(1_100_000_000_000_000 + this.#next);
  }
}
