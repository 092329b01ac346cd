// Runs the messages of a case or a replay in a session of their own, and records what each turn did.

import { ownToolName, type SessionEvent } from "@parley/contracts";
import { Denials } from "@parley/projections";

import type { AttachmentRef } from "../chat/connection.ts";
import { reconnectTimeout } from "../chat/once.ts";
import { callPlace, openChat, ownPrefix } from "../chat/open.ts";
import { api } from "../cluster/api.ts";
import type { Gateway } from "../cluster/gateway.ts";
import type { Target } from "../cluster/target.ts";
import type { Io } from "../io/io.ts";
import { noteDenials } from "../run/notes.ts";
import { applySetup, isEmptySetup, type SessionSetup } from "../run/setup.ts";
import type { TurnRecord } from "./graders.ts";

export interface ConversationDeps {
  readonly gateway: Gateway;
  readonly target: Target;
  readonly io: Io;
}

export interface Scenario {
  readonly setup: SessionSetup;
  /** Sent with the first message. */
  readonly instructions?: string | undefined;
  /** Begins with a copy of this session up to a position; undefined: with a new session. */
  readonly from?: { readonly sessionId: string; readonly atSeq: number } | undefined;
}

/** Sends the messages of the conversation that `withConversation` opened. */
export interface MessageSender {
  /** Sends a message and resolves when its turn has ended. */
  readonly send: (text: string, attachments?: readonly AttachmentRef[]) => Promise<TurnRecord>;
}

/**
 * Opens a conversation, passes it to `use` and returns the result of `use`. Throws CliError when the cluster refuses the setup or
 * no gateway answers.
 */
export async function withConversation<T>(
  { gateway, target, io }: ConversationDeps,
  { setup, instructions, from }: Scenario,
  use: (sender: MessageSender) => Promise<T>,
): Promise<T> {
  const place = callPlace("run", undefined);
  const route = `${ownPrefix}${place.conversation}`;
  const begin =
    from === undefined
      ? { action: "new", route }
      : { action: "fork", session: from.sessionId, atSeq: from.atSeq, route };
  const { session } = await gateway.run(api.openSession, begin);
  if (!isEmptySetup(setup)) await applySetup(gateway, setup, session.sessionId);
  const events: SessionEvent[] = [];
  const denials = new Denials();
  const waiting = reconnectTimeout(io, { ...place, session: session.sessionId });
  const chat = await openChat(
    target,
    // Nobody is asked about tool calls: a call that needs approval is denied.
    { ...place, session: session.sessionId, onlyOurs: true, interactive: false },
    {
      event: (_session, event) => {
        events.push(event);
        noteDenials(io, denials.event(event));
      },
      frame: () => undefined,
      ...waiting,
    },
  );
  let first = instructions;
  const send = async (text: string, attachments: readonly AttachmentRef[] = []): Promise<TurnRecord> => {
    events.length = 0;
    const begunMs = performance.now();
    const extras = {
      ...(attachments.length === 0 ? {} : { attachments }),
      ...(first === undefined ? {} : { instructions: first }),
    };
    first = undefined;
    const outcome = await Promise.race([chat.conversation.say(text, undefined, extras), waiting.lost]);
    return recordOf(events, outcome.text, (performance.now() - begunMs) / 1_000);
  };
  try {
    return await use({ send });
  } finally {
    chat.close();
  }
}

/** The record of the turn that these events belong to. Pure. */
function recordOf(events: readonly SessionEvent[], text: string, seconds: number): TurnRecord {
  const end = events.find((event) => event.type === "turn.finished");
  const replies = events.flatMap((event) =>
    event.type === "message" && event.message.role === "assistant" ? [event.message] : [],
  );
  const tools = replies.flatMap(({ parts }) =>
    parts.flatMap((part) => (part.type === "tool_call" ? [ownToolName(part.name)] : [])),
  );
  const { usage } = end ?? {};
  return {
    turnId: end?.turnId ?? null,
    answered: end?.exitReason === "end_turn",
    text: end?.text ?? text,
    tools,
    costUsd: end === undefined || end.cost.unpricedCalls > 0 ? null : end.cost.micros / 1_000_000,
    seconds,
    modelCalls: replies.length,
    inputTokens: (usage?.inputTokens ?? 0) + (usage?.cacheReadTokens ?? 0) + (usage?.cacheWriteTokens ?? 0),
    outputTokens: usage?.outputTokens ?? 0,
  };
}
