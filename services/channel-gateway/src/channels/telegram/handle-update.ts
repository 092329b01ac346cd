// Passes one update to the gateway, for polling and for webhooks, and decides when an update may be confirmed.
import type { ChannelHost, Position } from "../channel.ts";
import { skipUnstorable, store } from "../parsed.ts";
import { handleAction } from "./actions.ts";
import type { Call } from "./api.ts";
import { parse, type Parsed } from "./parse.ts";
import type { Update, User } from "./update-schema.ts";

/**
 * Resolves when the update may be confirmed: it was stored or is ignored for good. Rejects when Telegram must send it again. `behind`:
 * the updates of the same batch that follow.
 */
export async function handleUpdate(
  host: ChannelHost,
  { account, call }: { account: string; call: Call },
  me: User,
  update: Update,
  position?: Position,
  behind: readonly Update[] = [],
): Promise<void> {
  const parsed = parse(update, me, account);
  const about = { eventId: update.update_id };
  if (parsed.kind === "skipped") host.log.info({ ...about, reason: parsed.reason }, "update skipped");
  else if (parsed.kind === "action") await handleAction(host, call, parsed, position);
  else {
    if (parsed.kind === "message" && behind.some((other) => sameAlbum(parsed, parse(other, me, account)))) {
      parsed.draft.moreOfAlbum = true;
    }
    await skipUnstorable(host.log, about, async () => store(host, parsed, position));
  }
}

/** Albums of one person that arrive together count as one, because they are answered together. */
function sameAlbum(one: Parsed, other: Parsed): boolean {
  if (one.kind !== "message" || other.kind !== "message") return false;
  const [{ draft: mine }, { draft: theirs }] = [one, other];
  if (mine.album !== true || theirs.album !== true) return false;
  return mine.conversation === theirs.conversation && mine.contact.id === theirs.contact.id;
}
