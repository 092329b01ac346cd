// One answer → IRC lines, and what became of them. IRC acknowledges nothing by itself: an answer counts as sent when the server has
// given back our own last line (labeled-response with echo-message), or, on a server without these, when it has answered a PING written
// behind it, because it works in order.
import type { OutboundText, SendOutcome } from "../../channel.ts";
import type { IrcConnection } from "./connection.ts";
import { isWord, type IrcLine } from "./line.ts";
import { fold, isChannel } from "./names.ts";
import type { Pacer } from "./pace.ts";
import { linesOf } from "./text.ts";

/** Text in one line, in bytes: leaves room for the longest names most servers allow. */
export const maxTextLength = 400;
const tooFastRetryMs = 30_000;
const longestRetryMs = 60_000;

/** Replies that say a message to `params[1]` did not get through. */
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
/** "Target change too fast": the only one that passes. */
const tooFast: ReadonlySet<string> = new Set(["439", "707"]);

type End =
  | { state: "confirmed"; messageId: string | null }
  | { state: "refused"; code: string; reason: string }
  | { state: "lost" };

interface Pending {
  target: string;
  /** The mark of the last line. */
  last: string | null;
  end: (end: End) => void;
}

/** The sending half of one connection. */
export class Sender {
  readonly #connection: IrcConnection;
  readonly #pacer: Pacer;
  /** Marks (labels or PING tokens) of lines that wait for their answer. */
  readonly #marks = new Map<string, Pending>();
  /** Batches that are an answer to a labeled line. */
  readonly #batches = new Map<string, string>();
  #lineNumber = 0;

  constructor(connection: IrcConnection, pacer: Pacer) {
    this.#connection = connection;
    this.#pacer = pacer;
  }

  /** `withinMs`: how long it may take until the last line has left. */
  async send(message: OutboundText, signal: AbortSignal, withinMs: number): Promise<SendOutcome> {
    const connection = this.#connection;
    const { conversation: target, replyToId } = message.address;
    if (!isWord(target) || target.includes(",")) return { state: "dropped", reason: "not an IRC conversation" };
    const prefix = isChannel(target) && replyToId !== undefined && isWord(replyToId) ? `${replyToId}: ` : "";
    const lines = linesOf(message.text, prefix, Math.min(maxTextLength, connection.roomFor(target)));
    if (lines.length === 0) return { state: "dropped", reason: "nothing to say" };
    const turns = this.#pacer.reserve(lines.length, withinMs);
    if ("waitMs" in turns) return { state: "retry", afterMs: turns.waitMs, reason: "other lines are on their way" };

    const { promise: ended, resolve } = Promise.withResolvers<End>();
    const pending: Pending = { target: fold(target, connection.mapping), last: null, end: resolve };
    let over = false;
    void ended.then(() => (over = true));
    let written = 0;
    const stopped = (reason: string): SendOutcome =>
      written === 0
        ? notSent(message, reason)
        : { state: "unknown", reason: `${written} of ${lines.length} lines written, then: ${reason}` };
    try {
      for (const [index, text] of lines.entries()) {
        if (!(await turns.next(signal))) return stopped("given up");
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

  /** Takes a line if it is an answer to something that was sent. */
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

  /** The connection is gone: what waits for an answer will get none. */
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

/** Nothing left us: to be tried again after a pause that grows, so that a server may be away for minutes. */
export function notSent({ attempts }: OutboundText, reason: string): SendOutcome {
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
