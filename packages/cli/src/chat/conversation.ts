// A conversation over a connection that may break: what is said is said once, what happens is heard once and in order, and of a thread
// that several channels share only the turns that answer us are passed on.

import { randomUUID } from "node:crypto";

import type { QueueMode, SessionEvent, TurnSummary } from "@parley/contracts";

import type { MessageState } from "../cluster/shapes.ts";
import { Following } from "./following.ts";
import type { ClientFrame, Heard, ServerFrame } from "./frames.ts";
import type { LinkListener } from "./link.ts";

/** What became of something that was said. */
export interface Outcome {
  readonly state: "done" | "failed" | "cancelled" | "refused" | "command";
  /** The answer, or what there is to know instead. */
  readonly text: string;
}

export interface Listener {
  /** Events of our turns, each durable one once. */
  event(session: string, event: SessionEvent): void;
  /** What the gateway says besides events. */
  frame(frame: ServerFrame): void;
  connected(again: boolean): void;
  disconnected(reason: string, tries: number): void;
}

export interface Connection {
  readonly isUp: boolean;
  send(frame: ClientFrame): void;
}

export interface ConversationOptions {
  /** Names the chat on the gateway; null where one can only watch. */
  readonly conversation: string | null;
  /** Sessions it may turn out to be, until the first message tells. */
  readonly sessions: readonly string[];
  /** Pass on every turn, not only ours. */
  readonly everything: boolean;
  /** Pass on also turns that no person began: what a sub-agent reports, what a schedule or a hook brings. */
  readonly unasked?: boolean;
  /** How a message stands by now. */
  lookUp(messageId: string): Promise<MessageState>;
  /** Resolves after a pause before a failed look-up is tried again. */
  pause(): Promise<unknown>;
}

interface Said {
  readonly id: string;
  readonly text: string;
  readonly mode: QueueMode | undefined;
  messageId: string | null;
  /** The session that took it. */
  session: string | null;
  turnId: string | null;
  readonly settle: (outcome: Outcome) => void;
}

type Waiting = { kind: "event"; session: string; event: SessionEvent } | { kind: "connected"; again: boolean };

export class Conversation implements LinkListener {
  readonly #options: ConversationOptions;
  readonly #listener: Listener;
  #connection: Connection | null = null;
  /** Its session is the one our messages go to. */
  readonly #following: Following;
  readonly #said = new Map<string, Said>();
  readonly #turns = new Map<string, "ours" | "another">();
  /** What was said at the beginning of turns of which nothing else was heard yet. */
  readonly #beginnings = new Map<string, SessionEvent[]>();
  #running: string | null = null;
  #cancelWanted = false;
  #queue: Waiting[] = [];
  #pumping = false;
  #everUp = false;
  constructor(options: ConversationOptions, listener: Listener) {
    this.#options = options;
    this.#listener = listener;
    this.#following = new Following(options.sessions, (frame) => this.#send(frame));
    // What is watched by its id is known from the beginning.
    if (options.everything && options.sessions.length === 1) this.#following.session = options.sessions[0] ?? null;
  }

  attach(connection: Connection): void {
    this.#connection = connection;
  }

  /** Something of ours waits or is being answered. */
  get isBusy(): boolean {
    return this.#said.size > 0 || this.#running !== null;
  }

  /** A turn of ours runs, or waits for somebody: its end will be heard. */
  get isAnswering(): boolean {
    return this.#running !== null;
  }

  get session(): string | null {
    return this.#following.session;
  }

  /** Says something; resolves when it is answered, or refused. `mode`: what is done with it while the session is busy. */
  async say(text: string, mode?: QueueMode): Promise<Outcome> {
    const { promise, resolve } = Promise.withResolvers<Outcome>();
    const id = randomUUID();
    const settle = (outcome: Outcome): void => {
      if (this.#said.delete(id)) resolve(outcome);
    };
    const said: Said = { id, text, mode, messageId: null, session: null, turnId: null, settle };
    this.#said.set(id, said);
    this.#sendMessage(said);
    return promise;
  }

  /** Stops our running turn; where none runs yet, takes back what waits. */
  cancel(): void {
    if (!this.isBusy) return;
    this.#cancelWanted = true;
    this.#sendCancel();
  }

  up(): void {
    const again = this.#everUp;
    this.#everUp = true;
    this.#queue.push({ kind: "connected", again });
    this.#following.resume(again);
    for (const said of this.#said.values()) if (said.messageId === null) this.#sendMessage(said);
    if (again) void this.#lookUpAll();
    if (this.#cancelWanted) this.#sendCancel();
    void this.#pump();
  }

  down(reason: string, tries: number): void {
    this.#listener.disconnected(reason, tries);
  }

  heard(heard: Heard): void {
    if (heard.kind === "event") this.#hearEvent(heard.session, heard.event);
    else if (heard.kind === "frame") this.#hearFrame(heard.frame);
    void this.#pump();
  }

  #hearEvent(session: string, event: SessionEvent): void {
    if ("seq" in event) {
      if (!this.#following.isNew(session, event.seq)) return;
    }
    this.#queue.push({ kind: "event", session, event });
  }

  #hearFrame(frame: ServerFrame): void {
    switch (frame.type) {
      case "subscribed":
        // The name leads to another session now: `/new` and its like, wherever they were said.
        if (this.#following.isMeant(frame.key)) this.#moveTo(frame.session);
        this.#following.learn(frame.key, frame.session, frame.after);
        break;
      case "accepted": {
        this.#listener.frame(frame);
        const said = this.#said.get(frame.id);
        if (said === undefined) break;
        said.messageId = frame.messageId;
        said.session = frame.sessionId;
        if (!this.#options.everything) this.#moveTo(frame.sessionId);
        this.#following.session ??= frame.sessionId;
        this.#following.leaveOthers();
        if (this.#cancelWanted) this.#sendCancel();
        // Said before the connection broke: its turn may have begun, or ended, meanwhile.
        if (frame.duplicate) void this.#lookUpAll();
        break;
      }
      case "command":
        this.#listener.frame(frame);
        this.#said.get(frame.id)?.settle({ state: "command", text: frame.text });
        // It may have taken back what waits, which no event tells of.
        if (this.#hasWaiting()) void this.#lookUpAll();
        break;
      case "error": {
        this.#listener.frame(frame);
        if (frame.id !== undefined) this.#said.get(frame.id)?.settle({ state: "refused", text: frame.message });
        break;
      }
      case "cancelled":
        this.#listener.frame(frame);
        this.#cancelWanted = false;
        if (frame.cancelledQueued > 0) void this.#lookUpAll();
        break;
      case "pong":
        break;
      default:
        frame satisfies never;
    }
  }

  /** What is said goes to this session from now on; what another one still answers is not heard here any more. */
  #moveTo(session: string | null): void {
    if (session === null || this.#following.session === null || session === this.#following.session) return;
    this.#following.session = session;
    this.#running = null;
    this.#cancelWanted = false;
    for (const said of this.#said.values()) {
      if (said.session !== null && said.session !== session)
        said.settle({
          state: "command",
          text: "The session before goes on with what it was doing; its answer is kept there.",
        });
    }
  }

  #hasWaiting(): boolean {
    return [...this.#said.values()].some(({ messageId, turnId }) => messageId !== null && turnId === null);
  }

  /** Passes on what waits, in order; stops where it is not known yet whether a turn is ours. */
  async #pump(): Promise<void> {
    if (this.#pumping) return;
    this.#pumping = true;
    try {
      for (let next = this.#queue[0]; next !== undefined; next = this.#queue[0]) {
        if (next.kind === "connected") this.#listener.connected(next.again);
        else if (this.#isForUs(next.session)) {
          if (this.#mustWait(next.event)) return;
          await this.#pass(next.session, next.event);
        }
        this.#queue.shift();
      }
    } finally {
      this.#pumping = false;
    }
  }

  #isForUs(session: string): boolean {
    if (this.#following.session !== null) return session === this.#following.session;
    return this.#said.size > 0 || this.#options.everything;
  }

  /** It may tell that a message of ours is answered here, while one of them has no id yet. */
  #mustWait(event: SessionEvent): boolean {
    const tells = event.type === "turn.started" || isSaid(event);
    if (!tells && (this.#options.everything || this.#turns.has(turnOf(event)))) return false;
    return [...this.#said.values()].some(({ messageId }) => messageId === null);
  }

  async #pass(session: string, event: SessionEvent): Promise<void> {
    const turnId = turnOf(event);
    if (event.type === "turn.started") {
      this.#claim(turnId, event.inboxIds);
      if (this.#options.unasked === true && this.#wasUnasked(turnId)) this.#turns.set(turnId, "ours");
    }
    if (!this.#turns.has(turnId)) {
      // Whose turn it is comes right after what it begins with.
      if (event.type === "message" && event.message.role === "user" && !this.#options.everything) {
        this.#beginnings.set(turnId, [...(this.#beginnings.get(turnId) ?? []), event]);
        return;
      }
      await this.#findOwner(turnId);
      if (this.#options.unasked === true && this.#wasUnasked(turnId)) this.#turns.set(turnId, "ours");
    } else if (isSaid(event)) await this.#findOwner(turnId); // what is said may join a turn that runs already
    const ours = this.#turns.get(turnId) === "ours";
    if (ours) this.#running = event.type === "turn.finished" ? null : turnId;
    if (ours || this.#options.everything) {
      for (const beginning of this.#beginnings.get(turnId) ?? []) this.#listener.event(session, beginning);
      this.#listener.event(session, event);
    }
    this.#beginnings.delete(turnId);
    if (event.type !== "turn.finished") return;
    if (ours) this.#cancelWanted = false;
    this.#turns.set(turnId, "another"); // what is still said about it comes too late
    for (const said of this.#said.values()) {
      if (said.turnId === turnId) said.settle({ state: ended(event.state), text: event.text });
    }
    // Taken back by somebody else, together with this turn.
    if (this.#hasWaiting() && event.state === "cancelled") void this.#lookUpAll();
  }

  /** True when the turn begins with something that no person said. */
  #wasUnasked(turnId: string): boolean {
    return (this.#beginnings.get(turnId) ?? []).some(
      (event) => event.type === "message" && event.message.from !== undefined && event.message.from.origin !== "user",
    );
  }

  #claim(turnId: string, messageIds: readonly string[]): void {
    let ours = this.#turns.get(turnId) === "ours";
    for (const said of this.#said.values()) {
      if (said.messageId === null || !messageIds.includes(said.messageId)) continue;
      said.turnId = turnId;
      ours = true;
    }
    this.#turns.set(turnId, ours ? "ours" : "another");
  }

  /** It is not known what this turn answers: the messages that wait for theirs are asked about. */
  async #findOwner(turnId: string): Promise<void> {
    if (!this.#turns.has(turnId)) this.#turns.set(turnId, "another");
    for (const said of this.#said.values()) {
      if (said.messageId === null || said.turnId !== null) continue;
      const state = await this.#stateOf(said.messageId);
      if (state.turn !== null) this.#claim(state.turn.turnId, [said.messageId]);
    }
  }

  async #stateOf(messageId: string): Promise<MessageState> {
    for (;;) {
      try {
        return await this.#options.lookUp(messageId);
      } catch {
        await this.#options.pause();
      }
    }
  }

  /** Settles messages that will get no turn, or whose turn ended where nobody could hear it. */
  async #lookUpAll(): Promise<void> {
    for (const said of this.#said.values()) {
      if (said.messageId === null) continue;
      const { state, turn } = await this.#stateOf(said.messageId);
      if (state === "cancelled") said.settle({ state: "cancelled", text: "Taken back before it was begun." });
      else if (turn === null && state === "dead") said.settle({ state: "failed", text: "It was given up." });
      else if (turn !== null && turn.state !== "running" && this.#following.isBlind && !this.#turns.has(turn.turnId)) {
        this.#claim(turn.turnId, [said.messageId]);
        this.#queue.push({ kind: "event", session: turn.sessionId, event: endOf(turn) });
      }
    }
    void this.#pump();
  }

  #sendMessage({ id, text, mode }: Said): void {
    const { conversation } = this.#options;
    if (conversation === null) return;
    this.#send({ type: "message", id, conversation, text, ...(mode === undefined ? {} : { mode }) });
  }

  #sendCancel(): void {
    const session = this.#following.session;
    if (session === null) return;
    const turnId = this.#running;
    this.#send({ type: "cancel", session, queued: turnId === null, ...(turnId === null ? {} : { turnId }) });
  }

  #send(frame: ClientFrame): void {
    if (this.#connection?.isUp === true) this.#connection.send(frame);
  }
}

/** A person's words, as opposed to the loop's own. */
function isSaid(event: SessionEvent): boolean {
  return event.type === "message" && event.message.role === "user" && event.message.from !== undefined;
}

function turnOf(event: SessionEvent): string {
  return event.type === "message" ? event.message.turnId : event.turnId;
}

/** The end of a turn as an event, from what the store says about it. */
function endOf({ turnId, state, exitReason, text, usage, cost }: TurnSummary): SessionEvent {
  return {
    type: "turn.finished",
    seq: 0,
    turnId,
    state,
    exitReason: exitReason ?? "error",
    text: text ?? "",
    usage,
    cost,
  };
}

function ended(state: TurnSummary["state"]): "done" | "failed" | "cancelled" {
  if (state === "done" || state === "cancelled") return state;
  return "failed";
}
