// Buttons: the blocks of a message, and what is shown after a press.
import { z } from "zod";
import type { store } from "@parley/contracts";
import type { ActionResult, InboundAction } from "../channel.ts";
import type { Call } from "./api.ts";
import type { BlockActions } from "./schema.ts";
import { escaped } from "./text.ts";

/** Limits of Block Kit. */
const maxLabel = 75;
const maxElements = 25;
const maxContext = 2_000;
const answerWithinMs = 5_000;

/** The blocks with the buttons of a message. */
export function buttonBlocks(actions: readonly store.Action[] = []): Record<string, unknown>[] {
  const buttons = actions.map(({ label, input }, index) => ({
    type: "button",
    action_id: `parley-${index}`,
    text: { type: "plain_text", text: label.slice(0, maxLabel) },
    value: input,
  }));
  const rows = Math.ceil(buttons.length / maxElements);
  return Array.from({ length: rows }, (_, row) => ({
    type: "actions",
    elements: buttons.slice(row * maxElements, (row + 1) * maxElements),
  }));
}

/** Shows in the message who decided and removes its buttons, or tells the person that they may not decide. Best effort. */
export async function showResult(
  call: Call,
  { channel, user, message }: BlockActions,
  contact: InboundAction["contact"],
  { text, done }: ActionResult,
): Promise<void> {
  const shown = (method: string, parameters: Record<string, unknown>) =>
    call(method, { channel: channel.id, ...parameters }, z.unknown(), AbortSignal.timeout(answerWithinMs));
  if (!done) {
    const thread = message.thread_ts === undefined ? {} : { thread_ts: message.thread_ts };
    await shown("chat.postEphemeral", { user: user.id, text: escaped(text), ...thread });
    return;
  }
  const decision = escaped(`${contact.name ?? contact.id}: ${text}`.slice(0, maxContext));
  const kept = message.blocks.filter(({ type }) => type !== "actions");
  const blocks = [...kept, { type: "context", elements: [{ type: "mrkdwn", text: decision }] }];
  await shown("chat.update", { ts: message.ts, text: decision, blocks });
}
