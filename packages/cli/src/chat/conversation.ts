// A conversation over a connection that may break: messages are sent once, events are received once and in order. In a thread that
// several channels share, only the turns that answer our messages are passed on.

import type { QueueMode, SessionEvent } from "@parley/contracts";

import type {
  ClientFrame,
  Connection,
  ConversationOptions,
  IncomingFrame,
  LinkListener,
  Listener,
  MessageExtras,
  ServerFrame,
} from "./connection.ts";
import {
  endOf,
  SessionSubscriptions,
  isInboundMessage,
  type Outcome,
  outcomeOf,
  type SentMessage,
  SentMessages,
  turnOf,
  TurnOwners,
} from "./turns.ts";
import type { Answer, api } from "../cluster/api.ts";

type Waiting = { kind: "event"; session: string; event: SessionEvent } | { kind: "connected"; again: boolean };

export class Conversation implements LinkListener {
  readonly #options: ConversationOptions;
  readonly #listener: Listener;
  #connection: Connection | null = null;
  /** Our messages go to this session. */
  readonly #subscriptions: SessionSubscriptions;
  readonly #sent = new SentMessages();
  readonly #turns: TurnOwners;
  #running: string | null;
  #cancelWanted = false;
  #queue: Waiting[] = [];
  #pumping = false;
  #everUp = false;
  constructor(options: ConversationOptions, listener: Listener) {
    this.#options = options;
    this.#listener = listener;
    this.#turns = new TurnOwners(this.#sent, (id, turnId) => listener.taken?.(id, turnId));
    this.#subscriptions = new SessionSubscriptions(options.sessions, (frame) => this.#send(frame), options.running);
    this.#running = options.running?.turnId ?? null;
    if (this.#running !== null) this.#turns.markOurs(this.#running);
    // A session that is followed by its id is known from the start.
    if (options.everything && options.sessions.length === 1) this.#subscriptions.session = options.sessions[0] ?? null;
  }

  attach(connection: Connection): void {
    this.#connection = connection;
  }

  /** One of our messages is queued or being answered. */
  get isBusy(): boolean {
    return !this.#sent.isEmpty || this.#running !== null;
  }

  /** One of our turns runs or is parked, so its end will be received. */
  get isAnswering(): boolean {
    return this.#running !== null;
  }

  get session(): string | null {
    return this.#subscriptions.session;
  }

  /** Sends a message; resolves when it is answered or refused. `mode`: how it is handled while the session is busy. `id`: its own, in frames. */
  async say(text: string, mode?: QueueMode, extras?: MessageExtras, id?: string): Promise<Outcome> {
    const { message, outcome } = this.#sent.add(text, mode, extras, id);
    this.#sendMessage(message);
    return outcome;
  }

  /** Stops our running turn; if none runs yet, cancels our queued messages. */
  cancel(): void {
    if (!this.isBusy) return;
    this.#cancelWanted = true;
    this.#sendCancel();
  }

  up(): void {
    const again = this.#everUp;
    this.#everUp = true;
    this.#queue.push({ kind: "connected", again });
    this.#subscriptions.resubscribe(again);
    for (const message of this.#sent.all()) if (message.messageId === null) this.#sendMessage(message);
    if (again) void this.#refreshAll();
    if (this.#cancelWanted) this.#sendCancel();
    void this.#pump();
  }

  down(reason: string, tries: number): void {
    this.#listener.disconnected(reason, tries);
  }

  handleFrame(incoming: IncomingFrame): void {
    if (incoming.kind === "event") this.#handleEvent(incoming.session, incoming.event);
    else if (incoming.kind === "frame") this.#handleServerFrame(incoming.frame);
    void this.#pump();
  }

  #handleEvent(session: string, event: SessionEvent): void {
    if ("seq" in event && !this.#subscriptions.isNew(session, event.seq)) return;
    this.#queue.push({ kind: "event", session, event });
  }

  #handleServerFrame(frame: ServerFrame): void {
    switch (frame.type) {
      case "subscribed":
        // The name now leads to another session, after `/new` or a similar command from any channel.
        if (this.#subscriptions.resolvesToCurrentSession(frame.key)) this.#moveTo(frame.session);
        this.#subscriptions.onSubscribed(frame.key, frame.session, frame.after);
        break;
      case "accepted": {
        this.#listener.frame(frame);
        const message = this.#sent.get(frame.id);
        if (message === undefined) break;
        message.messageId = frame.messageId;
        message.session = frame.sessionId;
        if (!this.#options.everything) this.#moveTo(frame.sessionId);
        this.#subscriptions.session ??= frame.sessionId;
        this.#subscriptions.unsubscribeOthers();
        if (this.#cancelWanted) this.#sendCancel();
        // Sent before the connection broke: its turn may have started or ended meanwhile.
        if (frame.duplicate) void this.#refreshAll();
        break;
      }
      case "command":
        this.#listener.frame(frame);
        this.#sent.get(frame.id)?.settle({ state: "command", text: frame.text });
        // It may have cancelled queued messages, which no event reports.
        if (this.#sent.hasWaiting) void this.#refreshAll();
        break;
      case "error": {
        this.#listener.frame(frame);
        if (frame.id !== undefined) this.#sent.get(frame.id)?.settle({ state: "refused", text: frame.message });
        break;
      }
      case "cancelled":
        this.#listener.frame(frame);
        this.#cancelWanted = false;
        if (frame.cancelledQueued > 0) void this.#refreshAll();
        break;
      case "pong":
        break;
      default:
        frame satisfies never;
    }
  }

  /** New messages go to this session; answers from the previous session are no longer received. */
  #moveTo(session: string | null): void {
    if (session === null || this.#subscriptions.session === null || session === this.#subscriptions.session) return;
    this.#subscriptions.session = session;
    this.#running = null;
    this.#cancelWanted = false;
    this.#sent.settleOthers(session);
  }

  /** Passes on pending events in order; stops at a turn whose owner is not known yet. */
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
    if (this.#subscriptions.session !== null) return session === this.#subscriptions.session;
    return !this.#sent.isEmpty || this.#options.everything || this.#options.unasked === true;
  }

  /** It may belong to the answer of one of our messages that has no id yet. */
  #mustWait(event: SessionEvent): boolean {
    const tells = event.type === "turn.started" || event.type === "turn.finished" || isInboundMessage(event);
    if (!tells && (this.#options.everything || this.#turns.isKnown(turnOf(event)))) return false;
    return this.#sent.hasUnacknowledged;
  }

  async #pass(session: string, event: SessionEvent): Promise<void> {
    const turnId = turnOf(event);
    const unasked = this.#options.unasked === true;
    if (event.type === "turn.started") {
      this.#turns.claim(turnId, event.inboxIds);
      if (unasked && this.#turns.belongsTo(turnId, this.#options.conversation)) this.#turns.markOurs(turnId);
    }
    if (!this.#turns.isKnown(turnId)) {
      // The owner of a turn is known from the event after its first message.
      if (event.type === "message" && event.message.role === "user" && !this.#options.everything) {
        this.#turns.bufferFirstMessage(turnId, event);
        return;
      }
      await this.#findOwner(turnId);
      if (unasked && this.#turns.belongsTo(turnId, this.#options.conversation)) this.#turns.markOurs(turnId);
      else if (unasked && event.type === "notice" && !this.#turns.isOurs(turnId)) {
        this.#turns.forget(turnId); // a voice session has no turn
        return this.#listener.event(session, event);
      }
    } else if (isInboundMessage(event)) await this.#findOwner(turnId); // the message may join a running turn
    // The answer to a question joins its turn, which only a live event reports, and live events may be lost.
    else if (event.type === "turn.finished" && this.#sent.hasWaiting) await this.#findOwner(turnId);
    const ours = this.#turns.isOurs(turnId);
    if (ours) this.#running = event.type === "turn.finished" ? null : turnId;
    if (ours || this.#options.everything) {
      for (const buffered of this.#turns.bufferedMessages(turnId)) this.#listener.event(session, buffered);
      this.#listener.event(session, event);
    }
    this.#turns.discardBuffered(turnId);
    if (event.type !== "turn.finished") return;
    if (ours) this.#cancelWanted = false;
    this.#turns.markForeign(turnId); // later events of it are ignored
    this.#sent.settleTurn(turnId, { state: outcomeOf(event.state), text: event.text });
    // Cancelled by somebody else, together with this turn.
    if (this.#sent.hasWaiting && event.state === "cancelled") void this.#refreshAll();
  }

  /** It is unknown which messages this turn answers: look up those without a turn. Those of a later turn wait for its events. */
  async #findOwner(turnId: string): Promise<void> {
    if (!this.#turns.isKnown(turnId)) this.#turns.markForeign(turnId);
    for (const message of this.#sent.all()) {
      if (message.messageId === null || message.turnId !== null) continue;
      const state = await this.#stateOf(message.messageId);
      if (state.turn?.turnId === turnId) this.#turns.claim(turnId, [message.messageId]);
    }
  }

  async #stateOf(messageId: string): Promise<Answer<typeof api.message>> {
    for (;;) {
      try {
        return await this.#options.lookUp(messageId);
      } catch {
        await this.#options.pause();
      }
    }
  }

  /** Settles messages that will get no turn, or whose turn ended while there was no connection. */
  async #refreshAll(): Promise<void> {
    for (const message of this.#sent.all()) {
      if (message.messageId === null) continue;
      const { state, turn } = await this.#stateOf(message.messageId);
      if (state === "cancelled") message.settle({ state: "cancelled", text: "Cancelled before it started." });
      else if (turn === null && state === "dead")
        message.settle({ state: "failed", text: "The turn failed too often and was ended." });
      else if (
        turn !== null &&
        turn.state !== "running" &&
        this.#subscriptions.mayHaveMissedEvents &&
        !this.#turns.isKnown(turn.turnId)
      ) {
        this.#turns.claim(turn.turnId, [message.messageId]);
        this.#queue.push({ kind: "event", session: turn.sessionId, event: endOf(turn) });
      }
    }
    void this.#pump();
  }

  #sendMessage({ id, text, mode, extras }: SentMessage): void {
    const { conversation, exclusive = false, interactive = true, thread } = this.#options;
    if (conversation === null) return;
    this.#send({
      type: "message",
      id,
      conversation,
      text,
      ...(mode === undefined ? {} : { mode }),
      ...(exclusive ? { exclusive } : {}),
      ...(interactive ? {} : { interactive }),
      ...(thread === undefined ? {} : { thread }),
      ...extras,
    });
  }

  #sendCancel(): void {
    const session = this.#subscriptions.session;
    if (session === null) return;
    const turnId = this.#running;
    this.#send({ type: "cancel", session, queued: turnId === null, ...(turnId === null ? {} : { turnId }) });
  }

  #send(frame: ClientFrame): void {
    if (this.#connection?.isUp === true) this.#connection.send(frame);
  }
}
