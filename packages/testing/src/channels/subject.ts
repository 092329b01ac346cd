// What the cases of the conformance list run against: an adapter in its conversation with one person on its platform.
import assert from "node:assert/strict";
import type { ChannelCapabilities, ReplyAddress, store, TextLimits } from "@parley/contracts";

/** A message as a person on the platform sees it. */
export interface SeenMessage {
  text: string;
  /** The labels of its buttons. */
  buttons: readonly string[];
}

/** A message as the host received it. */
export interface ReceivedMessage {
  externalId: string;
  messageId: string | undefined;
  conversation: string;
  contact: { id: string; name?: string };
  direct: boolean;
  addressed: boolean;
  text: string;
  sentAt: string | undefined;
  replyTo: ReplyAddress;
  /** The number of its files. */
  files: number;
  /** It is marked as forwarded, or quotes another message. */
  isMarked: boolean;
}

/** The outcome of one operation on the platform. */
export interface Outcome {
  state: string;
  providerMessageId?: string | null;
  reason?: string;
  afterMs?: number;
}

/** An adapter in its conversation with one person. Operations that the adapter does not have are undefined. */
export interface ChannelSubject {
  channel: string;
  account: string;
  limits: TextLimits;
  capabilities: ChannelCapabilities;
  /** Values that must not appear in any log or reason. */
  secrets: readonly string[];
  /** All log lines of the adapter so far. */
  logText(): string;
  /** Sends an answer as the host does: split, message by message. Returns the outcome of each message. */
  send(text: string, options?: SendOptions): Promise<Outcome[]>;
  /** Sends a file, with the last message of a text where the channel sends them together. */
  sendFile(name: string, content: Uint8Array): Promise<Outcome>;
  edit?(messageId: string, text: string, signal?: AbortSignal): Promise<Outcome>;
  remove?(messageId: string, signal?: AbortSignal): Promise<Outcome>;
  react?(messageId: string, reaction: string | null): Promise<Outcome>;
  typing?(): Promise<void>;
  stopTyping?(): Promise<void>;
  /** The account's own name on the platform. */
  check?(): Promise<string>;
  /** Sends one message to a conversation that cannot exist. */
  sendNowhere(text: string): Promise<Outcome>;
  /** All messages that the person has seen so far; waits until there are `count`. */
  seen(count: number): Promise<readonly SeenMessage[]>;
  /** The person writes; returns what the host received. */
  say(text: string): Promise<ReceivedMessage>;
  /** The person writes in a group, without mentioning the agent; returns what the host received. Omitted: the channel has no groups. */
  sayInGroup?(text: string): Promise<ReceivedMessage>;
  /** The person presses a button of the last message; returns the input that the host received. */
  press?(label: string): Promise<string>;
}

export interface SendOptions {
  actions?: readonly store.Action[];
  /** Default: the conversation with the person. */
  to?: ReplyAddress;
  /** The idempotency key of the only message. Default: a new one for each. */
  key?: string;
  signal?: AbortSignal;
}

export interface ConformanceCase {
  group: "text" | "limits" | "inbound" | "outcome" | "actions" | "operations" | "account";
  name: string;
  run: (subject: ChannelSubject) => Promise<void>;
}

/** Sends a text and returns the new messages that the person sees. */
export async function seenAfter(
  subject: ChannelSubject,
  text: string,
  options?: SendOptions,
): Promise<readonly SeenMessage[]> {
  const before = (await subject.seen(0)).length;
  const outcomes = await subject.send(text, options);
  assert.ok(outcomes.length > 0);
  for (const outcome of outcomes) assert.equal(outcome.state, "sent", outcome.reason);
  return (await subject.seen(before + outcomes.length)).slice(before);
}
