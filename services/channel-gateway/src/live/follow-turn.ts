// Waits for the turn that answers one inbound message. It subscribes before the message is stored, so that a fast turn is not missed,
// and reads the store whenever an event may have been lost: a lost event costs time, never the answer.
import type { Bus } from "@parley/bus";
import {
  noUsage,
  store,
  WireError,
  type ExitReason,
  type SessionEvent,
  type TurnState,
  type Usage,
} from "@parley/contracts";
import type { EventHub, Watch } from "./event-hub.ts";
import type { SessionDirectory } from "./session-directory.ts";

export interface AwaitDeps {
  bus: Bus;
  live: EventHub;
  sessions: SessionDirectory;
}

/** The result of `store.inbox.put`. */
export interface StoredMessage {
  inboxId: string;
  sessionId: string;
  duplicate: boolean;
  /** False for a duplicate whose text differs from the stored message. */
  same: boolean;
  /** The pending approval that blocks the session's turn, and thereby this message. */
  heldUpBy?: string | undefined;
}

export interface TurnEnd {
  /** Null when the message was cancelled before a turn started. */
  turnId: string | null;
  state: Exclude<TurnState, "running">;
  exitReason: ExitReason;
  text: string;
  usage: Usage;
}

export interface PendingTurn {
  readonly kept: StoredMessage;
  /** Rejects only when the signal aborts; the turn itself continues. */
  readonly end: Promise<TurnEnd>;
}

/** Receives events of the turn while it runs. */
export interface TurnListener {
  /** The message is stored; called before any event. */
  kept(kept: StoredMessage): void;
  /** A live event of the turn, in order but possibly with gaps, until `end` settles. */
  event(event: SessionEvent): void;
}

/** Stores a message with `put` and follows its turn. Rejects when `put` rejects; then nothing was stored. */
export async function followTurn(
  deps: AwaitDeps,
  sessionKey: string,
  store: () => Promise<StoredMessage>,
  signal: AbortSignal,
  listener?: TurnListener,
): Promise<PendingTurn> {
  const follower = new Follower(deps, signal, listener);
  try {
    const expected = deps.sessions.remembered(sessionKey);
    if (expected !== undefined) follower.listen(expected);
    const kept = await store();
    deps.sessions.remember(sessionKey, kept.sessionId);
    const isComplete = (expected === kept.sessionId || deps.live.hasBeginning(kept.sessionId)) && !kept.duplicate;
    if (expected !== kept.sessionId) follower.listen(kept.sessionId, !kept.duplicate);
    listener?.kept(kept);
    follower.begin(kept.inboxId, isComplete);
    return { kept, end: follower.end };
  } catch (error) {
    follower.close();
    throw error;
  }
}

class Follower {
  readonly end: Promise<TurnEnd>;
  readonly #deps: AwaitDeps;
  readonly #listener: TurnListener | undefined;
  readonly #settle: { resolve: (end: TurnEnd) => void; reject: (error: unknown) => void };
  readonly #signal: AbortSignal;
  #watch: Watch | undefined;
  #repair: Watch | undefined;
  #asking = false;
  #askAgain = false;
  #closed = false;
  #inboxId: string | undefined;
  #turnId: string | undefined;
  /** A running turn that another message started; ours may join it. */
  #otherTurn: string | undefined;
  /** Events received before the id of our inbox row is known. */
  #early: SessionEvent[] = [];

  constructor(deps: AwaitDeps, signal: AbortSignal, listener: TurnListener | undefined) {
    this.#deps = deps;
    this.#signal = signal;
    this.#listener = listener;
    const { promise, resolve, reject } = Promise.withResolvers<TurnEnd>();
    this.end = promise;
    // A caller that stopped waiting no longer handles the rejection.
    promise.catch(() => undefined);
    this.#settle = { resolve, reject };
  }

  /** `fromTheFirst`: also receives the events that a new session already had. */
  listen(sessionId: string, fromTheFirst = false): void {
    this.#watch?.close();
    this.#early = [];
    const onEvent = (event: SessionEvent) => {
      if (this.#inboxId === undefined) this.#early.push(event);
      else this.#onEvent(event);
    };
    this.#watch = this.#deps.live.watch(sessionId, onEvent, fromTheFirst);
  }

  /** Sets our inbox row. `isComplete`: no event of the row can have been missed so far. */
  begin(inboxId: string, isComplete: boolean): void {
    this.#inboxId = inboxId;
    this.#repair = this.#deps.live.onRepair(() => void this.#ask());
    if (this.#signal.aborted) this.#abort();
    else this.#signal.addEventListener("abort", this.#abort, { once: true });
    const early = this.#early;
    this.#early = [];
    for (const event of early) this.#onEvent(event);
    if (!isComplete) void this.#ask();
  }

  close(): void {
    this.#closed = true;
    this.#watch?.close();
    this.#repair?.close();
    this.#signal.removeEventListener("abort", this.#abort);
  }

  readonly #abort = () => {
    this.close();
    const { reason } = this.#signal as { reason: unknown };
    this.#settle.reject(
      reason instanceof Error ? reason : new WireError("CANCELLED", "no longer waiting for the turn"),
    );
  };

  #onEvent(event: SessionEvent): void {
    if (this.#closed) return;
    if (event.type === "turn.started") {
      if (this.#inboxId !== undefined && event.inboxIds.includes(this.#inboxId)) this.#turnId = event.turnId;
    }
    if (this.#turnId === undefined) {
      this.#onOtherTurn(event);
      return;
    }
    if (event.type === "message") {
      if (event.message.turnId === this.#turnId) this.#listener?.event(event);
      return;
    }
    if (event.turnId !== this.#turnId) return;
    this.#listener?.event(event);
    if (event.type === "turn.finished" && event.state !== "running") {
      this.#finish({ ...event, state: event.state });
    }
  }

  /** A user message within another turn may be ours, because it joined that turn. The end of that turn may settle ours as well. */
  #onOtherTurn(event: SessionEvent): void {
    const turnId = event.type === "message" ? event.message.turnId : event.turnId;
    const isUserMessage = event.type === "message" && event.message.role === "user";
    const joined = isUserMessage && turnId === this.#otherTurn;
    // The first messages of a turn arrive before its `turn.started` event.
    if (!isUserMessage) this.#otherTurn = turnId;
    if (joined || (event.type === "turn.finished" && this.#inboxId !== undefined)) void this.#ask();
  }

  #finish(end: TurnEnd): void {
    if (this.#closed) return;
    this.close();
    const { turnId, state, exitReason, text, usage } = end;
    this.#settle.resolve({ turnId, state, exitReason, text, usage });
  }

  /** Reads the row's state from the store, one request at a time. */
  async #ask(): Promise<void> {
    if (this.#closed || this.#inboxId === undefined) return;
    if (this.#asking) {
      this.#askAgain = true;
      return;
    }
    this.#asking = true;
    this.#askAgain = false;
    try {
      const row = await this.#deps.bus.request(store.inboxGet, { inboxId: this.#inboxId });
      if (row.turn !== null) {
        this.#turnId = row.turn.turnId;
        const { state, exitReason } = row.turn;
        if (state !== "running") {
          this.#finish({ ...row.turn, state, exitReason: exitReason ?? "error", text: row.turn.text ?? "" });
        }
      } else if (row.state === "cancelled") {
        this.#finish({
          turnId: null,
          state: "cancelled",
          exitReason: "aborted",
          text: "Cancelled before the turn started.",
          usage: noUsage,
        });
      }
    } catch {
      // The store is unavailable; the next repair retries.
    } finally {
      this.#asking = false;
      if (this.#askAgain) void this.#ask();
    }
  }
}
