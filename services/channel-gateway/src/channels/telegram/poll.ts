// Long polling while the lease is held. An update is confirmed (by requesting the next offset) only after the gateway has stored it, so a
// crash in between causes a redelivery. Network failures are retried, not thrown.
import { z } from "zod";
import type { ChannelHost, LeaseRef } from "../channel.ts";
import { ConnectionCalls } from "../connection-calls.ts";
import { within } from "../transport.ts";
import { showCommands } from "./actions.ts";
import { handleUpdate, type Bot } from "./handle-update.ts";
import { allowedUpdates } from "./parse.ts";
import { Update, type User } from "./update-schema.ts";

const longPollSeconds = 30;
const answerWithinMs = (longPollSeconds + 15) * 1000;
/** Two pollers end each other's polls; the pause gives the outdated one time to learn that it lost the lease. */
const conflictPauseMs = 1_000;

/** Returns when the lease's signal aborts. Rejects when an update could not be stored, with AccountRejectedError when the token is refused. */
export async function poll(bot: Bot, host: ChannelHost, lease: LeaseRef): Promise<void> {
  const { call, identify } = bot;
  const { signal } = lease;
  const calls = new ConnectionCalls("Telegram", host, signal);
  const timely = (): AbortSignal => within(signal, answerWithinMs);
  const connected = ({ username, id }: User) => host.report({ state: "connected", as: `@${username ?? id}` });
  let me: User | null = null;
  let webhookGone = false;
  let offset = lease.cursor === null ? null : Number(lease.cursor);
  while (!signal.aborted) {
    if (me === null) {
      me = await calls.settled("getMe", await identify(timely()));
      if (me !== null) void showCommands(call, host.commands);
      continue;
    }
    if (!webhookGone) {
      const gone = await calls.settled("deleteWebhook", await call("deleteWebhook", {}, z.literal(true), timely()));
      webhookGone = gone === true;
      if (webhookGone) connected(me);
      continue;
    }
    const wait = { timeout: longPollSeconds, allowed_updates: allowedUpdates };
    const question = offset === null ? wait : { ...wait, offset };
    const answer = await call("getUpdates", question, z.array(Update), timely());
    // 409: another process polls with this token (possibly this one is outdated), or a webhook was set in the meantime.
    const isConflict = answer.kind === "refused" && answer.status === 409;
    if (isConflict) webhookGone = !/webhook/i.test(answer.reason);
    const updates = await calls.settled("getUpdates", answer, isConflict ? conflictPauseMs : 0);
    if (updates === null) continue;
    connected(me);
    for (const [index, update] of updates.entries()) {
      if (signal.aborted) return;
      const next = update.update_id + 1;
      try {
        const position = { lease, cursor: String(next) };
        await handleUpdate(host, bot, me, update, position, updates.slice(index + 1));
      } catch (error) {
        if (signal.aborted) return;
        throw error;
      }
      offset = next;
    }
  }
}
