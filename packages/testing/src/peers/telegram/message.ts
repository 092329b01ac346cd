// What the methods share: chats, the markup of texts, and messages as the API returns them.
import { z } from "zod";
import { readHtml, type MarkupEntity } from "./markup.ts";
import { badRequest, type MethodResult } from "./results.ts";
import type { SentMessage, TelegramState } from "./state.ts";

export interface Bot {
  id: number;
  username: string;
}

const longestText = 4096;
/** A chat: its id, also as text, or a public name. */
export const chatId = z.union([
  z.number().int(),
  z
    .string()
    .regex(/^-?\d+$/)
    .transform(Number),
  z.string().regex(/^@\w+$/),
]);
export const whole = z.coerce.number().int();
/** The text and entities of a message, or the refusal of its markup. */
export function contentOf(
  raw: string,
  parseMode: string | undefined,
): { text: string; entities: MarkupEntity[] } | MethodResult {
  if (!raw.isWellFormed()) return badRequest("strings must be encoded in UTF-8");
  let text = raw;
  let entities: MarkupEntity[] = [];
  if (parseMode !== undefined) {
    if (parseMode.toLowerCase() !== "html") return badRequest("unsupported parse_mode");
    const markup = readHtml(raw);
    if (!markup.ok) return { status: 400, description: markup.description };
    ({ text, entities } = markup);
  }
  if (text.trim() === "") return badRequest("message text is empty");
  if (text.trim().length > longestText) return badRequest("message is too long");
  return { text, entities };
}

/** The refusal of a chat that the bot may not write to. */
export function unreachable(chat: number | string, state: TelegramState): MethodResult | null {
  if (state.blocked.has(String(chat))) return { status: 403, description: "Forbidden: bot was blocked by the user" };
  return state.missing.has(String(chat)) ? badRequest("chat not found") : null;
}

/** A sent message as the API returns it. */
export function shown(message: SentMessage, bot: Bot): Record<string, unknown> {
  const chat = message.chatId;
  return {
    message_id: message.messageId,
    from: { id: bot.id, is_bot: true, first_name: "Parley", username: bot.username },
    chat: { id: chat, type: typeof chat === "number" && chat > 0 ? "private" : "supergroup" },
    date: Math.floor(Date.now() / 1000),
    text: message.text,
    entities: message.entities,
    ...(message.threadId === null ? {} : { message_thread_id: message.threadId }),
  };
}
