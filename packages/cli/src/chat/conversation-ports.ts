// The ports of a conversation: its listener, its connection and its look-ups.

import type { SessionEvent } from "@parley/contracts";

import type { MessageState } from "../cluster/shapes.ts";
import type { ClientFrame, ServerFrame, ThreadChoice } from "./frames.ts";

export interface Listener {
  /** Events of our turns; each durable event once. */
  event(session: string, event: SessionEvent): void;
  /** Frames of the gateway other than events. */
  frame(frame: ServerFrame): void;
  connected(again: boolean): void;
  disconnected(reason: string, tries: number): void;
}

export interface Connection {
  readonly isUp: boolean;
  send(frame: ClientFrame): void;
}

export interface ConversationOptions {
  /** The name of the chat on the gateway; null if it is read-only. */
  readonly conversation: string | null;
  /** Candidate sessions until the first message determines the session. */
  readonly sessions: readonly string[];
  /** Pass on all turns, not only ours. */
  readonly everything: boolean;
  /** Also pass on turns that no person started: reports of sub-agents, schedules, webhooks. */
  readonly unasked?: boolean;
  /** Each message gets a turn of its own, which no other message joins. */
  readonly exclusive?: boolean;
  /** Default: the policy chooses the session. */
  readonly thread?: ThreadChoice | undefined;
  /** False: nobody here can answer approval questions. Default: true. */
  readonly interactive?: boolean;
  /** The current state of a message. */
  lookUp(messageId: string): Promise<MessageState>;
  /** Resolves after the pause before a failed look-up is retried. */
  pause(): Promise<unknown>;
}
