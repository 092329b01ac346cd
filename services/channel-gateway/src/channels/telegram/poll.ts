// Long polling while the lease is held. An update is confirmed (by requesting the next offset) only after the gateway has stored it, so a
// crash in between causes a redelivery. Network failures are retried, not thrown.
import { setTimeout as delay } from "node:timers/promises";
import { z } from "zod";
import { backoffMs } from "@parley/kit";
import type { ChannelHost, LeaseRef } from "../channel.ts";
import type { Answer } from "../json-api.ts";
import { resultOf } from "../outcome.ts";
import { within } from "../transport.ts";
import { showCommands } from "./actions.ts";
import type { Call } from "./api.ts";
import { handleUpdate } from "./handle-update.ts";
import { allowedUpdates } from "./parse.ts";
import { Update, type User } from "./update-schema.ts";

const longPollSeconds = 30;
const answerWithinMs = (longPollSeconds + 15) * 1000;
const pauses = { firstMs: 250, maxMs: 30_000 };
/** Two pollers end each other's polls; the pause gives the outdated one time to learn that it lost the lease. */
const conflictPauseMs = 1_000;

interface Polling {
  call: Call;
  account: string;
  identify: (signal: AbortSignal) => Promise<Answer<User>>;
}

/** Returns when the lease's signal aborts. Rejects when an update could not be stored, with AccountRejectedError when the token is refused. */
export async function poll(polling: Polling, host: ChannelHost, lease: LeaseRef): Promise<void> {
  const { call, identify } = polling;
  const { signal } = lease;
  let failures = 0;
  let me: User | null = null;

  /** Returns the result, or null after the pause that the failure requires. */
  const settled = async <Result>(what: string, answer: Answer<Result>): Promise<Result | null> => {
    if (answer.kind === "ok") {
      failures = 0;
      if (me !== null) host.report({ state: "connected", as: `@${me.username ?? me.id}` });
      return answer.result;
    }
    if (signal.aborted) return null;
    if (answer.kind === "refused" && answer.status === 401) resultOf(answer, "Telegram");
    failures += 1;
    const { reason } = answer;
    const { status, retryAfterMs = null } = answer.kind === "refused" ? answer : {};
    host.report({ state: "failing", reason: `${what}: ${reason}` });
    const waitMs = retryAfterMs ?? Math.max(status === 409 ? conflictPauseMs : 0, backoffMs(failures, pauses));
    host.log.warn({ waitMs, status, reason }, `${what} failed: retried later`);
    await delay(waitMs, undefined, { signal }).catch(() => {});
    return null;
  };
  const timely = (): AbortSignal => within(signal, answerWithinMs);

  let webhookGone = false;
  let offset = lease.cursor === null ? null : Number(lease.cursor);
  while (!signal.aborted) {
    if (me === null) {
      me = await settled("getMe", await identify(timely()));
      if (me !== null) void showCommands(call, host.commands);
      continue;
    }
    if (!webhookGone) {
      webhookGone =
        (await settled("deleteWebhook", await call("deleteWebhook", {}, z.literal(true), timely()))) === true;
      continue;
    }
    const question = {
      timeout: longPollSeconds,
      allowed_updates: allowedUpdates,
      ...(offset === null ? {} : { offset }),
    };
    const answer = await call("getUpdates", question, z.array(Update), timely());
    // 409: another process polls with this token (possibly this one is outdated), or a webhook was set in the meantime.
    if (answer.kind === "refused" && answer.status === 409) webhookGone = !/webhook/i.test(answer.reason);
    const updates = (await settled("getUpdates", answer)) ?? [];
    for (const [index, update] of updates.entries()) {
      if (signal.aborted) return;
      const next = update.update_id + 1;
      try {
        const position = { lease, cursor: String(next) };
        await handleUpdate(host, polling, me, update, position, updates.slice(index + 1));
      } catch (error) {
        if (signal.aborted) return;
        throw error;
      }
      offset = next;
    }
  }
}
