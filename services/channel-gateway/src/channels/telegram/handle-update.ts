// Passes one update to the gateway, for polling and for webhooks, and decides when an update may be confirmed.
import { WireError } from "@parley/contracts";
import type { ChannelHost, Position } from "../channel.ts";
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
  if (parsed.kind === "skipped") {
    host.log.info(
      { channel: "telegram", account, updateId: update.update_id, reason: parsed.reason },
      "update skipped",
    );
    return;
  }
  if (parsed.kind === "action") {
    await handleAction(host, call, parsed, position);
    return;
  }
  if (parsed.kind === "change") {
    await host.change(parsed.change, position);
    return;
  }
  try {
    const moreOfAlbum = behind.some((other) => sameAlbum(parsed, parse(other, me, account)));
    await host.accept({ ...parsed.draft, ...(moreOfAlbum ? { moreOfAlbum } : {}) }, position);
  } catch (error) {
    // A redelivery would be refused again and block all later updates.
    if (!WireError.is(error, "INVALID_INPUT", "TOO_LARGE")) throw error;
    host.log.error(
      { channel: "telegram", account, updateId: update.update_id, code: error.code, reason: error.message },
      "update skipped: it can never be stored",
    );
  }
}

/** Albums of one person that arrive together count as one, because they are answered together. */
function sameAlbum(one: Parsed, other: Parsed): boolean {
  if (one.kind !== "message" || other.kind !== "message") return false;
  const [{ draft: mine }, { draft: theirs }] = [one, other];
  if (mine.album !== true || theirs.album !== true) return false;
  return mine.conversation === theirs.conversation && mine.contact.id === theirs.contact.id;
}
