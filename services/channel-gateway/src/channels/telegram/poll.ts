// Long polling while the lease is held. An update is confirmed (by requesting the next offset) only after the gateway has stored it, so a
// crash in between causes a redelivery. Network failures are retried, not thrown.
import { z } from "zod";
import type { ChannelHost, LeaseRef } from "../channel.ts";
import { ConnectionCalls } from "../connection-calls.ts";
import { withTimeout } from "../transport.ts";
import { formatCursor, offsetOf } from "../owned-cursor.ts";
import { handleUpdate, type Bot } from "./handle-update.ts";
import { allowedUpdates } from "./parse.ts";
import { shownAs, Update } from "./update-schema.ts";

const longPollSeconds = 30;
/** Two pollers end each other's polls; the pause gives the outdated one time to learn that it lost the lease. */
const conflictPauseMs = 1_000;

/** Returns when the lease's signal aborts. Rejects when an update could not be stored, with AccountRejectedError when the token is refused. */
export async function poll(
  { account, call, me, showCommands }: Bot,
  host: ChannelHost,
  lease: LeaseRef,
): Promise<void> {
  const { signal } = lease;
  const calls = new ConnectionCalls("Telegram", host, signal);
  const timely = (): AbortSignal => withTimeout(signal, (longPollSeconds + 15) * 1000);
  const removeWebhook = () =>
    calls.succeeded("deleteWebhook", () => call("deleteWebhook", {}, z.literal(true), timely()));
  me.forget();
  const bot = await calls.succeeded("getMe", () => me.answer(timely()));
  if (bot === null) return;
  const connected = () => host.report({ state: "connected", as: shownAs(bot) });
  showCommands(host);
  await removeWebhook();
  connected();
  let offset = offsetOf(lease.cursor, bot.id);
  while (!signal.aborted) {
    const wait = { ...(offset === null ? {} : { offset }), timeout: longPollSeconds, allowed_updates: allowedUpdates };
    const answer = await call("getUpdates", wait, z.array(Update), timely());
    // 409: another process polls with this token (possibly this one is outdated), or a webhook was set in the meantime.
    const isConflict = answer.kind === "refused" && answer.status === 409;
    const updates = await calls.settled("getUpdates", answer, isConflict ? conflictPauseMs : 0);
    if (isConflict && /webhook/i.test(answer.reason)) await removeWebhook();
    if (updates === null) continue;
    connected();
    for (const [index, update] of updates.entries()) {
      if (signal.aborted) return;
      offset = update.update_id + 1;
      const position = { lease, cursor: formatCursor(offset, bot.id) };
      await handleUpdate(host, { account, call }, bot, update, position, updates.slice(index + 1));
    }
  }
}
