// Sessions of the gateway: numbered events and the buffer from which RESUME replays. Independent of sockets.
import { randomBytes } from "node:crypto";

export interface GatewayEvent {
  op: 0;
  t: string;
  s: number;
  d: unknown;
}

/** The intents, by the bit that the client sets. */
export const intent = {
  guilds: 1 << 0,
  guildMessages: 1 << 9,
  guildReactions: 1 << 10,
  directMessages: 1 << 12,
  directReactions: 1 << 13,
  messageContent: 1 << 15,
} as const;

/** The most events that a disconnected session keeps. */
const maxBuffered = 1_000;

export class GatewaySession {
  readonly id = randomBytes(16).toString("hex");
  readonly intents: number;
  readonly #shard: readonly [number, number];
  /** Sends to the connection; null while there is none. */
  send: ((event: GatewayEvent) => void) | null = null;
  #lastSeq = 0;
  /** The client has confirmed everything up to this number, so it is not replayed. */
  #confirmedSeq = 0;
  #buffer: GatewayEvent[] = [];

  constructor(intents: number, shard: readonly [number, number] = [0, 1]) {
    this.intents = intents;
    this.#shard = shard;
  }

  /** A server belongs to one shard by its id; direct conversations belong to the first. */
  receives(guildId: unknown): boolean {
    const [id, count] = this.#shard;
    return Number(typeof guildId === "string" ? (BigInt(guildId) >> 22n) % BigInt(count) : 0n) === id;
  }

  get lastSeq(): number {
    return this.#lastSeq;
  }

  dispatch(type: string, data: unknown): void {
    this.#lastSeq += 1;
    const event: GatewayEvent = { op: 0, t: type, s: this.#lastSeq, d: data };
    this.#buffer.push(event);
    if (this.#buffer.length > maxBuffered) this.#confirmedSeq = this.#buffer.shift()?.s ?? 0;
    this.send?.(event);
  }

  /** A heartbeat contains the number of the last event that the client has processed. */
  confirm(seq: number): void {
    if (seq <= this.#confirmedSeq) return;
    this.#confirmedSeq = seq;
    this.#buffer = this.#buffer.filter((event) => event.s > seq);
  }

  /** The events after `seq`; null when the session cannot continue there. */
  after(seq: number): GatewayEvent[] | null {
    if (seq > this.#lastSeq || seq < this.#confirmedSeq) return null;
    return this.#buffer.filter((event) => event.s > seq);
  }
}

/** The intent that an event needs; 0: none. */
export function intentOf(type: string, direct: boolean): number {
  if (type.startsWith("MESSAGE_REACTION_")) return direct ? intent.directReactions : intent.guildReactions;
  if (type.startsWith("MESSAGE_")) return direct ? intent.directMessages : intent.guildMessages;
  if (/^(?:GUILD|CHANNEL|THREAD)_/.test(type)) return intent.guilds;
  return 0;
}
