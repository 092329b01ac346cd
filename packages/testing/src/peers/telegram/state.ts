// The state of the fake: unconfirmed updates, messages that the bot sent, queued faults, and waiters.
// The rules of the Bot API are in `methods.ts`.
import { PeerState } from "../peer-state.ts";

export interface StoredUpdate {
  update_id: number;
  [kind: string]: unknown;
}

/** A message that the bot sent into a chat, as a user sees it. */
export interface SentMessage {
  messageId: number;
  chatId: number | string;
  threadId: number | null;
  replyToId: number | null;
  /** Entities, after the markup was parsed. */
  text: string;
  entities: { type: string; offset: number; length: number; url?: string; language?: string }[];
  parseMode: string | null;
  /** The buttons: text and callback data. */
  buttons: { text: string; data: string }[];
  /** The attached file; the text is then the caption. */
  file?: { kind: "photo" | "document" | "voice" | "audio"; name: string; mediaType: string; content: Buffer };
}

/** One call that reached the fake. */
export interface ApiCall {
  method: string;
  parameters: Record<string, unknown>;
  /** HTTP status of the answer; null where the call was never answered. */
  status: number | null;
  /** When it arrived (performance.now()). */
  atMs: number;
}

/** Flood control: after each `messages` messages the bot may send nothing for `retryAfterSeconds`. */
export interface Flood {
  messages: number;
  retryAfterSeconds: number;
}

/** Flood control does not concern what a bot calls in order to receive. */
const receiving: ReadonlySet<string> = new Set(["getMe", "getUpdates", "getFile", "setWebhook", "deleteWebhook"]);

/**
 * A fault that replaces or follows the work of the next call of a method.
 * too_many: 429 with `retry_after` · server_error: 500 before any work · bad_gateway: 502 with a page that is not JSON ·
 * hang_after_commit: done, never answered · reset_after_commit / reset_before_commit: the connection is cut · refuse: 400 with a text ·
 * hold: a download waits.
 */
export type Fault =
  | { kind: "too_many"; retryAfterSeconds: number }
  | { kind: "server_error" | "bad_gateway" | "hang_after_commit" | "reset_after_commit" | "reset_before_commit" }
  | { kind: "refuse"; status: number; description: string }
  | { kind: "hold"; until: Promise<void> };

export interface Webhook {
  url: string;
  secretToken: string | null;
  allowedUpdates: readonly string[] | null;
}

export class TelegramState extends PeerState<Fault> {
  readonly updates: StoredUpdate[] = [];
  readonly sent: SentMessage[] = [];
  /** Messages that the bot deleted. */
  readonly deleted: SentMessage[] = [];
  /** The reactions that the bot set to messages, in order; null: removed. */
  readonly reactions: { chatId: number | string; messageId: number; emoji: string | null }[] = [];
  readonly calls: ApiCall[] = [];
  /** Chats that the bot may not write to; calls return 403. */
  readonly blocked = new Set<string>();
  /** Chats that do not exist; calls return 400. */
  readonly missing = new Set<string>();
  /** Files that people have sent, by their path below `/file/bot<token>/`. */
  readonly files = new Map<string, Buffer>();
  /** Paths by the file ids of messages. */
  readonly fileIds = new Map<string, string>();
  webhook: Webhook | null = null;
  /** The menu of commands. */
  commands: { command: string; description: string }[] = [];
  /** Presses of buttons that were not answered yet, and the texts of those that were. */
  readonly presses = new Map<string, string | null>();
  allowedUpdates: readonly string[] | null = null;
  /** Delivery counts of updates that were delivered at least once, by number. */
  readonly deliveries = new Map<number, number>();
  /** Null: no flood control. */
  flood: Flood | null = null;
  /** How often flood control has limited the bot, and the calls during that time: how long after its refusal each arrived. */
  readonly limited = { times: 0, early: [] as { method: string; afterMs: number }[] };
  #limitedAtMs = Number.NEGATIVE_INFINITY;
  #messagesSinceFlood = 0;
  /** How often two long polls overlapped. */
  conflicts = 0;
  #nextUpdate = 1_000;
  #nextMessage = 1;

  constructor() {
    super("Telegram");
  }

  /** Stores an update, except when the bot has not subscribed to its kind; returns its number either way. */
  push(kind: string, content: unknown): number {
    const updateId = this.#nextUpdate;
    this.#nextUpdate += 1;
    const allowed = this.webhook?.allowedUpdates ?? this.allowedUpdates;
    if (allowed === null || allowed.length === 0 || allowed.includes(kind)) {
      this.updates.push({ update_id: updateId, [kind]: content });
    }
    this.changed();
    return updateId;
  }

  /** How long flood control forbids the call that arrives now, in seconds; 0: it does not. */
  limitFor(method: string): number {
    if (this.flood === null || receiving.has(method)) return 0;
    const { messages, retryAfterSeconds } = this.flood;
    const nowMs = performance.now();
    const afterMs = nowMs - this.#limitedAtMs;
    if (afterMs < retryAfterSeconds * 1_000) {
      this.limited.early.push({ method, afterMs });
      return Math.ceil(retryAfterSeconds - afterMs / 1_000);
    }
    if (!method.startsWith("send") || ++this.#messagesSinceFlood < messages) return 0;
    this.#messagesSinceFlood = 0;
    this.#limitedAtMs = nowMs;
    this.limited.times += 1;
    return retryAfterSeconds;
  }

  nextMessageId(): number {
    this.#nextMessage += 1;
    return this.#nextMessage;
  }

  /** Stores a file that somebody sends; returns the id for a message. */
  addFile(content: Buffer): string {
    const path = `documents/file_${this.files.size}.dat`;
    const fileId = `BQACAgQ${this.files.size}stand-in`;
    this.files.set(path, content);
    this.fileIds.set(fileId, path);
    return fileId;
  }

  /** Drops updates before `offset`. A negative offset keeps only that many of the last updates. */
  confirmBefore(offset: number): void {
    const first = offset < 0 ? (this.updates.at(offset)?.update_id ?? 0) : offset;
    const kept = this.updates.filter((update) => update.update_id >= first);
    if (kept.length === this.updates.length) return;
    this.updates.splice(0, this.updates.length, ...kept);
    this.changed();
  }
}
