// Passes one update to the gateway, for polling and for webhooks, and decides when an update may be confirmed.
import { z } from "zod";
import type { ChannelHost, Position } from "../channel.ts";
import { isSameAlbum, skipUnstorable, store } from "../parsed.ts";
import type { RememberedCall } from "../remembered-call.ts";
import type { Call } from "./api.ts";
import { parse, type ParsedPress } from "./parse.ts";
import type { Party, Update } from "./update-schema.ts";

/** Limits of the Bot API. */
const maxAnswer = 200;
const maxMessage = 4_096;
const answerWithinMs = 5_000;

export interface Bot {
  account: string;
  call: Call;
  /** The bot itself. */
  me: RememberedCall<Party>;
  showCommands: (host: ChannelHost) => void;
}

/**
 * Resolves when the update may be confirmed: it was stored or is ignored. Rejects when Telegram must send it again. `behind`:
 * the updates of the same batch that follow.
 */
export async function handleUpdate(
  host: ChannelHost,
  { account, call }: Pick<Bot, "account" | "call">,
  me: Party,
  update: Update,
  position?: Position,
  behind: readonly Update[] = [],
): Promise<void> {
  const parsed = parse(update, me, account);
  const about = { eventId: update.update_id };
  if (parsed.kind === "skipped") return host.log.info({ ...about, reason: parsed.reason }, "update skipped");
  if (parsed.kind === "action") return handlePress(host, call, parsed, position);
  if (behind.some((other) => isSameAlbum(parsed, parse(other, me, account))) && parsed.kind === "message") {
    parsed.draft.moreOfAlbum = true;
  }
  await skipUnstorable(host.log, about, async () => store(host, parsed, position));
}

/** Runs a pressed button, answers the press, and shows in the message who decided. Rejects when the press must be delivered again. */
async function handlePress(host: ChannelHost, call: Call, press: ParsedPress, position?: Position): Promise<void> {
  const { action, queryId, message } = press;
  const { text, done } = await host.act(action, position);
  if (host.pauseMs(action.conversation) > 0) return;
  // Best effort: the decision is stored.
  const shown = (method: string, parameters: Record<string, unknown>) =>
    call(method, parameters, z.unknown(), AbortSignal.timeout(answerWithinMs));
  await shown("answerCallbackQuery", { callback_query_id: queryId, text: text.slice(0, maxAnswer) });
  if (!done) return;
  const { chat, message_id, text: question = "", entities = [] } = message;
  const target = { chat_id: chat.id, message_id };
  const decided = `${question}\n\n${action.contact.name ?? action.contact.id}: ${text}`;
  if (question === "" || decided.length > maxMessage) await shown("editMessageReplyMarkup", target);
  else await shown("editMessageText", { ...target, text: decided, entities });
}
