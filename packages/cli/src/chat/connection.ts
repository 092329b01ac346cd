// The connection to the gateway: the frames in both directions, and a WebSocket that reconnects. If a gateway is gone or silent, it tries the
// next one. The caller must request missed events.
//
//   trying ──open──▶ up ──closed or silent──▶ trying …          close() from anywhere ──▶ closed

import { type QueueMode, type SessionEvent, SessionEventSchema } from "@parley/contracts";
import { backoffMs, parseJson } from "@parley/kit";
import { z } from "zod";

import type { Answer, api } from "../cluster/api.ts";
import { reasonOf } from "../cluster/gateway.ts";
import type { Target } from "../cluster/target.ts";

/**
 * `own`: the session of a single call, unless the settings let calls share one. `separate`: regardless of the settings. `named`: the
 * session of the named conversation. Default: the policy chooses.
 */
export type ThreadChoice = "own" | "separate" | "named";

/** A stored file, by the hash of its content. */
export interface AttachmentRef {
  readonly id: string;
  readonly name?: string;
}

/** What a message can have in addition to its text. */
export interface MessageExtras {
  readonly attachments?: readonly AttachmentRef[] | undefined;
  /** Instructions of the calling program, before the text. */
  readonly instructions?: string | undefined;
  /** The profile that answers; the session must be new or its own. */
  readonly profile?: string | undefined;
  /** The sender reviews every tool call of the turn, also those that need no approval. */
  readonly review?: boolean | undefined;
  /** Whether the sender can answer approval questions. Omitted: as of the chat. */
  readonly interactive?: boolean | undefined;
  /** Instead of the thread of the chat. */
  readonly thread?: ThreadChoice | undefined;
}

export type ClientFrame =
  | { type: "subscribe"; session: string; after?: number }
  | { type: "unsubscribe"; session: string }
  | ({
      type: "message";
      id: string;
      conversation: string;
      text: string;
      mode?: QueueMode;
      /** The message gets a turn of its own, unless `mode` lets it join another. */
      exclusive?: boolean;
    } & MessageExtras)
  | { type: "cancel"; session: string; turnId?: string; queued: boolean }
  | { type: "ping" };

const ServerFrameSchema = z.discriminatedUnion("type", [
  z.object({ type: z.literal("subscribed"), session: z.string().nullable(), key: z.string(), after: z.number() }),
  z.object({
    type: z.literal("accepted"),
    id: z.string(),
    messageId: z.string(),
    sessionId: z.string(),
    duplicate: z.boolean(),
  }),
  z.object({ type: z.literal("command"), id: z.string(), command: z.string(), text: z.string() }),
  z.object({
    type: z.literal("cancelled"),
    session: z.string(),
    turnId: z.string().nullable(),
    cancelledQueued: z.number(),
  }),
  z.object({ type: z.literal("error"), code: z.string(), message: z.string(), id: z.string().optional() }),
  z.object({ type: z.literal("pong") }),
]);
export type ServerFrame = z.infer<typeof ServerFrameSchema>;

const OfSession = z.object({ session: z.string() });

export type IncomingFrame =
  | { kind: "frame"; frame: ServerFrame }
  | { kind: "event"; session: string; event: SessionEvent }
  /** A frame of a newer gateway, or a malformed one; ignored. */
  | { kind: "unknown" };

/** Parses one frame. */
function readFrame(text: string): IncomingFrame {
  const value = parseJson(text);
  const frame = ServerFrameSchema.safeParse(value);
  if (frame.success) return { kind: "frame", frame: frame.data };
  const of = OfSession.safeParse(value);
  const event = SessionEventSchema.safeParse(value);
  return of.success && event.success
    ? { kind: "event", session: of.data.session, event: event.data }
    : { kind: "unknown" };
}

export interface Listener {
  /** Events of our turns; each durable event once. */
  event(session: string, event: SessionEvent): void;
  /** Frames of the gateway other than events. */
  frame(frame: ServerFrame): void;
  /** A turn has taken this message of ours: its id as in the frames. Called before the events of the turn. */
  taken?(id: string, turnId: string): void;
  connected(again: boolean): void;
  disconnected(reason: string, tries: number): void;
}

export interface Connection {
  readonly isUp: boolean;
  send(frame: ClientFrame): void;
}

/** A turn of a conversation that ran before the conversation was opened. */
export interface RunningTurn {
  readonly turnId: string;
  readonly sessionId: string;
  /** Position in the session's log; later events are wanted. */
  readonly afterSeq: number;
}

export interface ConversationOptions {
  /** The name of the chat on the gateway; null if it is read-only. */
  readonly conversation: string | null;
  /** Candidate sessions until the first message determines the session. */
  readonly sessions: readonly string[];
  /** Pass on all turns, not only ours. */
  readonly everything: boolean;
  /**
   * Also pass on turns that no person started (reports of sub-agents, schedules, webhooks), turns of this conversation that another chat
   * or a voice session started, and notices outside of turns.
   */
  readonly unasked?: boolean;
  /** Each message gets a turn of its own, which no other message joins. */
  readonly exclusive?: boolean;
  /** Default: the policy chooses the session. */
  readonly thread?: ThreadChoice | undefined;
  /** False: nobody here can answer approval questions. Default: true. */
  readonly interactive?: boolean;
  /** Pass on this turn too. */
  readonly running?: RunningTurn | undefined;
  /** The current state of a message. */
  lookUp(messageId: string): Promise<Answer<typeof api.message>>;
  /** Resolves after the pause before a failed look-up is retried. */
  pause(): Promise<unknown>;
}

export interface LinkTimes {
  /** Silence after which a ping is sent to the gateway. */
  readonly quietMs: number;
  /** Silence after which it counts as gone. */
  readonly deadMs: number;
  readonly openMs: number;
  readonly firstRetryMs: number;
  readonly maxRetryMs: number;
}

const linkTimes: LinkTimes = {
  quietMs: 5_000,
  deadMs: 12_000,
  openMs: 5_000,
  firstRetryMs: 100,
  maxRetryMs: 2_000,
};

export interface LinkListener {
  up(): void;
  handleFrame(incoming: IncomingFrame): void;
  /** The connection is lost or could not be opened, `tries` times in a row. Another attempt follows. */
  down(reason: string, tries: number): void;
}

export class ReconnectingSocket {
  readonly #target: Target;
  readonly #listener: LinkListener;
  readonly #times: LinkTimes;
  #socket: WebSocket | null = null;
  #isUp = false;
  #closed = false;
  #next = 0;
  #tries = 0;
  #receivedAtMs = 0;
  #timer: NodeJS.Timeout | undefined;
  #watch: NodeJS.Timeout | undefined;

  constructor(target: Target, listener: LinkListener, times: LinkTimes = linkTimes) {
    this.#target = target;
    this.#listener = listener;
    this.#times = times;
  }

  open(): void {
    this.#try();
  }

  get isUp(): boolean {
    return this.#isUp;
  }

  /** Sends a frame; does nothing without a connection. The caller must send it again after a reconnect. */
  send(frame: ClientFrame): void {
    if (this.#isUp) this.#socket?.send(JSON.stringify(frame));
  }

  close(): void {
    this.#closed = true;
    clearTimeout(this.#timer);
    this.#drop();
  }

  #try(): void {
    if (this.#closed) return;
    const urls = this.#target.urls();
    const url = urls[this.#next % urls.length] ?? "";
    this.#next += 1;
    let reason = "disconnected";
    const socket = new WebSocket(`${url.replace(/^http/, "ws")}/api/ws`, {
      headers: { authorization: `Bearer ${this.#target.token()}` },
    });
    this.#socket = socket;
    const tooLong = setTimeout(() => lost("no answer in time"), this.#times.openMs);
    const lost = (why: string): void => {
      clearTimeout(tooLong);
      if (this.#socket !== socket) return;
      this.#drop();
      this.#again(`${url}: ${why}`);
    };
    socket.addEventListener("open", () => {
      clearTimeout(tooLong);
      if (this.#socket !== socket) return;
      this.#isUp = true;
      this.#tries = 0;
      this.#receivedAtMs = performance.now();
      this.#watch = setInterval(() => this.#check(lost), this.#times.quietMs / 2);
      this.#listener.up();
    });
    socket.addEventListener("message", ({ data }) => {
      if (this.#socket !== socket) return;
      this.#receivedAtMs = performance.now();
      this.#listener.handleFrame(readFrame(String(data)));
    });
    socket.addEventListener("error", (event) => {
      reason = ("error" in event && reasonOf(event.error)) || "disconnected";
    });
    socket.addEventListener("close", (event) => lost(event.reason === "" ? reason : event.reason));
  }

  #check(lost: (why: string) => void): void {
    const silentMs = performance.now() - this.#receivedAtMs;
    if (silentMs > this.#times.deadMs) lost("no data received");
    else if (silentMs > this.#times.quietMs) this.send({ type: "ping" });
  }

  #again(reason: string): void {
    if (this.#closed) return;
    this.#tries += 1;
    this.#listener.down(reason, this.#tries);
    if (this.#closed) return;
    const { firstRetryMs, maxRetryMs } = this.#times;
    this.#timer = setTimeout(() => this.#try(), backoffMs(this.#tries, { firstMs: firstRetryMs, maxMs: maxRetryMs }));
  }

  #drop(): void {
    clearInterval(this.#watch);
    this.#isUp = false;
    const socket = this.#socket;
    this.#socket = null;
    socket?.close();
  }
}
