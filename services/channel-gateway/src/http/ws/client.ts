// One WebSocket client: its subscriptions, and its messages in the order it sent them. A slow reader loses live events first, never
// durable ones.
import type { ApprovalAnswerer } from "@parley/contracts";
import type { WebSocket } from "ws";
import type { ApiAccess } from "../../operations/operation.ts";
import { parseInput } from "../../operations/parse-input.ts";
import { requireScope } from "../../operations/registry.ts";
import type { EncodedEvent } from "../../live/encoded-event.ts";
import { instructionsText } from "../../ingress/authorized-input.ts";
import { subscribe, type Subscription } from "../../live/subscribe.ts";
import { attachmentsOf } from "../attachment-refs.ts";
import { inputFor, ownerInput } from "../owner-input.ts";
import type { HttpDeps } from "../deps.ts";
import { HttpError, toHttpError } from "../errors.ts";
import { control } from "./control.ts";
import { readClientFrame, type ClientFrame, type ServerFrame } from "./frames.ts";
import { WsPeer } from "./peer.ts";

const maxSubscriptions = 64;
interface SocketSubscription {
  stop: AbortController;
  following?: Subscription;
  /** The followed session. */
  sessionId?: string;
}

function approvalsOf({ interactive, review }: Extract<ClientFrame, { type: "message" }>): ApprovalAnswerer | undefined {
  if (review) return "sender_each_call";
  return interactive ? undefined : "none";
}

export class WsClient {
  readonly #peer: WsPeer;
  readonly #deps: HttpDeps;
  readonly #access: ApiAccess;
  /** By the id or key that the client used. */
  readonly #subscriptions = new Map<string, SocketSubscription>();

  constructor(ws: WebSocket, deps: HttpDeps, access: ApiAccess) {
    this.#deps = deps;
    this.#access = access;
    this.#peer = new WsPeer(ws, deps.events, {
      frame: (text) => this.#handle(text),
      failed: (error) => this.#fail(error, undefined),
      gone: () => {
        for (const name of this.#subscriptions.keys()) this.#unsubscribe(name);
      },
    });
  }

  ping(): void {
    this.#peer.ping();
  }

  leave(): void {
    this.#peer.leave();
  }

  async #handle(text: string): Promise<void> {
    let frame: ClientFrame | undefined;
    try {
      frame = readClientFrame(text);
      await this.#carryOut(frame);
    } catch (error) {
      this.#fail(error, frame?.type === "message" ? frame.id : undefined);
    }
  }

  async #carryOut(frame: ClientFrame): Promise<void> {
    switch (frame.type) {
      case "ping":
        this.#say({ type: "pong" });
        break;
      case "subscribe":
        requireScope(this.#access, "read", "following a session");
        await this.#subscribe(frame.session, frame.after);
        break;
      case "unsubscribe":
        this.#unsubscribe(frame.session);
        break;
      case "message":
        await this.#message(frame);
        break;
      case "control_request":
        // Not awaited: a stop must not wait for a compaction.
        void this.#control(frame);
        break;
      case "cancel": {
        requireScope(this.#access, "talk", "stopping a turn");
        const session = await this.#deps.sessions.find(frame.session);
        if (session === null) throw new HttpError(404, "not_found", `there is no session "${frame.session}"`);
        const { sessionId } = session;
        const { turnId, queued } = frame;
        const outcome = await this.#deps.inbound.cancel({
          sessionId,
          queued,
          ...(turnId === undefined ? {} : { turnId }),
        });
        this.#say({
          type: "cancelled",
          session: sessionId,
          turnId: outcome.turnId,
          cancelledQueued: outcome.cancelledQueued,
        });
        break;
      }
    }
  }

  async #control(frame: Extract<ClientFrame, { type: "control_request" }>): Promise<void> {
    const { request_id } = frame;
    try {
      const response = await control(this.#deps, this.#access, frame);
      this.#say({ type: "control_response", response: { subtype: "success", request_id, response } });
    } catch (error) {
      const { code, message } = toHttpError(error);
      if (code === "internal") this.#deps.log.error({ err: error }, "control request failed");
      this.#say({ type: "control_response", response: { subtype: "error", request_id, code, error: message } });
    }
  }

  async #message(frame: Extract<ClientFrame, { type: "message" }>): Promise<void> {
    const { inbound, events, settings } = this.#deps;
    const parsed = parseInput(frame.text);
    const { thread, exclusive } = frame;
    const owned = { ...ownerInput(this.#access, frame.conversation, frame.text, frame.id), thread };
    const input = inputFor(settings, owned, frame.profile);
    if (parsed.kind === "command") {
      events.inbound(input.channel, "command");
      const text = await inbound.runCommand(parsed.command, inbound.speakerOf(input));
      this.#say({ type: "command", id: frame.id, command: parsed.command.name, text });
      return;
    }
    const mode = parsed.mode ?? frame.mode;
    if (frame.text === "" && (frame.attachments?.length ?? 0) === 0) {
      throw new HttpError(400, "invalid_request", "frame.text: must not be empty");
    }
    const attachments = await attachmentsOf(this.#deps.bus, frame.attachments);
    const approvals = approvalsOf(frame);
    const before = frame.instructions === undefined ? [] : [instructionsText(frame.instructions)];
    const message = { ...input, before, text: parsed.text, mode, attachments, exclusive, approvals };
    const { inboxId, sessionId, duplicate } = await inbound.store(message);
    this.#say({ type: "accepted", id: frame.id, messageId: inboxId, sessionId, duplicate });
  }

  async #subscribe(name: string, after: number | undefined): Promise<void> {
    this.#unsubscribe(name);
    if (this.#subscriptions.size >= maxSubscriptions) {
      throw new HttpError(400, "too_many", `at most ${maxSubscriptions} subscriptions`);
    }
    // The client sent the frame before it disconnected: nothing would end the subscription.
    if (!this.#peer.isOpen) return;
    const subscription: SocketSubscription = { stop: new AbortController() };
    // Before the name is resolved, so that a disconnect meanwhile ends it.
    this.#subscriptions.set(name, subscription);
    // Subscribed before the name is resolved, so that no move is missed.
    const moves = this.#deps.sessions.follow(name, (id, seq) => this.#move(name, subscription, id, seq));
    subscription.stop.signal.addEventListener("abort", () => moves.close(), { once: true });
    const session = await this.#deps.sessions.find(name).catch((error: unknown) => {
      this.#unsubscribe(name);
      throw error;
    });
    if (subscription.stop.signal.aborted) return;
    if (session !== null) {
      await this.#follow(name, subscription, session.sessionId, after);
      return;
    }
    this.#say({ type: "subscribed", session: null, key: name, after: 0 });
    // Not awaited: the message that creates the session may arrive over this socket.
    this.#deps.sessions
      .appears(name, subscription.stop.signal)
      .then((sessionId) => this.#follow(name, subscription, sessionId, 0))
      .catch((error: unknown) => {
        if (!subscription.stop.signal.aborted) this.#fail(error, undefined);
      });
  }

  /** The name is bound to another session now. */
  #move(name: string, subscription: SocketSubscription, sessionId: string, seq: number): void {
    if (subscription.sessionId === undefined || subscription.sessionId === sessionId) return;
    subscription.following?.close();
    this.#follow(name, subscription, sessionId, seq).catch((error: unknown) => this.#fail(error, undefined));
  }

  async #follow(name: string, subscription: SocketSubscription, sessionId: string, after: number | undefined) {
    subscription.sessionId = sessionId;
    const following = await subscribe(this.#deps, sessionId, after, {
      begin: (from) => this.#say({ type: "subscribed", session: sessionId, key: name, after: from }),
      send: (frame) => this.#event(frame),
      fail: () => this.#peer.close("resume from your last seq"),
    });
    const moved = subscription.sessionId !== sessionId;
    if (moved || subscription.stop.signal.aborted || !this.#peer.isOpen) {
      following.close();
      return;
    }
    subscription.following = following;
  }

  #unsubscribe(name: string): void {
    const subscription = this.#subscriptions.get(name);
    this.#subscriptions.delete(name);
    subscription?.stop.abort(new Error("unsubscribed"));
    subscription?.following?.close();
  }

  #event(frame: EncodedEvent): void {
    if (frame.seq === undefined && this.#peer.isSlow) return;
    this.#peer.send(frame.webSocket);
  }

  #say(frame: ServerFrame): void {
    this.#peer.send(JSON.stringify(frame));
  }

  #fail(error: unknown, id: string | undefined): void {
    const { code, message } = toHttpError(error);
    if (code === "internal") this.#deps.log.error({ err: error }, "WebSocket frame failed");
    this.#say({ type: "error", code, message, ...(id === undefined ? {} : { id }) });
  }
}
