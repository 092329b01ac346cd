// The state of the fake workspace: conversations, the app's messages, files, deliveries, queued faults, and waiters. The rules of the Web
// API are in `methods.ts`, those of deliveries in `deliveries.ts`.
import { PeerState } from "../peer-state.ts";

export interface SlackButton {
  label: string;
  actionId: string;
  value: string;
  blockId: string;
}

interface SlackSentFile {
  name: string;
  title: string;
  content: Buffer;
}

/** A message of the app, as people see it. */
export interface SlackMessage {
  channel: string;
  ts: string;
  threadTs: string | null;
  /** After Slack has rendered the markup. */
  text: string;
  /** What notifications show: the parameter `text`. */
  fallback: string;
  blocks: readonly Record<string, unknown>[];
  buttons: readonly SlackButton[];
  files: readonly SlackSentFile[];
  /** People and groups that the message notifies. */
  notified: readonly string[];
  /** The person who alone sees it; null: everybody in the conversation. */
  onlyFor: string | null;
  /** The text as it was posted; `text` is that of the last edit. */
  postedText: string;
  edits: number;
  deleted: boolean;
}

/** One call that reached the fake. */
export interface SlackCall {
  method: string;
  parameters: Record<string, unknown>;
  /** The error code of the answer, `ok`, or null where the call was never answered. */
  result: string | null;
}

/**
 * A fault that replaces or follows the work of the next call of a method.
 * rate_limited: 429 with Retry-After · server_error: 500 · bad_gateway: 502 with a page that is not JSON · refuse: 200 with this error ·
 * hang_after_commit: done, never answered · reset_after_commit / reset_before_commit: the connection is cut.
 */
export type SlackFault =
  | { kind: "rate_limited"; retryAfterSeconds: number }
  | { kind: "server_error" | "bad_gateway" | "hang_after_commit" | "reset_after_commit" | "reset_before_commit" }
  | { kind: "refuse"; error: string };

/** A message of a person. */
export interface PersonsMessage {
  channel: string;
  ts: string;
  user: string;
  text: string;
  threadTs: string | null;
}

export interface PostRate {
  burst: number;
  everyMs: number;
}

export class SlackState extends PeerState<SlackFault> {
  readonly teamId = "T0STANDIN";
  readonly appId = "A0STANDIN";
  readonly bot = { userId: "U0PARLEY", botId: "B0PARLEY", name: "parley" };
  readonly sent: SlackMessage[] = [];
  readonly written: PersonsMessage[] = [];
  readonly calls: SlackCall[] = [];
  /** Names of people by their id; others are called by their id. */
  readonly names = new Map<string, string>();
  /** Conversations that do not exist or that the app is not in: the error of calls that name them. */
  readonly closed = new Map<string, string>();
  /** Reactions of the app: `<channel>:<ts>:<name>`. */
  readonly reactions = new Set<string>();
  /** Statuses that the app has shown, newest last. */
  readonly statuses: { channel: string; threadTs: string; status: string }[] = [];
  /** Uploads of the app that are not shared yet. */
  readonly uploads = new Map<string, { name: string; length: number; content: Buffer | null }>();
  /** Files of people by their id. */
  readonly files = new Map<string, { name: string; content: Buffer }>();
  /** Tokens that were revoked. */
  readonly revoked = new Set<string>();
  /** Scopes that the bot token does not have, such as `files:write`. */
  readonly missingScopes = new Set<string>();
  #ticks = 0;
  readonly #buckets = new Map<string, { tokens: number; atMs: number }>();

  constructor() {
    super("Slack");
  }

  /** A new timestamp, which is also a message's id. */
  nextTs(): string {
    this.#ticks += 1;
    return `17000${String(this.#ticks).padStart(5, "0")}.000100`;
  }

  messageAt(channel: string, ts: string): SlackMessage | undefined {
    return this.sent.find((message) => message.channel === channel && message.ts === ts && message.onlyFor === null);
  }

  /** Whether anybody wrote a message with this timestamp in the conversation. */
  exists(channel: string, ts: string): boolean {
    const found = this.messageAt(channel, ts);
    if (found !== undefined) return !found.deleted;
    return this.written.some((message) => message.channel === channel && message.ts === ts);
  }

  /** Takes one call from a rate; returns the seconds to wait when it is used up. */
  takeRate(key: string, { burst, everyMs }: PostRate): number | null {
    const nowMs = performance.now();
    const { tokens, atMs } = this.#buckets.get(key) ?? { tokens: burst, atMs: nowMs };
    const available = Math.min(burst, tokens + (nowMs - atMs) / everyMs);
    const allowed = available >= 1;
    this.#buckets.set(key, { tokens: allowed ? available - 1 : available, atMs: nowMs });
    return allowed ? null : Math.ceil(((1 - available) * everyMs) / 1_000);
  }
}
