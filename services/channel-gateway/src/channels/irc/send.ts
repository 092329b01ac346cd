// Sends one answer as IRC lines and determines their outcome. IRC has no acknowledgements: an answer counts as sent when the server has
// echoed the last line (labeled-response with echo-message). On servers without these it counts as sent after the PONG to a PING that
// follows the last line, because servers process lines in order.
import { ircChannel } from "@parley/contracts";
import type { OutboundText, SendOutcome } from "../channel.ts";
import type { IrcConnection } from "./connection.ts";
import { isWord, type IrcLine } from "./line.ts";
import { fold, isChannel } from "./names.ts";
import type { TokenBucket } from "./rate-limit.ts";
import { toLines } from "./text.ts";

const { maxLength: maxTextLength } = ircChannel.capabilities.text;
const tooFastRetryMs = 30_000;
const longestRetryMs = 60_000;

/** Replies that report that a message to `params[1]` was not delivered. */
const refusals: ReadonlySet<string> = new Set([
  "401",
  "402",
  "403",
  "404",
  "407",
  "413",
  "415",
  "442",
  "477",
  "486",
  "531",
  "716",
]);
/** "Target change too fast": the only temporary refusals. */
const tooFast: ReadonlySet<string> = new Set(["439", "707"]);

type End =
  | { state: "confirmed"; messageId: string | null }
  | { state: "refused"; code: string; reason: string }
  | { state: "lost" };

interface Pending {
  target: string;
  /** The label or PING token of the last line. */
  last: string | null;
  end: (end: End) => void;
}

/** The sending half of one connection. */
export class Sender {
  readonly #connection: IrcConnection;
  readonly #pacer: TokenBucket;
  /** Labels and PING tokens of lines that wait for a response. */
  readonly #marks = new Map<string, Pending>();
  /** Batches that respond to a labeled line: batch reference to label. */
  readonly #batches = new Map<string, string>();
  #lineNumber = 0;

  constructor(connection: IrcConnection, pacer: TokenBucket) {
    this.#connection = connection;
    this.#pacer = pacer;
  }

  /** `withinMs`: the time limit for writing the last line. */
  async send(message: OutboundText, signal: AbortSignal, withinMs: number): Promise<SendOutcome> {
    const connection = this.#connection;
    const { conversation: target, replyToId } = message.address;
    if (!isWord(target) || target.includes(",")) return { state: "dropped", reason: "not an IRC conversation" };
    const prefix = isChannel(target) && replyToId !== undefined && isWord(replyToId) ? `${replyToId}: ` : "";
    const lines = toLines(message.text, prefix, Math.min(maxTextLength, connection.roomFor(target)));
    if (lines.length === 0) return { state: "dropped", reason: "empty text" };
    const turns = this.#pacer.reserve(lines.length, withinMs);
    if ("waitMs" in turns)
      return { state: "retry", afterMs: turns.waitMs, reason: "rate limit: other lines are queued" };

    const { promise: ended, resolve } = Promise.withResolvers<End>();
    const pending: Pending = { target: fold(target, connection.mapping), last: null, end: resolve };
    let over = false;
    void ended.then(() => (over = true));
    let written = 0;
    const stopped = (reason: string): SendOutcome =>
      written === 0
        ? sendFailure(message, reason)
        : { state: "unknown", reason: `${written} of ${lines.length} lines written, then: ${reason}` };
    try {
      for (const [index, text] of lines.entries()) {
        if (!(await turns.next(signal))) return stopped("cancelled");
        if (over) break;
        if (!this.#write(pending, target, text, index === lines.length - 1)) return stopped("not connected");
        written += 1;
      }
      const end = await orAborted(ended, signal);
      if (end.state === "lost") return stopped(signal.aborted ? "no confirmation in time" : "the connection broke");
      if (end.state === "confirmed") return { state: "sent", providerMessageId: end.messageId };
      if (!tooFast.has(end.code)) return { state: "dropped", reason: end.reason };
      return written === 1 ? { state: "retry", afterMs: tooFastRetryMs, reason: end.reason } : stopped(end.reason);
    } finally {
      for (const [mark, waiting] of this.#marks) if (waiting === pending) this.#marks.delete(mark);
    }
  }

  /** Consumes a line that responds to a sent line; returns false for other lines. */
  take(line: IrcLine): boolean {
    const batch = this.#batches.get(line.tags.get("batch") ?? "");
    const mark = line.tags.get("label") ?? batch ?? (line.command === "PONG" ? line.params.at(-1) : undefined);
    if (line.command === "BATCH") {
      const [reference = ""] = line.params;
      if (reference.startsWith("+") && mark !== undefined) this.#batches.set(reference.slice(1), mark);
      return reference.startsWith("-") ? this.#batches.delete(reference.slice(1)) : mark !== undefined;
    }
    const pending = mark === undefined ? this.#refusedUnmarked(line) : this.#marks.get(mark);
    if (pending === undefined) return false;
    if (/^[45]\d\d$|^7\d\d$|^FAIL$/.test(line.command)) {
      pending.end({
        state: "refused",
        code: line.command,
        reason: `${line.command} ${line.params.at(-1) ?? ""}`.trim(),
      });
    } else if (mark === pending.last) {
      pending.end({ state: "confirmed", messageId: line.tags.get("msgid") ?? null });
    }
    return true;
  }

  /** Ends all pending sends after the connection is lost. */
  lost(): void {
    for (const pending of this.#marks.values()) pending.end({ state: "lost" });
    this.#marks.clear();
  }

  #write(pending: Pending, target: string, text: string, last: boolean): boolean {
    const connection = this.#connection;
    if (!connection.isOpen) return false;
    this.#lineNumber += 1;
    const mark = `p${this.#lineNumber.toString(36)}`;
    const labeled = connection.has("labeled-response", "echo-message");
    this.#marks.set(mark, pending);
    if (last) pending.last = mark;
    const params = [target, text];
    if (labeled) return connection.write({ tags: { label: mark }, command: "PRIVMSG", params });
    const left = connection.write({ command: "PRIVMSG", params });
    if (last) connection.write({ command: "PING", params: [mark] });
    return left;
  }

  #refusedUnmarked({ command, params }: IrcLine): Pending | undefined {
    if (!refusals.has(command) && !tooFast.has(command)) return undefined;
    const target = fold(params[1] ?? "", this.#connection.mapping);
    for (const pending of this.#marks.values()) if (pending.target === target) return pending;
    return undefined;
  }
}

/** The outcome when nothing was written: retried with exponential backoff, so that a server may be down for minutes. */
export function sendFailure({ attempts }: OutboundText, reason: string): SendOutcome {
  return { state: "retry", afterMs: Math.min(1_000 * 2 ** attempts, longestRetryMs), reason };
}

async function orAborted(ended: Promise<End>, signal: AbortSignal): Promise<End> {
  const { promise, resolve } = Promise.withResolvers<End>();
  const giveUp = (): void => resolve({ state: "lost" });
  signal.addEventListener("abort", giveUp, { once: true });
  if (signal.aborted) giveUp();
  const end = await Promise.race([ended, promise]);
  signal.removeEventListener("abort", giveUp);
  return end;
}
