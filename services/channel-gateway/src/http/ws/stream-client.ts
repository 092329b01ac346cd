// One WebSocket client that receives the events of one conversation, or of all of them, as the frames of `stream-frames.ts`. A slow reader
// loses live events but no durable ones, from which it can restore what it shows.
import { randomUUID } from "node:crypto";
import { isThreadOf, operations, store } from "@parley/contracts";
import { StreamFrames, type StreamFrame } from "@parley/projections";
import { LRUCache } from "lru-cache";
import type { WebSocket } from "ws";
import { approvalOperations } from "../../operations/approvals.ts";
import type { ApiAccess } from "../../operations/operation.ts";
import { parseInput } from "../../operations/parse-input.ts";
import { callOperation, requireScope } from "../../operations/registry.ts";
import { subscribe, type Subscription } from "../../live/subscribe.ts";
import { routeOfSession } from "../../ingress/session-route.ts";
import { ownerCaller, ownerInput } from "../owner-input.ts";
import type { HttpDeps } from "../deps.ts";
import { toHttpError } from "../errors.ts";
import {
  decisionIn,
  historyFrame,
  parseStreamFrame,
  type HistoryFrame,
  type StreamClientFrame,
  type StreamServerFrame,
} from "./stream-frames.ts";
import { OtherSessions } from "./other-sessions.ts";
import { WsPeer } from "./peer.ts";

const decide = approvalOperations.filter(({ definition }) => definition === operations.approvalsDecide);

/** The largest number of messages in the history frame. */
const historyMessages = 50;
/** Open questions that are remembered, so that an answer finds its session. */
const maxQuestions = 1_000;

export class StreamClient {
  readonly #peer: WsPeer;
  readonly #deps: HttpDeps;
  readonly #access: ApiAccess;
  readonly #route: string;
  readonly #disconnected = new AbortController();
  /** Questions of the agent that were sent, with the session that asks; null: the connection's conversation. */
  readonly #questions = new LRUCache<string, { sessionId: string | null }>({ max: maxQuestions });
  readonly #scope: { conversation: string; all: boolean };
  #otherSessions: OtherSessions | undefined;
  #subscription: Subscription | undefined;
  /** The followed session of the conversation. */
  #ownSession: string | undefined;
  #sessionChanges: { close(): void } | undefined;
  /** Frames that wait for the history. */
  #bufferedFrames: StreamServerFrame[] | undefined;
  /** Position of the first durable event that was received. */
  #firstSeq: number | undefined;
  /** This client has sent `/stop`: the answer to the command reports the end of the turn. */
  #isStopping = false;
  /** Counts the followed sessions; a subscription that finishes opening after a newer one started is discarded. */
  #followCount = 0;

  constructor(ws: WebSocket, deps: HttpDeps, access: ApiAccess, follows: { conversation: string; all: boolean }) {
    this.#deps = deps;
    this.#access = access;
    this.#scope = follows;
    this.#route = deps.inbound.sessionKeyOf(ownerInput(access, follows.conversation, "", undefined));
    this.#peer = new WsPeer(ws, deps.events, {
      // The first frame is handled after the subscription exists, so no answer is missed.
      begin: () => this.#begin(),
      frame: (text) => this.#handle(parseStreamFrame(text)),
      failed: (error) => this.#fail(error),
      gone: () => {
        this.#disconnected.abort(new Error("the client disconnected"));
        this.#sessionChanges?.close();
        this.#subscription?.close();
        this.#otherSessions?.close();
      },
    });
  }

  ping(): void {
    this.#peer.ping();
  }

  leave(): void {
    this.#peer.leave();
  }

  async #begin(): Promise<void> {
    const { sessions } = this.#deps;
    if (this.#scope.all) this.#otherSessions = this.#followOthers();
    this.#sessionChanges = sessions.follow(
      this.#route,
      (id) => void this.#follow(id, undefined).catch((error: unknown) => this.#closeForReconnect(error)),
    );
    const session = await sessions.find(this.#route);
    if (session !== null) {
      // Events wait for the history, so that a client can append them to it.
      const held: StreamServerFrame[] = (this.#bufferedFrames = []);
      await this.#follow(session.sessionId, undefined);
      const history = await this.#history(session.sessionId);
      this.#bufferedFrames = undefined;
      for (const frame of [history, ...held]) this.#send(frame);
      return;
    }
    // Not awaited: the message that creates the session may arrive over this socket.
    sessions
      .appears(this.#route, this.#disconnected.signal)
      .then((id) => this.#follow(id, 0))
      .catch((error: unknown) => this.#closeForReconnect(error));
  }

  /** The last messages before the first event that is sent. */
  async #history(sessionId: string): Promise<HistoryFrame> {
    const range = { sessionId, afterSeq: 0, beforeSeq: Number.MAX_SAFE_INTEGER, limit: historyMessages };
    const { messages } = await this.#deps.bus.request(store.sessionMessages, range);
    const first = this.#firstSeq;
    return historyFrame(first === undefined ? messages : messages.filter(({ seq }) => seq < first));
  }

  #followOthers(): OtherSessions {
    return new OtherSessions(this.#deps, {
      isOwn: ({ sessionId, key }) =>
        sessionId === this.#ownSession || (key !== undefined && isThreadOf(this.#route, key)),
      isSlow: () => this.#peer.isSlow,
      send: (frame, { key, sessionId }) => this.#show(frame, { key, sessionId }),
      fail: (error) => this.#closeForReconnect(error),
    });
  }

  /** `other`: the session of another conversation. */
  #show(frame: StreamFrame, other?: { key: string; sessionId: string }): void {
    if (frame.type === "event" && frame.event === "question")
      this.#questions.set(String(frame.data["question_id"]), { sessionId: other?.sessionId ?? null });
    this.#send(other === undefined ? frame : { ...frame, session: other.key });
  }

  async #follow(sessionId: string, after: number | undefined): Promise<void> {
    const session = ++this.#followCount;
    this.#ownSession = sessionId;
    const view = new StreamFrames();
    const following = await subscribe(this.#deps, sessionId, after, {
      begin: () => undefined,
      send: ({ event, seq }) => {
        if (seq === undefined && this.#peer.isSlow) return;
        this.#firstSeq ??= seq;
        const isReported = event.type === "turn.finished" && event.exitReason === "interrupted" && this.#isStopping;
        for (const frame of view.event(event)) if (!isReported || frame.type !== "response") this.#show(frame);
        if (isReported) this.#isStopping = false;
      },
      fail: () => this.#closeForReconnect(undefined),
    });
    if (session !== this.#followCount || !this.#peer.isOpen) {
      following.close();
      return;
    }
    this.#subscription?.close();
    this.#subscription = following;
  }

  async #handle(frame: StreamClientFrame): Promise<void> {
    const { inbound, sessions } = this.#deps;
    switch (frame.type) {
      case "ping":
        this.#send({ type: "pong" });
        return;
      case "message":
        return this.#message(frame.text, frame.id ?? randomUUID());
      case "answer": {
        const question = this.#questions.get(frame.question_id);
        if (question !== undefined) return this.#answer(frame.question_id, frame.text, question.sessionId);
        const decision = { id: frame.question_id, ...decisionIn(frame.text) };
        const caller = ownerCaller(this.#access, "http", `answer:${frame.question_id}:${frame.text}`);
        for (const each of decide) await callOperation(inbound.operations, each, decision, caller);
        return;
      }
      case "cancel": {
        requireScope(this.#access, "talk", "stopping a turn");
        const session = await sessions.find(this.#route);
        if (session !== null) await inbound.cancel({ sessionId: session.sessionId, queued: true });
        return;
      }
      default:
        frame satisfies never;
    }
  }

  async #message(text: string, id: string): Promise<void> {
    const { inbound, events } = this.#deps;
    const input = ownerInput(this.#access, this.#scope.conversation, text, id);
    const parsed = parseInput(text);
    if (parsed.kind === "command") {
      events.inbound(input.channel, "command");
      this.#isStopping = /^\s*\/stop\b/i.test(text);
      const answer = await inbound.runCommand(parsed.command, inbound.speakerOf(input));
      if (!answer.startsWith("Stopped.")) this.#isStopping = false;
      this.#send({ type: "response", msg_id: id, content: answer });
      return;
    }
    await inbound.store({ ...input, text: parsed.text, mode: parsed.mode });
  }

  /** The next message in the session that asks is the answer. */
  async #answer(questionId: string, text: string, sessionId: string | null): Promise<void> {
    const route = sessionId === null ? undefined : await routeOfSession(this.#deps, sessionId);
    const input = ownerInput(this.#access, this.#scope.conversation, text, `answer:${questionId}`);
    await this.#deps.inbound.store({ ...input, ...(route === undefined ? {} : { route }) });
    this.#questions.delete(questionId);
  }

  #send(frame: StreamServerFrame): void {
    if (this.#bufferedFrames !== undefined) {
      this.#bufferedFrames.push(frame);
      return;
    }
    this.#peer.send(JSON.stringify(frame));
  }

  /** The session can no longer be followed, so the client has to reconnect. */
  #closeForReconnect(error: unknown): void {
    if (error !== undefined && !this.#disconnected.signal.aborted)
      this.#deps.log.warn({ err: error }, "conversation no longer followed: the client has to reconnect");
    this.#peer.close("reconnect");
  }

  #fail(error: unknown): void {
    const { code, message } = toHttpError(error);
    if (code === "internal") this.#deps.log.error({ err: error }, "WebSocket frame failed");
    this.#send({ type: "error", message });
  }
}
