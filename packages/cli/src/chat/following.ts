// Which session is followed: there may be several candidates until the first message. After a reconnect, each continues after the last
// event received.

import type { ClientFrame } from "./frames.ts";

export class Following {
  readonly #candidates: readonly string[];
  readonly #send: (frame: ClientFrame) => void;
  /** Session id by name; null for a session that does not exist yet. */
  readonly #names = new Map<string, string | null>();
  /** The last durable event received, by session. */
  readonly #positions = new Map<string, number>();
  /** The chosen session, once it is known. */
  session: string | null = null;
  /** This connection receives only new events of a session; the state of earlier messages must be looked up. */
  isBlind = false;

  /** `candidates`: the possible sessions. */
  constructor(candidates: readonly string[], send: (frame: ClientFrame) => void) {
    this.#candidates = candidates;
    this.#send = send;
  }

  /** Called for each connection; `again`: it is not the first one. */
  resume(again: boolean): void {
    this.isBlind = false;
    for (const name of this.session === null ? this.#candidates : [this.session]) {
      const id = this.#names.get(name) ?? name;
      const after = this.#positions.get(id) ?? (this.#names.get(name) === null ? 0 : undefined);
      if (again && after === undefined) this.isBlind = true;
      this.#send({ type: "subscribe", session: name, ...(after === undefined ? {} : { after }) });
    }
  }

  /** False for a durable event that was received before. */
  isNew(session: string, seq: number): boolean {
    if (seq <= (this.#positions.get(session) ?? -1)) return false;
    this.#positions.set(session, seq);
    return true;
  }

  /** The name leads to the chosen session. */
  isMeant(name: string): boolean {
    return this.session !== null && this.#names.get(name) === this.session;
  }

  /** The gateway reports the session of a name, and the first event that it sends. */
  learn(name: string, session: string | null, after: number): void {
    this.#names.set(name, session);
    if (session !== null && !this.#positions.has(session)) this.#positions.set(session, after);
    this.leaveOthers();
  }

  /** Once the session is known and followed, unsubscribes from the other candidates; subscribes to the session if it is not followed yet. */
  leaveOthers(): void {
    const { session } = this;
    if (session === null) return;
    const entries = [...this.#names];
    if (entries.some(([, id]) => id === session)) {
      for (const [name, id] of entries) {
        if (id === session) continue;
        this.#names.delete(name);
        this.#send({ type: "unsubscribe", session: name });
      }
    } else if (entries.length >= this.#candidates.length && entries.every(([, id]) => id !== null)) {
      this.#names.set(session, session);
      this.#send({ type: "subscribe", session, after: this.#positions.get(session) ?? 0 });
    }
  }
}
