// A session's events in order and without gaps, shared by all watchers in this process. Durable events are ordered by seq; lost ones
// are read from the store, once for all watchers. Live events in between may be missing.
//
//   opening ─→ live ⇄ reading          (events that arrive while reading are buffered)
import type { Bus } from "@parley/bus";
import { store, WireError, type DurableEvent, type SessionEvent } from "@parley/contracts";
import { EncodedEvent } from "./encoded-event.ts";
import type { EventHub, RepairReason, Watch } from "./event-hub.ts";

export type FrameListener = (frame: EncodedEvent) => void;

export interface StreamDeps {
  bus: Pick<Bus, "request">;
  live: Pick<EventHub, "watch" | "hasBeginning" | "onRepair">;
}

const pageSize = 200;
/** Beyond this many buffered events the buffer is discarded, and the events are read from the store. */
const maxBuffered = 2_000;
/** Pause after a failed read. */
const retryMs = 500;
/** An idle session is re-read only on every n-th repair, because it rarely loses events. */
const idleRepairEvery = 15;
const maxEndedTurns = 32;

/** The streams of this process, one per watched session. */
export class SessionStreams {
  readonly #deps: StreamDeps;
  readonly #streams = new Map<string, { stream: SessionStream; opened: Promise<void>; users: number }>();

  constructor(deps: StreamDeps) {
    this.#deps = deps;
  }

  /** Joins a session's stream; `fromTheFirst`: the watcher wants its first event, see `SessionStream.open`. Rejects with NOT_FOUND, or when the store is unavailable. */
  async join(sessionId: string, fromTheFirst: boolean): Promise<{ stream: SessionStream; leave: () => void }> {
    let entry = this.#streams.get(sessionId);
    if (entry === undefined) {
      const stream = new SessionStream(this.#deps, sessionId);
      entry = { stream, opened: stream.open(fromTheFirst), users: 0 };
      this.#streams.set(sessionId, entry);
    }
    const joined = entry;
    joined.users++;
    let left = false;
    const leave = () => {
      if (left) return;
      left = true;
      if (--joined.users > 0) return;
      joined.stream.close();
      if (this.#streams.get(sessionId) === joined) this.#streams.delete(sessionId);
    };
    try {
      await joined.opened;
    } catch (error) {
      leave();
      if (this.#streams.get(sessionId) === joined) this.#streams.delete(sessionId);
      throw error;
    }
    return { stream: joined.stream, leave };
  }
}

export class SessionStream {
  readonly sessionId: string;
  readonly #deps: StreamDeps;
  readonly #listeners = new Set<FrameListener>();
  /** Recently ended turns; later live events about them are dropped. */
  readonly #endedTurns = new Set<string>();
  #position = 0;
  #runningTurn: string | null = null;
  #reading = true;
  /** The first listener has been added. */
  #hasBegun = false;
  #closed = false;
  #buffered: SessionEvent[] = [];
  /** Events buffered before the current read started; the read returns everything that precedes them, so their gaps are final. */
  #bufferedBeforeRead = 0;
  #overflowed = false;
  #repairs = 0;
  #watch: Watch | undefined;
  #repair: Watch | undefined;
  #retry: NodeJS.Timeout | undefined;

  constructor(deps: StreamDeps, sessionId: string) {
    this.#deps = deps;
    this.sessionId = sessionId;
  }

  /** The seq of the last emitted durable event. */
  get position(): number {
    return this.#position;
  }

  /**
   * Subscribes before reading the session's position, so that no event is missed in between. `fromTheFirst`: begins with the first
   * event, live events included, if they are still known.
   */
  async open(fromTheFirst: boolean): Promise<void> {
    const isNew = fromTheFirst && this.#deps.live.hasBeginning(this.sessionId);
    this.#watch = this.#deps.live.watch(this.sessionId, (event) => this.#onEvent(event), isNew);
    this.#repair = this.#deps.live.onRepair((reason) => this.#onRepairDue(reason));
    if (isNew) return;
    const { session } = await this.#deps.bus.request(store.sessionGet, { sessionId: this.sessionId });
    if (session === null) throw new WireError("NOT_FOUND", `there is no session "${this.sessionId}"`);
    this.#position = session.seq;
    this.#runningTurn = session.runningTurnId;
  }

  /** Adds a listener, which receives every event after `position`. */
  listen(listener: FrameListener): Watch {
    this.#listeners.add(listener);
    if (!this.#hasBegun) {
      this.#hasBegun = true;
      // Release the events buffered during `open`, which had no listener.
      this.#release();
    }
    return { close: () => this.#listeners.delete(listener) };
  }

  close(): void {
    this.#closed = true;
    clearTimeout(this.#retry);
    this.#watch?.close();
    this.#repair?.close();
    this.#buffered = [];
  }

  #onEvent(event: SessionEvent): void {
    if (this.#reading) this.#buffer(event);
    else if (!this.#deliver(event, false)) {
      this.#buffer(event);
      void this.#read();
    }
  }

  #buffer(event: SessionEvent): void {
    if (this.#buffered.length >= maxBuffered) {
      this.#buffered = [];
      this.#bufferedBeforeRead = 0;
      this.#overflowed = true;
    }
    this.#buffered.push(event);
  }

  /** Emits an event; returns false when durable events before it are missing. `anyGap`: the store has no missing events. */
  #deliver(event: SessionEvent, anyGap: boolean): boolean {
    if ("seq" in event) {
      if (event.seq <= this.#position) return true;
      if (event.seq > this.#position + 1 && !anyGap) return false;
      this.#emitDurable(event);
      return true;
    }
    if (this.#endedTurns.has(event.turnId)) return true;
    if (event.type === "turn.started") this.#runningTurn = event.turnId;
    this.#emit(event);
    return true;
  }

  #emitDurable(event: DurableEvent): void {
    this.#position = event.seq;
    if (event.type === "turn.finished") {
      this.#runningTurn = null;
      this.#endedTurns.add(event.turnId);
      if (this.#endedTurns.size > maxEndedTurns) {
        for (const oldest of this.#endedTurns) {
          this.#endedTurns.delete(oldest);
          break;
        }
      }
    }
    this.#emit(event);
  }

  #emit(event: SessionEvent): void {
    if (this.#listeners.size === 0) return;
    const frame = new EncodedEvent(this.sessionId, event);
    for (const listener of this.#listeners) listener(frame);
  }

  #onRepairDue(reason: RepairReason): void {
    this.#repairs++;
    if (this.#reading) return;
    if (reason === "changed" || this.#runningTurn !== null || this.#repairs % idleRepairEvery === 0) void this.#read();
  }

  /** Reads the durable events after the position from the store, then releases the buffered events. */
  async #read(): Promise<void> {
    this.#reading = true;
    this.#bufferedBeforeRead = this.#buffered.length;
    try {
      for await (const event of readEvents(this.#deps.bus, this.sessionId, this.#position)) {
        if (this.#closed) return;
        if (event.seq > this.#position) this.#emitDurable(event);
      }
      this.#release();
    } catch {
      // The store is unavailable: nothing is emitted until it is back, to preserve the order.
      if (!this.#closed) this.#retry = setTimeout(() => void this.#read(), retryMs);
    }
  }

  /** Emits the buffered events; a gap among them starts another read. */
  #release(): void {
    if (this.#overflowed) {
      this.#overflowed = false;
      void this.#read();
      return;
    }
    this.#reading = false;
    const buffered = this.#buffered;
    const complete = this.#bufferedBeforeRead;
    this.#buffered = [];
    this.#bufferedBeforeRead = 0;
    for (const [index, event] of buffered.entries()) {
      if (!this.#deliver(event, index < complete)) {
        this.#buffered = buffered.slice(index);
        void this.#read();
        return;
      }
    }
  }
}

/** Durable events after a position, page by page. */
export async function* readEvents(
  bus: Pick<Bus, "request">,
  sessionId: string,
  afterSeq: number,
): AsyncGenerator<DurableEvent> {
  let after = afterSeq;
  for (;;) {
    const page = await bus.request(store.eventList, { sessionId, afterSeq: after, limit: pageSize });
    for (const event of page.events) {
      after = event.seq;
      yield event;
    }
    if (!page.more || page.events.length === 0) return;
  }
}
