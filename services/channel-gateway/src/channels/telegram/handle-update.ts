// Passes one update to the gateway, for polling and for webhooks, and decides when an update may be confirmed.
import type { ChannelHost, Position } from "../channel.ts";
import type { Answer } from "../json-api.ts";
import { isSameAlbum, skipUnstorable, store } from "../parsed.ts";
import { handleAction } from "./actions.ts";
import type { Call } from "./api.ts";
import { parse } from "./parse.ts";
import type { Update, User } from "./update-schema.ts";

export interface Bot {
  account: string;
  call: Call;
  /** The bot itself, looked up once. */
  identify: (signal: AbortSignal) => Promise<Answer<User>>;
}

/**
 * Resolves when the update may be confirmed: it was stored or is ignored for good. Rejects when Telegram must send it again. `behind`:
 * the updates of the same batch that follow.
 */
export async function handleUpdate(
  host: ChannelHost,
  { account, call }: Bot,
  me: User,
  update: Update,
  position?: Position,
  behind: readonly Update[] = [],
): Promise<void> {
  const parsed = parse(update, me, account);
  const about = { eventId: update.update_id };
  if (parsed.kind === "skipped") return host.log.info({ ...about, reason: parsed.reason }, "update skipped");
  if (parsed.kind === "action") return handleAction(host, call, parsed, position);
  if (behind.some((other) => isSameAlbum(parsed, parse(other, me, account))) && parsed.kind === "message") {
    parsed.draft.moreOfAlbum = true;
  }
  await skipUnstorable(host.log, about, async () => store(host, parsed, position));
}
