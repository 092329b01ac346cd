// A stream of server-sent events on one response: headers, keep-alive comments, and a limit for slow readers. Independent of the
// content.
import type { FastifyReply } from "fastify";

/** Proxies close connections that are silent for 30 to 60 s. */
const keepAliveMs = 15_000;
/** Buffered bytes above which live events are skipped, and above which a slow reader is disconnected. */
const softBytes = 256 * 1024;
const hardBytes = 4 * 1024 * 1024;

export class SseWriter {
  readonly #raw: FastifyReply["raw"];
  readonly #onSlow: () => void;
  #timer: NodeJS.Timeout | undefined;

  /** Takes over the response and sends the headers. */
  constructor(reply: FastifyReply, onSlow: () => void = () => undefined) {
    this.#onSlow = onSlow;
    this.#raw = reply.raw;
    for (const [name, value] of Object.entries(reply.getHeaders()))
      if (value !== undefined) this.#raw.setHeader(name, value);
    reply.hijack();
    this.#raw.writeHead(200, {
      "content-type": "text/event-stream; charset=utf-8",
      "cache-control": "no-cache, no-transform",
      // Disables the buffering of nginx.
      "x-accel-buffering": "no",
    });
    this.#raw.flushHeaders();
    this.#raw.once("close", () => clearInterval(this.#timer));
    this.#keepAlive();
  }

  get closed(): boolean {
    return this.#raw.destroyed || this.#raw.writableEnded;
  }

  /** Whether the reader is slow, so that live events should be skipped. */
  get behind(): boolean {
    return this.#raw.writableLength > softBytes;
  }

  /** Writes a complete frame, including its blank line. */
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
