// Hands one update to the gateway. Shared by the two ways updates arrive; it decides when an update counts as dealt with.
import { WireError } from "@parley/contracts";
import type { ChannelHost, HeldLease } from "../../channel.ts";
import type { Download } from "./download.ts";
import { parse, type Parsed } from "./parse.ts";
import type { Update, User } from "./updates.ts";

/**
 * Resolves when Telegram may forget the update: it was kept, or nothing will ever be done with it. Rejects when it must be sent
 * again. `behind`: updates that came with it and are taken in next.
 */
export async function takeIn(
  host: ChannelHost,
  account: string,
  me: User,
  update: Update,
  download: Download,
  position?: { lease: HeldLease; cursor: string },
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
  try {
    const files = parsed.files.map(({ fileId, ...file }) => ({
      ...file,
      fetch: (maxBytes: number, signal: AbortSignal) => download(fileId, maxBytes, signal),
    }));
    const moreOfAlbum = behind.some((other) => sameAlbum(parsed, parse(other, me, account)));
    const draft = { ...parsed.draft, ...(moreOfAlbum ? { moreOfAlbum } : {}) };
    await host.accept(files.length === 0 ? draft : { ...draft, files }, position);
  } catch (error) {
    // Sent again it would be refused again, and everything behind it would wait for ever.
    if (!WireError.is(error, "INVALID_INPUT", "TOO_LARGE")) throw error;
    host.log.error(
      { channel: "telegram", account, updateId: update.update_id, code: error.code, reason: error.message },
      "update can never be kept; it is skipped",
    );
  }
}

/** Albums that one person sends at a time are one: they are answered together in any case. */
function sameAlbum(one: Parsed, other: Parsed): boolean {
  if (one.kind === "skipped" || other.kind === "skipped") return false;
  const [{ draft: mine }, { draft: theirs }] = [one, other];
  if (mine.album !== true || theirs.album !== true) return false;
  return mine.conversation === theirs.conversation && mine.contact.id === theirs.contact.id;
}
