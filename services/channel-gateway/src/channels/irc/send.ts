// Sends one line to IRC and determines its outcome. IRC has no acknowledgements: a line counts as sent when the server has echoed it
// (labeled-response with echo-message). On servers without these it counts as sent after the PONG to a PING that follows the line, because
// servers process lines in order.
import { abortable } from "@parley/kit";
import type { OutboundPart, SendOutcome } from "../channel.ts";
import type { IrcConnection } from "./connection.ts";
import { isWord, type IrcLine } from "./line.ts";
import { fold, isChannel } from "./names.ts";

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
  end: (end: End) => void;
}

/** An IRC answer in a channel begins with the nick of its addressee. */
export function prefixOf({ conversation, replyToId }: OutboundPart["address"]): string {
  return isChannel(conversation) && replyToId !== undefined && isWord(replyToId) ? `${replyToId}: ` : "";
}

/** The sending half of one connection. */
export class Sender {
  readonly #connection: IrcConnection;
  /** Labels and PING tokens of lines that wait for a response. */
  readonly #marks = new Map<string, Pending>();
  /** Batches that respond to a labeled line: batch reference to label. */
  readonly #batches = new Map<string, string>();
  #lineNumber = 0;

  constructor(connection: IrcConnection) {
    this.#connection = connection;
  }

  async send(part: OutboundPart, text: string, signal: AbortSignal): Promise<SendOutcome> {
    const { conversation: target } = part.address;
    if (!isWord(target) || target.includes(",")) return { state: "dropped", reason: "not an IRC conversation" };
    const { promise: ended, resolve } = Promise.withResolvers<End>();
    const pending: Pending = { target: fold(target, this.#connection.mapping), end: resolve };
    if (signal.aborted || !this.#write(pending, target, `${prefixOf(part.address)}${text.replaceAll("\t", "    ")}`)) {
      return sendFailure(part, signal.aborted ? "cancelled" : "not connected");
    }
    try {
      const end = await abortable(ended, signal).catch((): End => ({ state: "lost" }));
      if (end.state === "lost") {
        return { state: "unknown", reason: signal.aborted ? "no confirmation in time" : "the connection broke" };
      }
      if (end.state === "confirmed") return { state: "sent", providerMessageId: end.messageId };
      if (!tooFast.has(end.code)) return { state: "dropped", reason: end.reason };
      return { state: "retry", afterMs: tooFastRetryMs, reason: end.reason, scope: "conversation" };
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
    } else if (mark !== undefined) {
      pending.end({ state: "confirmed", messageId: line.tags.get("msgid") ?? null });
    }
    return true;
  }

  /** Ends all pending sends after the connection is lost. */
  lost(): void {
    for (const pending of this.#marks.values()) pending.end({ state: "lost" });
    this.#marks.clear();
  }

  #write(pending: Pending, target: string, text: string): boolean {
    const connection = this.#connection;
    if (!connection.isOpen) return false;
    this.#lineNumber += 1;
    const mark = `p${this.#lineNumber.toString(36)}`;
    this.#marks.set(mark, pending);
    const params = [target, text];
    if (connection.has("labeled-response", "echo-message")) {
      return connection.write({ tags: { label: mark }, command: "PRIVMSG", params });
    }
    const left = connection.write({ command: "PRIVMSG", params });
    connection.write({ command: "PING", params: [mark] });
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
export function sendFailure({ attempts }: OutboundPart, reason: string): SendOutcome {
  return { state: "retry", afterMs: Math.min(1_000 * 2 ** attempts, longestRetryMs), reason };
}
