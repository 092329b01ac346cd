// Delays at random what sockets and pipes receive, and keeps its order: finds tests and code that work only while everything is fast. `npm
// test` loads it into every test process, and into the programs that inherit NODE_OPTIONS, when PARLEY_TEST_JITTER is set.

import { Socket } from "node:net";
import { Readable } from "node:stream";

/** Of the delayed chunks, this share takes up to `longMs`, the others up to `shortMs`. In milliseconds. */
const longShare = 0.25;
const shortMs = 30;
const longMs = 250;

interface Held {
  readonly chunk: unknown;
  readonly encoding: BufferEncoding | undefined;
  /** When it may be delivered, on the monotonic clock. */
  readonly atMs: number;
}

/** The delay of a chunk in milliseconds. `share`: of the chunks that are delayed. `random`: from 0 to below 1. Pure. */
export function delayOf(share: number, random: () => number): number {
  if (random() >= share) return 0;
  return random() < longShare ? shortMs + random() * (longMs - shortMs) : random() * shortMs;
}

/** Delays the chunks of all sockets and pipes of this process from now on. `share`: of the chunks, from 0 to 1. */
export function delaySockets(share: number): void {
  const push = (socket: Socket, { chunk, encoding }: Pick<Held, "chunk" | "encoding">): boolean =>
    Readable.prototype.push.call(socket, chunk, encoding);
  const queues = new WeakMap<Socket, Held[]>();
  const deliver = (socket: Socket, queue: Held[]): void => {
    for (let first = queue[0]; first !== undefined; first = queue[0]) {
      const leftMs = first.atMs - performance.now();
      if (leftMs > 0) {
        setTimeout(deliver, leftMs, socket, queue);
        return;
      }
      queue.shift();
      if (socket.destroyed) queue.length = 0;
      else push(socket, first);
      // As Node.js does after the end.
      if (first.chunk === null && !socket.destroyed) socket.read(0);
    }
  };
  Socket.prototype.push = function delayed(this: Socket, chunk: unknown, encoding?: BufferEncoding): boolean {
    const queue = queues.get(this) ?? [];
    const delayMs = delayOf(share, Math.random);
    if (delayMs === 0 && queue.length === 0) return push(this, { chunk, encoding });
    queues.set(this, queue);
    queue.push({ chunk, encoding, atMs: performance.now() + delayMs });
    if (queue.length === 1) setTimeout(deliver, delayMs, this, queue);
    return true;
  };
}

const { PARLEY_TEST_JITTER: share = "" } = process.env;
if (share !== "") delaySockets(Number(share));
