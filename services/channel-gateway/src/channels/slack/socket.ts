// One connection of socket mode (https://docs.slack.dev/apis/events-api/using-socket-mode). An envelope is acknowledged on the connection
// that delivered it, after it was processed. When Slack announces that it closes a connection, the next one is opened first.
import { errorMessage } from "@parley/contracts";
import type { ChannelHost } from "../channel.ts";
import { JsonSocket } from "../json-socket.ts";
import { Frame } from "./schema.ts";

const helloWithinMs = 10_000;
const pingEveryMs = 10_000;
/** Without a frame for this long the connection is dead. */
const deadAfterMs = 30_000;
const maxMessageBytes = 4 * 1024 * 1024;
/** How long deliveries in progress may take before a connection is closed. */
const settleWithinMs = 1_000;

export type Take = (type: string, payload: unknown) => Promise<void>;

export class SlackSocket {
  /** Resolves with the reason when Slack wants another connection to be opened: `warning`, `refresh_requested` or `link_disabled`. */
  readonly leaving: Promise<string>;
  /** Resolves when the connection is closed. */
  readonly closed: Promise<void>;
  readonly #socket: JsonSocket;
  readonly #host: ChannelHost;
  readonly #take: Take;
  readonly #hello = Promise.withResolvers<void>();
  readonly #leaving = Promise.withResolvers<string>();
  readonly #working = new Set<Promise<void>>();
  readonly #watch: NodeJS.Timeout;
  #lastFrameMs = performance.now();

  private constructor(url: string, host: ChannelHost, take: Take) {
    this.#host = host;
    this.#take = take;
    this.leaving = this.#leaving.promise;
    this.#socket = new JsonSocket({
      url,
      maxMessageBytes,
      openWithinMs: helloWithinMs,
      onMessage: (message) => this.#receive(message),
      onFrame: () => void (this.#lastFrameMs = performance.now()),
    });
    this.closed = this.#untilClosed();
    this.#watch = setInterval(() => {
      if (performance.now() - this.#lastFrameMs > deadAfterMs) this.#socket.terminate();
      else this.#socket.ping();
    }, pingEveryMs);
  }

  /** Resolves with the connection after Slack's greeting; rejects when it does not come. `url` contains a ticket. */
  static async open(url: string, host: ChannelHost, take: Take, signal: AbortSignal): Promise<SlackSocket> {
    const socket = new SlackSocket(url, host, take);
    const timer = setTimeout(() => socket.#socket.terminate(), helloWithinMs);
    const stop = () => socket.#socket.terminate();
    signal.addEventListener("abort", stop, { once: true });
    if (signal.aborted) stop();
    try {
      await socket.#hello.promise;
      return socket;
    } finally {
      clearTimeout(timer);
      signal.removeEventListener("abort", stop);
    }
  }

  /** Closes the connection after the deliveries in progress, at most 1 s later. */
  async close(): Promise<void> {
    const timer = setTimeout(() => this.#socket.terminate(), settleWithinMs);
    await Promise.race([Promise.all(this.#working), this.closed]);
    clearTimeout(timer);
    this.#socket.terminate();
    await this.closed;
  }

  async #untilClosed(): Promise<void> {
    await this.#socket.closed;
    clearInterval(this.#watch);
    this.#hello.reject(new Error("Slack closed the connection before its greeting"));
  }

  #receive(message: unknown): void {
    const parsed = Frame.safeParse(message);
    if (!parsed.success) return;
    const { type, envelope_id: envelopeId, payload, reason = "" } = parsed.data;
    if (type === "hello") this.#hello.resolve();
    else if (type === "disconnect") this.#leaving.resolve(reason);
    else if (envelopeId !== undefined) {
      const work = this.#process(type, envelopeId, payload).finally(() => this.#working.delete(work));
      this.#working.add(work);
    }
  }

  async #process(type: string, envelopeId: string, payload: unknown): Promise<void> {
    try {
      await this.#take(type, payload);
    } catch (error) {
      // Without an acknowledgement Slack delivers it again.
      this.#host.log.warn({ reason: errorMessage(error) }, "event not stored: Slack will deliver it again");
      return;
    }
    this.#socket.send({ envelope_id: envelopeId });
  }
}
