// A stream of server-sent events on one response: headers, comments that keep it open, a bound for slow readers. Knows nothing
// of what is streamed.
import type { FastifyReply } from "fastify";

/** Proxies close what is silent for 30 to 60 seconds. */
const keepAliveMs = 15_000;
/** What may wait for a slow reader before the optional is left out, and before it is cut off. */
const softBytes = 256 * 1024;
const hardBytes = 4 * 1024 * 1024;

export class SseWriter {
  readonly #raw: FastifyReply["raw"];
  readonly #onSlow: () => void;
  #timer: NodeJS.Timeout | undefined;

  /** Takes the response over and sends its head. */
  constructor(reply: FastifyReply, onSlow: () => void = () => undefined) {
    this.#onSlow = onSlow;
    this.#raw = reply.raw;
    for (const [name, value] of Object.entries(reply.getHeaders()))
      if (value !== undefined) this.#raw.setHeader(name, value);
    reply.hijack();
    this.#raw.writeHead(200, {
      "content-type": "text/event-stream; charset=utf-8",
      "cache-control": "no-cache, no-transform",
      // nginx buffers otherwise.
      "x-accel-buffering": "no",
    });
    this.#raw.flushHeaders();
    this.#raw.once("close", () => clearInterval(this.#timer));
    this.#keepAlive();
  }

  get closed(): boolean {
    return this.#raw.destroyed || this.#raw.writableEnded;
  }

  /** Whether the reader is behind, so that what may be left out should be. */
  get behind(): boolean {
    return this.#raw.writableLength > softBytes;
  }

  /** Writes a whole frame, its blank line included. */
  write(frame: string): void {
    if (this.closed) return;
    if (this.#raw.writableLength > hardBytes) {
      this.#onSlow();
      this.#raw.destroy();
      return;
    }
    this.#raw.write(frame);
    this.#timer?.refresh();
  }

  end(lastFrame = ""): void {
    clearInterval(this.#timer);
    if (!this.closed) this.#raw.end(lastFrame);
  }

  #keepAlive(): void {
    this.#timer = setInterval(() => this.write(": keep-alive\n\n"), keepAliveMs);
  }
}
