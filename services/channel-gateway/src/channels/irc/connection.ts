// One connection to an IRC server: socket, handshake, channel joins, keep-alive. It passes all other lines to its owner and depends
// neither on the gateway nor on the meaning of messages.
import { once } from "node:events";
import { connect as connectPlain, isIP, type Socket } from "node:net";
import { connect as connectTls } from "node:tls";
import { lineReader } from "./framing.ts";
import { Handshake } from "./handshake.ts";
import { formatLine, nickOf, parseLine, type IrcCommand, type IrcLine } from "./line.ts";
import { fold, type CaseMapping } from "./names.ts";

export interface ConnectionOptions {
  host: string;
  port: number;
  tls: boolean;
  nick: string;
  password: string | null;
  channels: readonly string[];
  times?: Partial<ConnectionTimes>;
}

export interface ConnectionTimes {
  /** Timeout of the registration, including the wait for a nick in use. */
  openWithinMs: number;
  /** Silence after which a PING is sent. */
  pingAfterMs: number;
  /** Silence after which the connection is closed. */
  deadAfterMs: number;
  nickRetryMs: number;
  rejoinMs: number;
}

const defaultTimes: ConnectionTimes = {
  openWithinMs: 45_000,
  pingAfterMs: 15_000,
  deadAfterMs: 30_000,
  nickRetryMs: 1_000,
  rejoinMs: 5_000,
};
const readyToken = "parley-ready";

class IrcConnectionError extends Error {
  override readonly name = "IrcConnectionError";
}

export class IrcConnection {
  /** Resolves with the reason when the connection has ended. */
  readonly closed: Promise<string>;
  mapping: CaseMapping = "rfc1459";
  readonly #socket: Socket;
  readonly #options: ConnectionOptions;
  readonly #times: ConnectionTimes;
  readonly #handshake: Handshake;
  readonly #onLine: (line: IrcLine, connection: IrcConnection) => void;
  readonly #onNotice: (message: string) => void;
  readonly #ready = Promise.withResolvers<void>();
  readonly #closed = Promise.withResolvers<string>();
  readonly #timers = new Set<NodeJS.Timeout>();
  #registered = false;
  #open = false;
  #ended = false;
  /** `nick!user@host` as other clients see this connection; null until the server has sent it. */
  #ownSource: string | null = null;
  #lastHeardAt = performance.now();

  private constructor(
    socket: Socket,
    options: ConnectionOptions,
    onLine: (line: IrcLine, connection: IrcConnection) => void,
    onNotice: (message: string) => void,
  ) {
    this.#socket = socket;
    this.#options = options;
    this.#times = { ...defaultTimes, ...options.times };
    this.#handshake = new Handshake(options);
    this.#onLine = onLine;
    this.#onNotice = onNotice;
    this.closed = this.#closed.promise;
    this.#ready.promise.catch(() => {});
  }

  /**
   * Connects, logs in and joins the channels. Rejects with an IrcConnectionError on failure or when `signal` aborts. `onLine` receives all
   * lines after the registration, also during the joins; `onNotice` receives messages for the operator.
   */
  static async open(
    options: ConnectionOptions,
    signal: AbortSignal,
    onLine: (line: IrcLine, connection: IrcConnection) => void,
    onNotice: (message: string) => void,
  ): Promise<IrcConnection> {
    const { host, port } = options;
    if (signal.aborted) throw new IrcConnectionError("cancelled");
    const socket = options.tls
      ? connectTls({ host, port, ...(isIP(host) === 0 ? { servername: host } : {}) })
      : connectPlain({ host, port });
    const connection = new IrcConnection(socket, options, onLine, onNotice);
    const giveUp = (): void => connection.#end("cancelled");
    signal.addEventListener("abort", giveUp, { once: true });
    try {
      connection.#begin();
      await connection.#ready.promise;
      return connection;
    } finally {
      signal.removeEventListener("abort", giveUp);
    }
  }

  get nick(): string {
    return this.#options.nick;
  }

  has(...capabilities: string[]): boolean {
    return capabilities.every((name) => this.#handshake.capabilities.has(name));
  }

  get capabilities(): string[] {
    return [...this.#handshake.capabilities];
  }

  get isOpen(): boolean {
    return this.#open && !this.#ended;
  }

  /** Bytes of text that fit into one line to `target`: a line has 512 bytes including the prefix that the server adds. */
  roomFor(target: string): number {
    const source = this.#ownSource ?? `${this.nick}!~parley@${"h".repeat(63)}`;
    return 512 - Buffer.byteLength(`:${source} PRIVMSG ${target} :\r\n`);
  }

  /** Writes a line; returns false when the connection has ended and nothing was written. */
  write(command: IrcCommand): boolean {
    if (this.#ended || !this.#socket.writable) return false;
    this.#socket.write(`${formatLine(command)}\r\n`);
    return true;
  }

  /** Sends QUIT and closes the connection immediately. */
  async close(reason: string): Promise<void> {
    if (!this.#ended) {
      this.write({ command: "QUIT", params: [reason] });
      this.#socket.destroySoon();
      this.#end(reason, true);
    }
    if (!this.#socket.destroyed) {
      const force = setTimeout(() => this.#socket.destroy(), 500);
      await once(this.#socket, "close");
      clearTimeout(force);
    }
  }

  #begin(): void {
    const socket = this.#socket;
    const read = lineReader();
    socket.setNoDelay(true);
    socket.on("data", (bytes: Buffer) => {
      this.#lastHeardAt = performance.now();
      for (const text of read(bytes)) {
        const line = parseLine(text);
        if (line !== null && !this.#ended) this.#take(line);
      }
    });
    socket.on("error", (error) => this.#end(reasonOf(error)));
    socket.on("close", () => this.#end("the server closed the connection"));
    socket.once(this.#options.tls ? "secureConnect" : "connect", () => this.#send(this.#handshake.start()));
    this.#later(this.#times.openWithinMs, () => {
      if (!this.#open) this.#end("the registration with the server timed out");
    });
    this.#watchLiveness();
  }

  #take(line: IrcLine): void {
    const { command, params } = line;
    if (command === "PING") {
      this.write({ command: "PONG", params: [params.at(-1) ?? ""] });
    } else if (command === "ERROR") {
      this.#end(`the server ended the connection: ${params.at(-1) ?? ""}`);
    } else if (!this.#registered) {
      this.#greet(line);
    } else if (command === "PONG" && params.at(-1) === readyToken) {
      this.#open = true;
      this.#ready.resolve();
    } else {
      this.#keepPlace(line);
      this.#onLine(line, this);
    }
  }

  #greet(line: IrcLine): void {
    const step = this.#handshake.take(line);
    if (step.kind === "failed") {
      this.#end(step.reason);
      return;
    }
    this.#send(step.send);
    if (step.kind === "registered") {
      this.#registered = true;
      for (const channel of this.#options.channels) this.#join(channel);
      // The server processes lines in order, so the PONG confirms that the joins are complete.
      this.write({ command: "PING", params: [readyToken] });
    } else if (step.nickTaken === true) {
      this.#onNotice(`nick ${this.nick} in use: retried`);
      this.#later(this.#times.nickRetryMs, () => {
        if (!this.#registered) this.#send(this.#handshake.askAgain());
      });
    }
  }

  /** Tracks the case mapping, our own source, renames, kicks and failed joins. */
  #keepPlace(line: IrcLine): void {
    const { command, params, source } = line;
    const ours = (nick: string): boolean => fold(nick, this.mapping) === fold(this.nick, this.mapping);
    if (command === "005") {
      const mapping = params.find((word) => word.startsWith("CASEMAPPING="))?.slice("CASEMAPPING=".length);
      if (mapping === "ascii" || mapping === "rfc1459" || mapping === "rfc1459-strict") this.mapping = mapping;
    }
    if (command === "NICK" && ours(nickOf(source)) && !ours(params[0] ?? "")) {
      this.#end(`the server renamed us to ${params[0] ?? ""}`);
    }
    if (source?.includes("!") === true && ours(nickOf(source))) this.#ownSource = source;
    const [channel = "", victim = ""] = params;
    if (command === "KICK" && ours(victim)) {
      this.#onNotice(`kicked from ${channel}: ${params[2] ?? ""}`);
      this.#later(this.#times.rejoinMs, () => this.#join(channel));
    }
    if (/^(?:403|405|471|473|474|475|476|477|489)$/.test(command)) {
      this.#onNotice(`cannot join ${params[1] ?? "a channel"}: ${params.at(-1) ?? command}`);
    }
  }

  #join(channel: string): void {
    this.write({ command: "JOIN", params: [channel] });
  }

  #send(commands: readonly IrcCommand[]): void {
    for (const command of commands) this.write(command);
  }

  #watchLiveness(): void {
    const { pingAfterMs, deadAfterMs } = this.#times;
    let askedAt = 0;
    const look = (): void => {
      const now = performance.now();
      const silentMs = now - this.#lastHeardAt;
      if (silentMs >= deadAfterMs) {
        this.#end("the server stopped responding");
        return;
      }
      if (silentMs >= pingAfterMs && askedAt <= this.#lastHeardAt && this.#registered) {
        this.write({ command: "PING", params: ["parley-alive"] });
        askedAt = now;
      }
      const nextMs = silentMs >= pingAfterMs ? Math.min(pingAfterMs, deadAfterMs - silentMs) : pingAfterMs - silentMs;
      this.#later(Math.max(1, nextMs), look);
    };
    this.#later(pingAfterMs, look);
  }

  #later(afterMs: number, act: () => void): void {
    const timer = setTimeout(() => {
      this.#timers.delete(timer);
      if (!this.#ended) act();
    }, afterMs);
    this.#timers.add(timer);
  }

  #end(reason: string, gently = false): void {
    if (this.#ended) return;
    this.#ended = true;
    for (const timer of this.#timers) clearTimeout(timer);
    if (!gently) this.#socket.destroy();
    this.#ready.reject(new IrcConnectionError(reason));
    this.#closed.resolve(reason);
  }
}

function reasonOf(error: Error): string {
  const code = "code" in error && typeof error.code === "string" ? error.code : "";
  if (/CERT|SELF_SIGNED|UNABLE_TO|ALTNAME/.test(code)) return `the server's certificate is not trusted (${code})`;
  return error.message.includes(code) ? error.message : `${code}: ${error.message}`;
}
