// Buttons: the inline keyboard of a message, and what is shown after a press.
import { z } from "zod";
import type { store } from "@parley/contracts";
import type { ChannelHost, Position } from "../channel.ts";
import type { Call } from "./api.ts";
import type { ParsedAction } from "./parse.ts";

/** Limits of the Bot API. */
const maxAnswer = 200;
const maxMessage = 4_096;
const maxInRow = 3;
const answerWithinMs = 5_000;

/** The parameter of a message with buttons; empty without. */
export function keyboardOf(actions: readonly store.Action[] | undefined): Record<string, unknown> {
  if (actions === undefined) return {};
  const buttons = actions.map(({ label, input }) => ({ text: label, callback_data: input }));
  return {
    reply_markup: { inline_keyboard: buttons.length <= maxInRow ? [buttons] : buttons.map((button) => [button]) },
  };
}

/** Runs a pressed button, answers the press, and shows in the message who decided. Rejects when the press must be delivered again. */
export async function handleAction(
  host: ChannelHost,
  call: Call,
  { action, queryId, message }: ParsedAction,
  position?: Position,
): Promise<void> {
  const { text, done } = await host.act(action, position);
  const shown = (parameters: Record<string, unknown>, method: string) =>
    call(method, parameters, z.unknown(), AbortSignal.timeout(answerWithinMs));
  // Best effort: the decision is stored.
  await shown({ callback_query_id: queryId, text: text.slice(0, maxAnswer) }, "answerCallbackQuery");
  if (!done) return;
  const { chat, message_id, text: question = "", entities = [] } = message;
  const target = { chat_id: chat.id, message_id };
  const decided = `${question}\n\n${action.contact.name ?? action.contact.id}: ${text}`;
  if (question === "" || decided.length > maxMessage) await shown(target, "editMessageReplyMarkup");
  else await shown({ ...target, text: decided, entities }, "editMessageText");
}

/** Shows the commands in the menu of Telegram's clients. Best effort. */
export async function showCommands(call: Call, commands: ChannelHost["commands"]): Promise<void> {
  const menu = commands.map(({ name, summary }) => ({ command: name.slice(1), description: summary.slice(0, 256) }));
  await call("setMyCommands", { commands: menu }, z.unknown(), AbortSignal.timeout(answerWithinMs));
}
