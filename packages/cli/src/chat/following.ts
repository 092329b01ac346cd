// Which session is listened to: several may be meant until the first message tells. Over a connection that breaks each is taken up
// where it was heard last.

import type { ClientFrame } from "./frames.ts";

export class Following {
  readonly #candidates: readonly string[];
  readonly #send: (frame: ClientFrame) => void;
  /** By name: the session it is; null for one that does not exist yet. */
  readonly #names = new Map<string, string | null>();
  /** By session: the last durable event received. */
  readonly #positions = new Map<string, number>();
  /** The one that is meant, once it is known. */
  session: string | null = null;
  /** This connection hears a session from now on only: what happened to earlier messages has to be asked for. */
  isBlind = false;

  /** `candidates`: sessions it may turn out to be. */
  constructor(candidates: readonly string[], send: (frame: ClientFrame) => void) {
    this.#candidates = candidates;
    this.#send = send;
  }

  /** There is a connection; `again`: not the first one. */
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

  /** The name leads to the session that is meant. */
  isMeant(name: string): boolean {
    return this.session !== null && this.#names.get(name) === this.session;
  }

  /** The gateway says where a name leads, and from which event on it is heard. */
  learn(name: string, session: string | null, after: number): void {
    this.#names.set(name, session);
    if (session !== null && !this.#positions.has(session)) this.#positions.set(session, after);
    this.leaveOthers();
  }

  /** Once the session is known and heard, the other candidates are let go; one that nobody has heard of yet is asked for. */
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
