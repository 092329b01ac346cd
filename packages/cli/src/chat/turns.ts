// What a conversation knows of its turns: our messages without an outcome, the turns that answer them, and the sessions it subscribes to.

import { randomUUID } from "node:crypto";

import type { QueueMode, SessionEvent, TurnSummary } from "@parley/contracts";

import type { ClientFrame, MessageExtras, RunningTurn } from "./connection.ts";

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

/** Our messages that have no outcome yet. */
export class SentMessages {
  readonly #byId = new Map<string, SentMessage>();

  /** `outcome` resolves when the message is settled and removed here. */
  add(
    text: string,
    mode: QueueMode | undefined,
    extras: MessageExtras = {},
    id: string = randomUUID(),
  ): { message: SentMessage; outcome: Promise<Outcome> } {
    const { promise, resolve } = Promise.withResolvers<Outcome>();
    const settle = (outcome: Outcome): void => {
      if (this.#byId.delete(id)) resolve(outcome);
    };
    const message: SentMessage = { id, text, mode, extras, messageId: null, session: null, turnId: null, settle };
    this.#byId.set(id, message);
    return { message, outcome: promise };
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
  get hasUnacknowledged(): boolean {
    return [...this.all()].some(({ messageId }) => messageId === null);
  }

  /** One of them is accepted but has no turn yet. */
  get hasWaiting(): boolean {
    return [...this.all()].some(({ messageId, turnId }) => messageId !== null && turnId === null);
  }

  /** The turn that answers them has ended. */
  settleTurn(turnId: string, outcome: Outcome): void {
    for (const message of this.all()) if (message.turnId === turnId) message.settle(outcome);
  }

  /** The conversation moved to this session: stop waiting for answers of other sessions. */
  settleOthers(session: string): void {
    for (const message of this.all()) {
      if (message.session !== null && message.session !== session)
        message.settle({
          state: "command",
          text: "The previous session continues; its answer is stored there.",
        });
    }
  }
}

/** Which turns answer one of our messages (`ours`), and which do not (`foreign`). */
export class TurnOwners {
  readonly #sent: SentMessages;
  readonly #turns = new Map<string, "ours" | "foreign">();
  /** First messages of turns that have no other event yet. */
  readonly #buffered = new Map<string, SessionEvent[]>();

  readonly #onTaken: (messageId: string, turnId: string) => void;

  /** `onTaken` gets the id of each message of ours when its turn is known. */
  constructor(sent: SentMessages, onTaken: (messageId: string, turnId: string) => void) {
    this.#sent = sent;
    this.#onTaken = onTaken;
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
    for (const message of this.#sent.all()) {
      if (message.messageId === null || !messageIds.includes(message.messageId)) continue;
      if (message.turnId !== turnId) this.#onTaken(message.id, turnId);
      message.turnId = turnId;
      ours = true;
    }
    this.#turns.set(turnId, ours ? "ours" : "foreign");
  }

  markOurs(turnId: string): void {
    this.#turns.set(turnId, "ours");
  }

  markForeign(turnId: string): void {
    this.#turns.set(turnId, "foreign");
  }

  /** Keeps the first message of a turn until it is known whether the turn is ours. */
  bufferFirstMessage(turnId: string, event: SessionEvent): void {
    this.#buffered.set(turnId, [...this.bufferedMessages(turnId), event]);
  }

  bufferedMessages(turnId: string): readonly SessionEvent[] {
    return this.#buffered.get(turnId) ?? [];
  }

  discardBuffered(turnId: string): void {
    this.#buffered.delete(turnId);
  }

  /** Removes what is known of the owner. */
  forget(turnId: string): void {
    this.#turns.delete(turnId);
  }

  /** No message of ours began the turn, but no person did, or one in another chat or a voice session of this conversation. */
  belongsTo(turnId: string, conversation: string | null): boolean {
    return this.bufferedMessages(turnId).some((event) => {
      const from = event.type === "message" ? event.message.from : undefined;
      if (from === undefined) return false;
      return from.origin !== "user" || (from.channel === "http" && from.conversation === conversation);
    });
  }
}

/** True for a message of a sender, as opposed to the loop's own. */
export function isInboundMessage(event: SessionEvent): boolean {
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

/** The subscriptions of a conversation: to all candidates until the session of its messages is known, then only to that session. */
export class SessionSubscriptions {
  readonly #candidates: readonly string[];
  readonly #send: (frame: ClientFrame) => void;
  /** Session id by the key or id that was subscribed to; null for a session that does not exist yet. */
  readonly #names = new Map<string, string | null>();
  /** The last durable event received, by session. */
  readonly #positions = new Map<string, number>();
  /** The current session: our messages go there. Null until it is known. */
  session: string | null = null;
  /** A subscription began without a position after a reconnect: earlier events may be missing, so the state of messages is looked up. */
  mayHaveMissedEvents = false;

  /** `candidates`: the possible sessions. `running`: the session is known, and events after a position of it are wanted. */
  constructor(candidates: readonly string[], send: (frame: ClientFrame) => void, running?: RunningTurn) {
    this.#candidates = candidates;
    this.#send = send;
    if (running === undefined) return;
    this.session = running.sessionId;
    this.#names.set(running.sessionId, running.sessionId);
    this.#positions.set(running.sessionId, running.afterSeq);
  }

  /** Subscribes on a new connection; `isReconnect`: it is not the first one. */
  resubscribe(isReconnect: boolean): void {
    this.mayHaveMissedEvents = false;
    for (const name of this.session === null ? this.#candidates : [this.session]) {
      const id = this.#names.get(name) ?? name;
      const after = this.#positions.get(id) ?? (this.#names.get(name) === null ? 0 : undefined);
      if (isReconnect && after === undefined) this.mayHaveMissedEvents = true;
      this.#send({ type: "subscribe", session: name, ...(after === undefined ? {} : { after }) });
    }
  }

  /** False for a durable event that was received before. */
  isNew(session: string, seq: number): boolean {
    if (seq <= (this.#positions.get(session) ?? -1)) return false;
    this.#positions.set(session, seq);
    return true;
  }

  /** The key resolves to the current session. */
  resolvesToCurrentSession(key: string): boolean {
    return this.session !== null && this.#names.get(key) === this.session;
  }

  /** The gateway has subscribed us to the session of a key; events with a sequence number above `after` follow. */
  onSubscribed(key: string, session: string | null, after: number): void {
    this.#names.set(key, session);
    if (session !== null && !this.#positions.has(session)) this.#positions.set(session, after);
    this.unsubscribeOthers();
  }

  /** Once the session is known and followed, unsubscribes from the other candidates; subscribes to the session if it is not followed yet. */
  unsubscribeOthers(): void {
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
