// A session's events in order and without a gap, shared by everybody in this process who watches it: durable events by their
// seq, what was lost read again from the store once for all. Live events in between may be missing.
//
//   opening ─→ live ⇄ reading          (events that come while reading wait)
import type { Bus } from "@parley/bus";
import { store, WireError, type DurableEvent, type SessionEvent } from "@parley/contracts";
import { EventFrame } from "./event-frame.ts";
import type { Live, RepairReason, Watch } from "./live.ts";

export type FrameListener = (frame: EventFrame) => void;

export interface StreamDeps {
  bus: Pick<Bus, "request">;
  live: Pick<Live, "watch" | "onRepair">;
}

const pageSize = 200;
/** More waiting events than this are let go and read again from the store. */
const maxWaiting = 2_000;
/** After a failed reading the next try. */
const retryMs = 500;
/** An idle session is read again on every so many-th repair: what was lost there is rarely missed. */
const idleRepairEvery = 15;
const rememberedEnds = 32;

/** The streams of this process, one for each session that is watched. */
export class SessionStreams {
  readonly #deps: StreamDeps;
  readonly #streams = new Map<string, { stream: SessionStream; opened: Promise<void>; users: number }>();

  constructor(deps: StreamDeps) {
    this.#deps = deps;
  }

  /** Joins a session's stream. Rejects with NOT_FOUND, or when the store is away. */
  async join(sessionId: string): Promise<{ stream: SessionStream; leave: () => void }> {
    let entry = this.#streams.get(sessionId);
    if (entry === undefined) {
      const stream = new SessionStream(this.#deps, sessionId);
      entry = { stream, opened: stream.open(), users: 0 };
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
  /** Turns that have ended lately: what is still said about them comes too late. */
  readonly #ended = new Set<string>();
  #position = 0;
  #runningTurn: string | null = null;
  #reading = true;
  /** The first listener is there. */
  #hasBegun = false;
  #closed = false;
  #waiting: SessionEvent[] = [];
  /** How many of those had come before the current reading began: what precedes them is in what it reads, or nowhere. */
  #heardBefore = 0;
  #overflowed = false;
  #repairs = 0;
  #watch: Watch | undefined;
  #repair: Watch | undefined;
  #retry: NodeJS.Timeout | undefined;

  constructor(deps: StreamDeps, sessionId: string) {
    this.#deps = deps;
    this.sessionId = sessionId;
  }

  /** The seq of the last durable event that was passed on. */
  get position(): number {
    return this.#position;
  }

  /** Listens first, then learns where the session stands: nothing falls in between. */
  async open(): Promise<void> {
    this.#watch = this.#deps.live.watch(this.sessionId, (event) => this.#hear(event));
    const { session } = await this.#deps.bus.request(store.sessionGet, { sessionId: this.sessionId });
    if (session === null) throw new WireError("NOT_FOUND", `there is no session "${this.sessionId}"`);
    this.#position = session.seq;
    this.#runningTurn = session.runningTurnId;
    this.#repair = this.#deps.live.onRepair((reason) => this.#mend(reason));
  }

  /** Passes every event from `position` on to the listener. */
  listen(listener: FrameListener): Watch {
    this.#listeners.add(listener);
    if (!this.#hasBegun) {
      this.#hasBegun = true;
      // What came in while the stream was opened: before the first listener nobody would have received it.
      this.#release();
    }
    return { close: () => this.#listeners.delete(listener) };
  }

  close(): void {
    this.#closed = true;
    clearTimeout(this.#retry);
    this.#watch?.close();
    this.#repair?.close();
    this.#waiting = [];
  }

  #hear(event: SessionEvent): void {
    if (this.#reading) this.#wait(event);
    else if (!this.#pass(event, false)) {
      this.#wait(event);
      void this.#read();
    }
  }

  #wait(event: SessionEvent): void {
    if (this.#waiting.length >= maxWaiting) {
      this.#waiting = [];
      this.#heardBefore = 0;
      this.#overflowed = true;
    }
    this.#waiting.push(event);
  }

  /** Passes an event on; false when durable ones are missing before it. With `anyGap` there are none to be had. */
  #pass(event: SessionEvent, anyGap: boolean): boolean {
    if ("seq" in event) {
      if (event.seq <= this.#position) return true;
      if (event.seq > this.#position + 1 && !anyGap) return false;
      this.#emitDurable(event);
      return true;
    }
    if (this.#ended.has(event.turnId)) return true;
    if (event.type === "turn.started") this.#runningTurn = event.turnId;
    this.#emit(event);
    return true;
  }

  #emitDurable(event: DurableEvent): void {
    this.#position = event.seq;
    if (event.type === "turn.finished") {
      this.#runningTurn = null;
      this.#ended.add(event.turnId);
      if (this.#ended.size > rememberedEnds) {
        for (const oldest of this.#ended) {
          this.#ended.delete(oldest);
          break;
        }
      }
    }
    this.#emit(event);
  }

  #emit(event: SessionEvent): void {
    if (this.#listeners.size === 0) return;
    const frame = new EventFrame(this.sessionId, event);
    for (const listener of this.#listeners) listener(frame);
  }

  #mend(reason: RepairReason): void {
    this.#repairs++;
    if (this.#reading) return;
    if (reason === "changed" || this.#runningTurn !== null || this.#repairs % idleRepairEvery === 0) void this.#read();
  }

  /** Reads what the store has after our position, then lets go what has come in the meantime. */
  async #read(): Promise<void> {
    this.#reading = true;
    this.#heardBefore = this.#waiting.length;
    try {
      for await (const event of readEvents(this.#deps.bus, this.sessionId, this.#position)) {
        if (this.#closed) return;
        if (event.seq > this.#position) this.#emitDurable(event);
      }
      this.#release();
    } catch {
      // The store is away: nothing is passed on until it is back, so that the order holds.
      if (!this.#closed) this.#retry = setTimeout(() => void this.#read(), retryMs);
    }
  }

  /** Lets go what has come in the meantime; where something is missing among it, there is another reading. */
  #release(): void {
    if (this.#overflowed) {
      this.#overflowed = false;
      void this.#read();
      return;
    }
    this.#reading = false;
    const waiting = this.#waiting;
    const complete = this.#heardBefore;
    this.#waiting = [];
    this.#heardBefore = 0;
    for (const [index, event] of waiting.entries()) {
      if (!this.#pass(event, index < complete)) {
        this.#waiting = waiting.slice(index);
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
