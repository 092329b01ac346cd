// What a conversation is joined to: whom it tells, through what it speaks, and where it asks.

import type { SessionEvent } from "@parley/contracts";

import type { MessageState } from "../cluster/shapes.ts";
import type { ClientFrame, ServerFrame, ThreadChoice } from "./frames.ts";

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
  /** Each message waits for an answer of its own: no other message joins its turn. */
  readonly exclusive?: boolean;
  /** Left out: the policy chooses the session. */
  readonly thread?: ThreadChoice | undefined;
  /** False: nobody here answers approval questions about what is sent. Left out: somebody does. */
  readonly interactive?: boolean;
  /** How a message stands by now. */
  lookUp(messageId: string): Promise<MessageState>;
  /** Resolves after a pause before a failed look-up is tried again. */
  pause(): Promise<unknown>;
}
