// A WebSocket that reconnects: if a gateway is gone or silent, it tries the next one. The caller must request missed events.
//
//   trying ──open──▶ up ──closed or silent──▶ trying …          close() from anywhere ──▶ closed

import { reasonOf } from "../cluster/gateway.ts";
import type { Target } from "../cluster/target.ts";
import { readFrame, type ClientFrame, type IncomingFrame } from "./frames.ts";

export interface LinkTimes {
  /** Silence after which a ping is sent to the gateway. */
  readonly quietMs: number;
  /** Silence after which it counts as gone. */
  readonly deadMs: number;
  readonly openMs: number;
  readonly firstRetryMs: number;
  readonly maxRetryMs: number;
}

const linkTimes: LinkTimes = {
  quietMs: 5_000,
  deadMs: 12_000,
  openMs: 5_000,
  firstRetryMs: 100,
  maxRetryMs: 2_000,
};

export interface LinkListener {
  up(): void;
  heard(heard: IncomingFrame): void;
  /** The connection is lost or could not be opened, `tries` times in a row. Another attempt follows. */
  down(reason: string, tries: number): void;
}

export class ReconnectingSocket {
  readonly #target: Target;
  readonly #listener: LinkListener;
  readonly #times: LinkTimes;
  #socket: WebSocket | null = null;
  #isUp = false;
  #closed = false;
  #next = 0;
  #tries = 0;
  #heardAt = 0;
  #timer: NodeJS.Timeout | undefined;
  #watch: NodeJS.Timeout | undefined;

  constructor(target: Target, listener: LinkListener, times: LinkTimes = linkTimes) {
    this.#target = target;
    this.#listener = listener;
    this.#times = times;
  }

  open(): void {
    this.#try();
  }

  get isUp(): boolean {
    return this.#isUp;
  }

  /** Sends a frame; does nothing without a connection. The caller must send it again after a reconnect. */
  send(frame: ClientFrame): void {
    if (this.#isUp) this.#socket?.send(JSON.stringify(frame));
  }

  close(): void {
    this.#closed = true;
    clearTimeout(this.#timer);
    this.#drop();
  }

  #try(): void {
    if (this.#closed) return;
    const urls = this.#target.urls();
    const url = urls[this.#next % urls.length] ?? "";
    this.#next += 1;
    let reason = "disconnected";
    const socket = new WebSocket(`${url.replace(/^http/, "ws")}/api/ws`, {
      headers: { authorization: `Bearer ${this.#target.token()}` },
    });
    this.#socket = socket;
    const tooLong = setTimeout(() => lost("no answer in time"), this.#times.openMs);
    const lost = (why: string): void => {
      clearTimeout(tooLong);
      if (this.#socket !== socket) return;
      this.#drop();
      this.#again(`${url}: ${why}`);
    };
    socket.addEventListener("open", () => {
      clearTimeout(tooLong);
      if (this.#socket !== socket) return;
      this.#isUp = true;
      this.#tries = 0;
      this.#heardAt = performance.now();
      this.#watch = setInterval(() => this.#check(lost), this.#times.quietMs / 2);
      this.#listener.up();
    });
    socket.addEventListener("message", ({ data }) => {
      if (this.#socket !== socket) return;
      this.#heardAt = performance.now();
      this.#listener.heard(readFrame(String(data)));
    });
    socket.addEventListener("error", (event) => {
      reason = ("error" in event && reasonOf(event.error)) || "disconnected";
    });
    socket.addEventListener("close", (event) => lost(event.reason === "" ? reason : event.reason));
  }

  #check(lost: (why: string) => void): void {
    const silentMs = performance.now() - this.#heardAt;
    if (silentMs > this.#times.deadMs) lost("no data received");
    else if (silentMs > this.#times.quietMs) this.send({ type: "ping" });
  }

  #again(reason: string): void {
    if (this.#closed) return;
    this.#tries += 1;
    this.#listener.down(reason, this.#tries);
    if (this.#closed) return;
    const { firstRetryMs, maxRetryMs } = this.#times;
    this.#timer = setTimeout(
      () => this.#try(),
      Math.min(maxRetryMs, firstRetryMs * 2 ** Math.min(this.#tries - 1, 10)),
    );
  }

  #drop(): void {
    clearInterval(this.#watch);
    this.#isUp = false;
    const socket = this.#socket;
    this.#socket = null;
    socket?.close();
  }
}
