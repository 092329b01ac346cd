// One WebSocket client that follows one conversation in another protocol's words. It sees what happens from now on; live events are
// left out for a slow reader, durable ones never: the view repairs itself from them.
import { randomUUID } from "node:crypto";
import { store } from "@parley/contracts";
import type { WebSocket } from "ws";
import { readSpoken } from "../commands/spoken.ts";
import { follow, type Following } from "../follow.ts";
import { apiInput } from "./api-input.ts";
import type { HttpDeps } from "./deps.ts";
import { HttpError, toHttpError } from "./errors.ts";
import {
  commandFrames,
  decisionIn,
  readViewFrame,
  viewOf,
  type ViewClientFrame,
  type ViewFormat,
  type ViewServerFrame,
} from "./view-frames.ts";

/** What may wait for a slow reader before live events are left out, and before it is closed. */
const softBytes = 256 * 1024;
const hardBytes = 4 * 1024 * 1024;
const maxWaitingFrames = 32;

/** Codes of RFC 6455 and its registry. */
const goingAway = 1001;
const tryAgainLater = 1013;

export class ViewClient {
  readonly #ws: WebSocket;
  readonly #deps: HttpDeps;
  readonly #format: ViewFormat;
  readonly #conversation: string;
  readonly #route: string;
  readonly #gone = new AbortController();
  #following: Following | undefined;
  #moves: { close(): void } | undefined;
  /** Counts the sessions that were followed: one that takes long to be opened may be out of date by then. */
  #session = 0;
  #work: Promise<void>;
  #waiting = 0;
  #alive = true;

  constructor(ws: WebSocket, deps: HttpDeps, format: ViewFormat, conversation: string) {
    this.#ws = ws;
    this.#deps = deps;
    this.#format = format;
    this.#conversation = conversation;
    this.#route = deps.inbound.sessionKeyOf(apiInput(conversation, "", undefined));
    ws.on("message", (data, isBinary) => this.#receive(data, isBinary));
    ws.on("pong", () => {
      this.#alive = true;
    });
    // `close` follows.
    ws.on("error", () => undefined);
    ws.once("close", () => {
      this.#gone.abort(new Error("the client went away"));
      this.#moves?.close();
      this.#following?.close();
    });
    // What is said first is said after it is known what is followed: no answer is missed.
    this.#work = this.#begin().catch((error: unknown) => this.#fail(error));
  }

  /** Asks whether the client is still there; one that did not answer last time is let go. */
  ping(): void {
    if (!this.#alive) {
      this.#ws.terminate();
      return;
    }
    this.#alive = false;
    this.#ws.ping();
  }

  /** The replica goes: the client is to come again, anywhere. */
  leave(): void {
    this.#ws.close(goingAway, "going away");
  }

  async #begin(): Promise<void> {
    const { sessions } = this.#deps;
    this.#moves = sessions.follow(this.#route, (id) => void this.#follow(id, undefined).catch(() => this.#lost()));
    const session = await sessions.find(this.#route);
    if (session !== null) {
      await this.#follow(session.sessionId, undefined);
      return;
    }
    // Not waited for: the message that brings the session into being may come over this very socket.
    sessions
      .appears(this.#route, this.#gone.signal)
      .then((id) => this.#follow(id, 0))
      .catch(() => this.#lost());
  }

  async #follow(sessionId: string, after: number | undefined): Promise<void> {
    const session = ++this.#session;
    const view = viewOf(this.#format, this.#deps.settings);
    const following = await follow(this.#deps, sessionId, after, {
      begin: () => undefined,
      send: ({ event, seq }) => {
        if (seq === undefined && this.#ws.bufferedAmount > softBytes) return;
        for (const frame of view.event(event)) this.#say(frame);
      },
      fail: () => this.#lost(),
    });
    if (session !== this.#session || this.#ws.readyState !== this.#ws.OPEN) {
      following.close();
      return;
    }
    this.#following?.close();
    this.#following = following;
  }

  #receive(data: unknown, isBinary: boolean): void {
    if (++this.#waiting >= maxWaitingFrames) this.#ws.pause();
    // One after the other, so that what is said first is kept first.
    this.#work = this.#after(this.#work, isBinary ? null : String(data));
  }

  async #after(before: Promise<void>, text: string | null): Promise<void> {
    await before;
    try {
      if (text === null) throw new HttpError(400, "invalid_request", "frames are text");
      await this.#carryOut(readViewFrame(text));
    } catch (error) {
      this.#fail(error);
    }
    if (--this.#waiting < maxWaitingFrames && this.#ws.isPaused) this.#ws.resume();
  }

  async #carryOut(frame: ViewClientFrame): Promise<void> {
    const { bus, inbound, sessions } = this.#deps;
    switch (frame.type) {
      case "ping":
        this.#say({ type: "pong" });
        return;
      case "message":
        return this.#message(frame.text, frame.id ?? randomUUID());
      case "answer": {
        const decision = { id: frame.question_id, ...decisionIn(frame.text), by: "owner (http)" };
        const { outcome } = await bus.request(store.approvalDecide, decision);
        if (outcome !== "decided") {
          throw new HttpError(409, "conflict", `question ${frame.question_id}: ${outcome.replace("_", " ")}`);
        }
        return;
      }
      case "cancel": {
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
    const said = apiInput(this.#conversation, text, id);
    const spoken = readSpoken(text);
    if (spoken.kind === "command") {
      events.inbound(said.channel, "command");
      const answer = await inbound.carryOut(spoken.command, inbound.speakerOf(said));
      for (const frame of commandFrames(this.#format, id, answer)) this.#say(frame);
      return;
    }
    await inbound.keep({ ...said, text: spoken.text, mode: spoken.mode });
  }

  #say(frame: ViewServerFrame): void {
    if (this.#ws.readyState !== this.#ws.OPEN) return;
    if (this.#ws.bufferedAmount > hardBytes) {
      this.#deps.events.slowClient("ws");
      this.#ws.terminate();
      return;
    }
    this.#ws.send(JSON.stringify(frame));
  }

  /** What happens cannot be followed any more: the client is to come again. */
  #lost(): void {
    this.#ws.close(tryAgainLater, "come again");
  }

  #fail(error: unknown): void {
    const { code, message } = toHttpError(error);
    if (code === "internal") this.#deps.log.error({ err: error }, "WebSocket frame failed");
    this.#say({ type: "error", message });
  }
}
