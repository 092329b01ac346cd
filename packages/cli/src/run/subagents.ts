// Follows the sub-agents that a run starts. Their messages come before the result of the call that waits for them, so later events of
// the run are held back until the sub-agent's last event has arrived.

import type { SessionEvent } from "@parley/contracts";

import { type IncomingFrame, type LinkListener, ReconnectingSocket } from "../chat/connection.ts";
import type { Target } from "../cluster/target.ts";

type Started = Extract<SessionEvent, { type: "subagent.started" }>;

/** A sub-agent at work on one task. */
export interface Subagent {
  readonly sessionId: string;
  /** The call that started it. */
  readonly toolUseId: string;
  readonly profile: string;
}

interface Task extends Subagent {
  /** The call of the run that waits for it, directly or through other sub-agents; null: none does. */
  readonly waitingCall: string | null;
  /** The last durable event received; undefined: from now on. */
  position: number | undefined;
  /** The message with the task has been received, so the next end of a turn is the end of the task. */
  hasBegun: boolean;
}

export interface SubagentsDeps {
  /** Gets the events of the run in order. `atMs`: when it was received, in milliseconds since 1970. */
  readonly event: (event: SessionEvent, atMs: number) => void;
  readonly subagentEvent: (subagent: Subagent, event: SessionEvent, atMs: number) => void;
  /** Its task has ended. `text`: its report. */
  readonly ended: (subagent: Subagent, text: string) => void;
}

/** A sub-agent has ended when its result is known, so its last events are on their way, except after a lost connection. */
const maxWaitMs = 30_000;
/** After an error: a sub-agent that was cancelled before it began sends no event. */
const maxWaitAfterErrorMs = 3_000;

export class Subagents implements LinkListener {
  readonly #target: Target;
  readonly #deps: SubagentsDeps;
  readonly #tasks = new Map<string, Task>();
  readonly #positions = new Map<string, number>();
  #held: { event: SessionEvent; atMs: number }[] = [];
  #link: ReconnectingSocket | null = null;
  #timer: NodeJS.Timeout | undefined;
  #passed = Promise.withResolvers<void>();

  constructor(target: Target, deps: SubagentsDeps) {
    this.#target = target;
    this.#deps = deps;
    this.#passed.resolve();
  }

  /** Passes on an event of the run, after the messages of the sub-agents that it depends on. */
  receive(event: SessionEvent, atMs: number): void {
    if (this.#held.length === 0) this.#passed = Promise.withResolvers();
    this.#held.push({ event, atMs });
    this.#release();
  }

  /** Resolves when every received event of the run is passed on. */
  passed(): Promise<void> {
    return this.#passed.promise;
  }

  /** The sessions of sub-agents at work that no call waits for. */
  get background(): string[] {
    return [...this.#tasks.values()].flatMap(({ sessionId, waitingCall }) => (waitingCall === null ? [sessionId] : []));
  }

  close(): void {
    clearTimeout(this.#timer);
    this.#link?.close();
  }

  up(): void {
    for (const task of this.#tasks.values()) this.#subscribe(task);
  }

  down(): void {
    // The next connection subscribes again, from the last position.
  }

  handleFrame(incoming: IncomingFrame): void {
    if (incoming.kind === "frame" && incoming.frame.type === "subscribed" && incoming.frame.session !== null) {
      const task = this.#tasks.get(incoming.frame.session);
      if (task !== undefined) task.position ??= incoming.frame.after;
    }
    // The gateway cannot follow a session; which one is not part of the frame.
    if (incoming.kind === "frame" && incoming.frame.type === "error") this.#stopWaiting();
    if (incoming.kind === "event") this.#handleEvent(incoming.session, incoming.event);
  }

  #handleEvent(session: string, event: SessionEvent): void {
    const task = this.#tasks.get(session);
    if (task === undefined) return;
    if ("seq" in event) {
      if (event.seq <= (task.position ?? -1)) return;
      task.position = event.seq;
      this.#positions.set(session, event.seq);
    }
    if (event.type === "subagent.started") this.#follow(event, task);
    if (event.type === "message" && event.message.from?.origin === "subagent") task.hasBegun = true;
    this.#deps.subagentEvent(task, event, Date.now());
    if (event.type !== "turn.finished" || !task.hasBegun) return;
    this.#tasks.delete(session);
    this.#link?.send({ type: "unsubscribe", session });
    this.#deps.ended(task, event.text);
    this.#release();
  }

  #release(): void {
    for (let next = this.#held[0]; next !== undefined; next = this.#held[0]) {
      const waitMs = this.#waitMs(next.event);
      if (waitMs > 0) {
        this.#timer ??= setTimeout(() => this.#stopWaiting(), waitMs);
        return;
      }
      this.#held.shift();
      if (next.event.type === "subagent.started") this.#follow(next.event, null);
      this.#deps.event(next.event, next.atMs);
    }
    clearTimeout(this.#timer);
    this.#timer = undefined;
    this.#passed.resolve();
  }

  /** How long to wait at most for sub-agents whose result the event contains; 0: they have sent everything. */
  #waitMs(event: SessionEvent): number {
    if (event.type !== "message" || event.message.role !== "tool") return 0;
    const awaited = new Set([...this.#tasks.values()].map(({ waitingCall }) => waitingCall));
    const results = event.message.parts.flatMap((part) =>
      part.type === "tool_result" && awaited.has(part.id) ? [part] : [],
    );
    if (results.length === 0) return 0;
    return results.every(({ isError }) => isError) ? maxWaitAfterErrorMs : maxWaitMs;
  }

  #stopWaiting(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    for (const { sessionId, waitingCall } of this.#tasks.values()) {
      if (waitingCall !== null) this.#tasks.delete(sessionId);
    }
    this.#release();
  }

  #follow({ sessionId, callId, profile, mode, afterSeq }: Started, parent: Task | null): void {
    const waitingCall = mode === "background" ? null : parent === null ? callId : parent.waitingCall;
    const position = afterSeq ?? this.#positions.get(sessionId);
    const hasBegun = afterSeq === undefined;
    const task: Task = { sessionId, toolUseId: callId, profile, waitingCall, position, hasBegun };
    this.#tasks.set(sessionId, task);
    if (this.#link === null) {
      this.#link = new ReconnectingSocket(this.#target, this);
      this.#link.open();
    } else this.#subscribe(task);
  }

  #subscribe({ sessionId: session, position }: Task): void {
    this.#link?.send({ type: "subscribe", session, ...(position === undefined ? {} : { after: position }) });
  }
}
