// One WebSocket client that follows one conversation in the format of another protocol, from now on. A slow reader loses live events
// but no durable ones; the view repairs itself from these.
import { randomUUID } from "node:crypto";
import { operations, store } from "@parley/contracts";
import { StreamFrames } from "@parley/projections";
import type { WebSocket } from "ws";
import { approvalOperations } from "../../operations/approvals.ts";
import type { ApiAccess } from "../../operations/operation.ts";
import { parseInput } from "../../operations/parse-input.ts";
import { callOperation, requireScope } from "../../operations/registry.ts";
import { subscribe, type Subscription } from "../../live/subscribe.ts";
import { ownerCaller, ownerInput } from "../owner-input.ts";
import type { HttpDeps } from "../deps.ts";
import { toHttpError } from "../errors.ts";
import {
  decisionIn,
  historyFrame,
  readViewFrame,
  type HistoryFrame,
  type ViewClientFrame,
  type ViewServerFrame,
} from "./stream-frames.ts";
import { WsPeer } from "./peer.ts";

const decide = approvalOperations.filter(({ definition }) => definition === operations.approvalsDecide);

/** Messages of the log that the history is taken from, as in the design. */
const historyMessages = 50;

export class ViewClient {
  readonly #peer: WsPeer;
  readonly #deps: HttpDeps;
  readonly #access: ApiAccess;
  readonly #conversation: string;
  readonly #route: string;
  readonly #gone = new AbortController();
  #following: Subscription | undefined;
  #moves: { close(): void } | undefined;
  /** Frames that wait for the history. */
  #held: ViewServerFrame[] | undefined;
  /** Position of the first durable event that was received. */
  #firstSeq: number | undefined;
  /** Counts the followed sessions; a subscription that finishes opening after a newer one started is discarded. */
  #session = 0;

  constructor(ws: WebSocket, deps: HttpDeps, access: ApiAccess, conversation: string) {
    this.#deps = deps;
    this.#access = access;
    this.#conversation = conversation;
    this.#route = deps.inbound.sessionKeyOf(ownerInput(access, conversation, "", undefined));
    this.#peer = new WsPeer(ws, deps.events, {
      // The first frame is handled after the subscription exists, so no answer is missed.
      begin: () => this.#begin(),
      frame: (text) => this.#carryOut(readViewFrame(text)),
      failed: (error) => this.#fail(error),
      gone: () => {
        this.#gone.abort(new Error("the client disconnected"));
        this.#moves?.close();
        this.#following?.close();
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
    this.#moves = sessions.follow(
      this.#route,
      (id) => void this.#follow(id, undefined).catch((error: unknown) => this.#lost(error)),
    );
    const session = await sessions.find(this.#route);
    if (session !== null) {
      // Events wait for the history, so that a client can append them to it.
      const held: ViewServerFrame[] = (this.#held = []);
      await this.#follow(session.sessionId, undefined);
      const history = await this.#history(session.sessionId);
      this.#held = undefined;
      for (const frame of [history, ...held]) this.#say(frame);
      return;
    }
    // Not awaited: the message that creates the session may arrive over this socket.
    sessions
      .appears(this.#route, this.#gone.signal)
      .then((id) => this.#follow(id, 0))
      .catch((error: unknown) => this.#lost(error));
  }

  /** The last messages before the first event that is sent. */
  async #history(sessionId: string): Promise<HistoryFrame> {
    const range = { sessionId, afterSeq: 0, beforeSeq: Number.MAX_SAFE_INTEGER, limit: historyMessages };
    const { messages } = await this.#deps.bus.request(store.sessionMessages, range);
    const first = this.#firstSeq;
    return historyFrame(first === undefined ? messages : messages.filter(({ seq }) => seq < first));
  }

  async #follow(sessionId: string, after: number | undefined): Promise<void> {
    const session = ++this.#session;
    const view = new StreamFrames();
    const following = await subscribe(this.#deps, sessionId, after, {
      begin: () => undefined,
      send: ({ event, seq }) => {
        if (seq === undefined && this.#peer.isSlow) return;
        this.#firstSeq ??= seq;
        for (const frame of view.event(event)) this.#say(frame);
      },
      fail: () => this.#lost(undefined),
    });
    if (session !== this.#session || !this.#peer.isOpen) {
      following.close();
      return;
    }
    this.#following?.close();
    this.#following = following;
  }

  async #carryOut(frame: ViewClientFrame): Promise<void> {
    const { inbound, sessions } = this.#deps;
    switch (frame.type) {
      case "ping":
        this.#say({ type: "pong" });
        return;
      case "message":
        return this.#message(frame.text, frame.id ?? randomUUID());
      case "answer": {
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
    const said = ownerInput(this.#access, this.#conversation, text, id);
    const spoken = parseInput(text);
    if (spoken.kind === "command") {
      events.inbound(said.channel, "command");
      const answer = await inbound.runCommand(spoken.command, inbound.speakerOf(said));
      this.#say({ type: "response", msg_id: id, content: answer });
      return;
    }
    await inbound.store({ ...said, text: spoken.text, mode: spoken.mode });
  }

  #say(frame: ViewServerFrame): void {
    if (this.#held !== undefined) {
      this.#held.push(frame);
      return;
    }
    this.#peer.send(JSON.stringify(frame));
  }

  /** The session can no longer be followed, so the client has to reconnect. */
  #lost(error: unknown): void {
    if (error !== undefined && !this.#gone.signal.aborted)
      this.#deps.log.warn({ err: error }, "conversation no longer followed: the client has to reconnect");
    this.#peer.close("reconnect");
  }

  #fail(error: unknown): void {
    const { code, message } = toHttpError(error);
    if (code === "internal") this.#deps.log.error({ err: error }, "WebSocket frame failed");
    this.#say({ type: "error", message });
  }
}
