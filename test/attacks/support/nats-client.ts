// A NATS client without our library: a thief is bound neither by the contracts nor by the checks of our own client.
import { once } from "node:events";
import { connect, type Socket } from "node:net";
import type { Cleanup } from "@parley/testing";

export interface Heard {
  subject: string;
  payload: string;
}

/** How one request ended. `denied`: by the server's permissions; `unserved`: nobody subscribes to the subject. */
export type Outcome = { kind: "denied" | "unserved" | "unanswered" } | { kind: "answered"; payload: string };

const headerEnd = "\r\n";

export class NatsClient {
  /** Messages of subscriptions other than the replies to own requests. */
  readonly heard: Heard[] = [];
  /** Subjects whose subscription the server refused. */
  readonly refusedSubscriptions = new Set<string>();
  readonly #socket: Socket;
  readonly #inbox: string;
  readonly #replies = new Map<string, (outcome: Outcome) => void>();
  /** Requests by subject that were not answered yet, oldest first: an error names only the subject. */
  readonly #open = new Map<string, ((outcome: Outcome) => void)[]>();
  readonly #pongs: (() => void)[] = [];
  #buffer = Buffer.alloc(0);
  #next = 0;

  private constructor(socket: Socket, inbox: string) {
    this.#socket = socket;
    this.#inbox = inbox;
  }

  /** `inbox`: the prefix of reply subjects that the login may use. */
  static async open(cleanup: Cleanup, url: string, inbox: string): Promise<NatsClient> {
    const { port, username, password } = new URL(url);
    const socket = connect(Number(port), "127.0.0.1");
    await once(socket, "connect");
    const client = new NatsClient(socket, `${inbox}.thief`);
    cleanup.add(async () => {
      socket.destroy();
    });
    socket.on("data", (part: Buffer) => client.#read(part));
    const login = { verbose: false, headers: true, no_responders: true, user: username, pass: password };
    client.#write(`CONNECT ${JSON.stringify(login)}`);
    client.#write(`SUB ${client.#inbox}.* 1`);
    await client.flushed();
    return client;
  }

  subscribe(subject: string): void {
    this.#next += 1;
    this.#write(`SUB ${subject} ${this.#next + 1}`);
  }

  publish(subject: string, payload: string): void {
    this.#write(`PUB ${subject} ${Buffer.byteLength(payload)}${headerEnd}${payload}`);
  }

  /** Resolves with the reply, or with why there is none. */
  request(subject: string, payload: string, waitMs: number): Promise<Outcome> {
    this.#next += 1;
    const reply = `${this.#inbox}.${this.#next}`;
    return new Promise((resolve) => {
      const end = (outcome: Outcome): void => {
        clearTimeout(timer);
        this.#replies.delete(reply);
        const rest = this.#open.get(subject)?.filter((each) => each !== end) ?? [];
        this.#open.set(subject, rest);
        resolve(outcome);
      };
      const timer = setTimeout(() => end({ kind: "unanswered" }), waitMs);
      this.#replies.set(reply, end);
      this.#open.set(subject, [...(this.#open.get(subject) ?? []), end]);
      this.#write(`PUB ${subject} ${reply} ${Buffer.byteLength(payload)}${headerEnd}${payload}`);
    });
  }

  /** Resolves when the server has handled everything before. */
  flushed(): Promise<void> {
    return new Promise((resolve) => {
      this.#pongs.push(resolve);
      this.#write("PING");
    });
  }

  #write(line: string): void {
    this.#socket.write(`${line}${headerEnd}`);
  }

  #read(part: Buffer): void {
    this.#buffer = Buffer.concat([this.#buffer, part]);
    for (;;) {
      const end = this.#buffer.indexOf(headerEnd);
      if (end === -1) return;
      const line = this.#buffer.subarray(0, end).toString();
      const words = line.split(" ");
      const isMessage = words[0] === "MSG" || words[0] === "HMSG";
      const bytes = isMessage ? Number(words.at(-1)) : 0;
      const used = end + 2 + (isMessage ? bytes + 2 : 0);
      if (this.#buffer.length < used) return;
      const body = this.#buffer.subarray(end + 2, end + 2 + bytes);
      this.#buffer = this.#buffer.subarray(used);
      if (isMessage) this.#message(words, body);
      else this.#control(line);
    }
  }

  #message(words: readonly string[], body: Buffer): void {
    const headerBytes = words[0] === "HMSG" ? Number(words.at(-2)) : 0;
    const [headers, payload] = [body.subarray(0, headerBytes).toString(), body.subarray(headerBytes).toString()];
    const subject = words[1] ?? "";
    const reply = this.#replies.get(subject);
    if (reply === undefined) this.heard.push({ subject, payload });
    else reply(headers.startsWith("NATS/1.0 503") ? { kind: "unserved" } : { kind: "answered", payload });
  }

  #control(line: string): void {
    if (line === "PING") this.#write("PONG");
    if (line === "PONG") this.#pongs.shift()?.();
    const publish = /Permissions Violation for Publish to "([^"]+)"/.exec(line)?.[1];
    if (publish !== undefined) this.#open.get(publish)?.[0]?.({ kind: "denied" });
    const subscription = /Permissions Violation for Subscription to "([^"]+)"/.exec(line)?.[1];
    if (subscription !== undefined) this.refusedSubscriptions.add(subscription);
  }
}
