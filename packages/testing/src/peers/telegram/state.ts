// What the stand-in remembers: updates nobody has confirmed, messages the bot sent, faults to come, and who waits for what.
// The rules of the Bot API are in `methods.ts`.

export interface StoredUpdate {
  update_id: number;
  [kind: string]: unknown;
}

/** A message the bot's call put into a chat: what a user would see. */
export interface SentMessage {
  messageId: number;
  chatId: number | string;
  threadId: number | null;
  replyToId: number | null;
  /** After its markup was read. */
  text: string;
  entities: { type: string; offset: number; length: number; url?: string; language?: string }[];
  parseMode: string | null;
  /** What came with it; its text is then the caption. */
  file?: { kind: "photo" | "document" | "voice" | "audio"; name: string; mediaType: string; content: Buffer };
}

/** One call that reached the stand-in. */
export interface ApiCall {
  method: string;
  parameters: Record<string, unknown>;
  /** HTTP status of the answer; null where none was given. */
  status: number | null;
}

/**
 * What happens to the next call of a method instead of, or after, its work.
 * too_many: 429 with `retry_after` · server_error: 500 before anything was done · bad_gateway: 502 with a page that is not JSON ·
 * hang_after_commit: done, never answered · reset_after_commit / reset_before_commit: the connection is cut · refuse: 400 with a text.
 */
export type Fault =
  | { kind: "too_many"; retryAfterSeconds: number }
  | { kind: "server_error" | "bad_gateway" | "hang_after_commit" | "reset_after_commit" | "reset_before_commit" }
  | { kind: "refuse"; status: number; description: string };

export interface Webhook {
  url: string;
  secretToken: string | null;
  allowedUpdates: readonly string[] | null;
}

export class TelegramState {
  readonly updates: StoredUpdate[] = [];
  readonly sent: SentMessage[] = [];
  readonly calls: ApiCall[] = [];
  /** Chats the bot may not write to: they answer 403. */
  readonly blocked = new Set<string>();
  /** Chats that are not there: they answer 400. */
  readonly missing = new Set<string>();
  readonly faults: { method: string; fault: Fault }[] = [];
  /** Files people have sent, by their path below `/file/bot<token>/`. */
  readonly files = new Map<string, Buffer>();
  /** Paths by the ids that messages carry. */
  readonly fileIds = new Map<string, string>();
  webhook: Webhook | null = null;
  allowedUpdates: readonly string[] | null = null;
  /** Updates handed out at least once, by number: how often. */
  readonly deliveries = new Map<number, number>();
  /** How often two long polls met. */
  conflicts = 0;
  #nextUpdate = 1_000;
  #nextMessage = 1;
  readonly #watchers = new Set<() => void>();

  /** Stores an update unless nobody asked for its kind; returns its number either way. */
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

  nextMessageId(): number {
    this.#nextMessage += 1;
    return this.#nextMessage;
  }

  /** Stores what somebody sends; returns the id for a message. */
  addFile(content: Buffer): string {
    const path = `documents/file_${this.files.size}.dat`;
    const fileId = `BQACAgQ${this.files.size}stand-in`;
    this.files.set(path, content);
    this.fileIds.set(fileId, path);
    return fileId;
  }

  /** Forgets updates before `offset`. A negative one keeps only that many of the last. */
  confirmBefore(offset: number): void {
    const first = offset < 0 ? (this.updates.at(offset)?.update_id ?? 0) : offset;
    const kept = this.updates.filter((update) => update.update_id >= first);
    if (kept.length === this.updates.length) return;
    this.updates.splice(0, this.updates.length, ...kept);
    this.changed();
  }

  takeFault(method: string): Fault | null {
    const place = this.faults.findIndex((entry) => entry.method === method || entry.method === "*");
    return place === -1 ? null : (this.faults.splice(place, 1)[0]?.fault ?? null);
  }

  changed(): void {
    for (const watcher of this.#watchers) watcher();
  }

  /** Calls `watcher` after each change until the returned function is called. */
  watch(watcher: () => void): () => void {
    this.#watchers.add(watcher);
    return () => this.#watchers.delete(watcher);
  }

  /** Resolves once `done` returns something other than null; rejects after `timeoutMs`. */
  async until<Value>(what: string, done: () => Value | null, timeoutMs = 10_000): Promise<Value> {
    const { promise, resolve, reject } = Promise.withResolvers<Value>();
    const look = (): void => {
      const value = done();
      if (value !== null) resolve(value);
    };
    const stop = this.watch(look);
    const timer = setTimeout(
      () => reject(new Error(`The Telegram stand-in waited ${timeoutMs} ms for ${what}.`)),
      timeoutMs,
    );
    look();
    try {
      return await promise;
    } finally {
      clearTimeout(timer);
      stop();
    }
  }
}
