// Test clients that record what they receive: a reader of server-sent events and a WebSocket client.
import { once } from "node:events";
import { WebSocket, type ClientOptions } from "ws";
import { token, type Replica } from "./stack.ts";

export interface ReceivedFrame {
  type: string;
  seq?: number;
  session?: string | null;
  [key: string]: unknown;
}

/** Records frames and waits for further ones. */
class Ear {
  readonly heard: ReceivedFrame[] = [];
  #wake: () => void = () => undefined;

  add(frame: ReceivedFrame): void {
    this.heard.push(frame);
    this.#wake();
  }

  /** Resolves with the first matching frame, already received or future. */
  async until(fits: (frame: ReceivedFrame) => boolean): Promise<ReceivedFrame> {
    for (;;) {
      const found = this.heard.find(fits);
      if (found !== undefined) return found;
      const { promise, resolve } = Promise.withResolvers<void>();
      this.#wake = resolve;
      await promise;
    }
  }

  /** The seqs of the durable events, in order of arrival. */
  get seqs(): number[] {
    return this.heard.flatMap(({ seq }) => (seq === undefined ? [] : [seq]));
  }
}

export class SseReader extends Ear {
  readonly ended: Promise<void>;
  lastId: string | undefined;
  readonly #controller = new AbortController();

  private constructor(response: Response, controller: AbortController) {
    super();
    this.#controller = controller;
    this.ended = this.#read(response).catch(() => undefined);
  }

  static async open(gateway: Replica, query = "", headers: Record<string, string> = {}): Promise<SseReader> {
    const controller = new AbortController();
    const response = await fetch(`${gateway.url}/api/events${query}`, {
      headers: { authorization: `Bearer ${token}`, ...headers },
      signal: controller.signal,
    });
    if (response.status !== 200) throw new Error(`${response.status}: ${await response.text()}`);
    return new SseReader(response, controller);
  }

  close(): void {
    this.#controller.abort();
  }

  async #read(response: Response): Promise<void> {
    if (response.body === null) return;
    let rest = "";
    for await (const text of response.body.pipeThrough(new TextDecoderStream())) {
      const frames = (rest + text).split("\n\n");
      rest = frames.pop() ?? "";
      for (const frame of frames) this.#take(frame);
    }
  }

  #take(frame: string): void {
    let type = "";
    for (const line of frame.split("\n")) {
      if (line.startsWith("event: ")) type = line.slice(7);
      if (line.startsWith("id: ")) this.lastId = line.slice(4);
      if (line.startsWith("data: ")) this.add({ type, ...(JSON.parse(line.slice(6)) as object) });
    }
  }
}

export class WsReader extends Ear {
  readonly socket: WebSocket;
  readonly closed: Promise<{ code: number }>;

  private constructor(socket: WebSocket) {
    super();
    this.socket = socket;
    socket.on("message", (data: Buffer) => this.add(JSON.parse(data.toString("utf8")) as ReceivedFrame));
    this.closed = new Promise((resolve) => socket.once("close", (code) => resolve({ code })));
  }

  static async open(
    gateway: Replica,
    options: ClientOptions = {},
    protocols: string[] = [],
    query = "",
  ): Promise<WsReader> {
    const headers = protocols.length > 0 ? {} : { authorization: `Bearer ${token}` };
    const socket = new WebSocket(`${gateway.url.replace("http", "ws")}/api/ws${query}`, protocols, {
      headers,
      ...options,
    });
    const reader = new WsReader(socket);
    await once(socket, "open");
    return reader;
  }

  say(frame: object | string): void {
    this.socket.send(typeof frame === "string" ? frame : JSON.stringify(frame));
  }
}
