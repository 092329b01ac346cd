// Buttons of messages, presses and the menu of commands, as strict as the real service.
import { z } from "zod";
import { badRequest, done, json, type MethodResult } from "./results.ts";
import type { SentMessage, TelegramState } from "./state.ts";

const Markup = json(
  z.object({
    inline_keyboard: z.array(z.array(z.object({ text: z.string().min(1), callback_data: z.string().min(1) }))),
  }),
).optional();
const SetCommands = z.object({
  commands: json(
    z
      .array(z.object({ command: z.string().regex(/^[a-z0-9_]{1,32}$/), description: z.string().min(1).max(256) }))
      .max(100),
  ),
});
const AnswerPress = z.object({ callback_query_id: z.string(), text: z.string().max(200).optional() });

export function buttonsOf(markup: unknown): SentMessage["buttons"] | MethodResult {
  const given = Markup.safeParse(markup);
  if (!given.success) return badRequest("object expected as reply markup");
  const buttons = (given.data?.inline_keyboard ?? []).flat();
  if (buttons.some(({ callback_data: data }) => Buffer.byteLength(data) > 64)) return badRequest("BUTTON_DATA_INVALID");
  return buttons.map(({ text, callback_data: data }) => ({ text, data }));
}

export function answerPress(parameters: Record<string, unknown>, state: TelegramState): MethodResult {
  const given = AnswerPress.safeParse(parameters);
  if (!given.success) return badRequest("MESSAGE_TOO_LONG");
  const { callback_query_id: id, text = "" } = given.data;
  if (!state.presses.has(id)) return badRequest("query is too old and response timeout expired or query ID is invalid");
  state.presses.set(id, text);
  state.changed();
  return done(true);
}

export function setCommands(parameters: Record<string, unknown>, state: TelegramState): MethodResult {
  const given = SetCommands.safeParse(parameters);
  if (!given.success) return badRequest("BOT_COMMAND_INVALID");
  state.commands = given.data.commands;
  state.changed();
  return done(true);
}
