// What a conversation knows of its turns: our messages without an outcome, the turns that answer them, and the sessions that are followed.

import { randomUUID } from "node:crypto";

import type { QueueMode, SessionEvent, TurnSummary } from "@parley/contracts";

import type { ClientFrame, MessageExtras } from "./connection.ts";

/** The outcome of a message. */
export interface Outcome {
  readonly state: "done" | "failed" | "cancelled" | "refused" | "command";
  /** The answer, or the reason why there is none. */
  readonly text: string;
}

export interface SentMessage {
  readonly id: string;
  readonly text: string;
  readonly mode: QueueMode | undefined;
  readonly extras: MessageExtras;
  messageId: string | null;
  /** The session of the message. */
  session: string | null;
  turnId: string | null;
  readonly settle: (outcome: Outcome) => void;
}

export class SentMessages {
  readonly #byId = new Map<string, SentMessage>();

  /** `outcome` resolves when the message is settled and removed here. */
  add(
    text: string,
    mode: QueueMode | undefined,
    extras: MessageExtras = {},
  ): { said: SentMessage; outcome: Promise<Outcome> } {
    const { promise, resolve } = Promise.withResolvers<Outcome>();
    const id = randomUUID();
    const settle = (outcome: Outcome): void => {
      if (this.#byId.delete(id)) resolve(outcome);
    };
    const said: SentMessage = { id, text, mode, extras, messageId: null, session: null, turnId: null, settle };
    this.#byId.set(id, said);
    return { said, outcome: promise };
  }

  get(id: string): SentMessage | undefined {
    return this.#byId.get(id);
  }

  /** In sending order, without messages settled meanwhile. */
  all(): Iterable<SentMessage> {
    return this.#byId.values();
  }

  get isEmpty(): boolean {
    return this.#byId.size === 0;
  }

  /** One of them is not accepted yet, so a new turn may be its answer. */
  get hasUntaken(): boolean {
    return [...this.all()].some(({ messageId }) => messageId === null);
  }

  /** One of them is accepted but has no turn yet. */
  get hasWaiting(): boolean {
    return [...this.all()].some(({ messageId, turnId }) => messageId !== null && turnId === null);
  }

  /** The turn that answers them has ended. */
  settleTurn(turnId: string, outcome: Outcome): void {
    for (const said of this.all()) if (said.turnId === turnId) said.settle(outcome);
  }

  /** The conversation moved to this session: stop waiting for answers of other sessions. */
  leaveOthers(session: string): void {
    for (const said of this.all()) {
      if (said.session !== null && said.session !== session)
        said.settle({
          state: "command",
          text: "The previous session continues; its answer is stored there.",
        });
    }
  }
}

export class TurnOwners {
  readonly #said: SentMessages;
  readonly #turns = new Map<string, "ours" | "another">();
  /** First messages of turns without any other event so far. */
  readonly #beginnings = new Map<string, SessionEvent[]>();

  constructor(said: SentMessages) {
    this.#said = said;
  }

  isKnown(turnId: string): boolean {
    return this.#turns.has(turnId);
  }

  isOurs(turnId: string): boolean {
    return this.#turns.get(turnId) === "ours";
  }

  /** Records the messages that a turn answers; it is ours if one of them is, or if it already was. */
  claim(turnId: string, messageIds: readonly string[]): void {
    let ours = this.isOurs(turnId);
    for (const said of this.#said.all()) {
      if (said.messageId === null || !messageIds.includes(said.messageId)) continue;
      said.turnId = turnId;
      ours = true;
    }
    this.#turns.set(turnId, ours ? "ours" : "another");
  }

  take(turnId: string): void {
    this.#turns.set(turnId, "ours");
  }

  leave(turnId: string): void {
    this.#turns.set(turnId, "another");
  }

  /** Holds back the first message of a turn until its owner is known. */
  keepBeginning(turnId: string, event: SessionEvent): void {
    this.#beginnings.set(turnId, [...this.beginningOf(turnId), event]);
  }

  beginningOf(turnId: string): readonly SessionEvent[] {
    return this.#beginnings.get(turnId) ?? [];
  }

  forgetBeginning(turnId: string): void {
    this.#beginnings.delete(turnId);
  }

  /** True when the first message of the turn is not from a person. */
  wasUnasked(turnId: string): boolean {
    return this.beginningOf(turnId).some(
      (event) => event.type === "message" && event.message.from !== undefined && event.message.from.origin !== "user",
    );
  }
}

/** True for a message of a sender, as opposed to the loop's own. */
export function isSaid(event: SessionEvent): boolean {
  return event.type === "message" && event.message.role === "user" && event.message.from !== undefined;
}

export function turnOf(event: SessionEvent): string {
  return event.type === "message" ? event.message.turnId : event.turnId;
}

/** The end of a turn as an event, made from the store's record. */
export function endOf({ turnId, state, exitReason, text, usage, cost }: TurnSummary): SessionEvent {
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

/** The outcome of an ended turn for the waiting caller. */
export function outcomeOf(state: TurnSummary["state"]): "done" | "failed" | "cancelled" {
  return state === "done" || state === "cancelled" ? state : "failed";
}

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
