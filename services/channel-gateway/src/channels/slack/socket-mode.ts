// Socket mode while the lease is held. Slack sends each event to one of an app's connections and again to another one when it is not
// acknowledged, so a connection that overlaps with the next one loses and doubles nothing.
import { setTimeout as delay } from "node:timers/promises";
import { z } from "zod";
import { AccountRejectedError, type ChannelHost, type LeaseRef } from "../channel.ts";
import type { Answer } from "../json-api.ts";
import { resultOf } from "../outcome.ts";
import { withTimeout } from "../transport.ts";
import type { Call } from "./api.ts";
import type { SlackApp } from "./intake.ts";
import { SlackSocket, type Take } from "./socket.ts";

const Opened = z.object({ url: z.url({ protocol: /^wss?$/ }) });
const callWithinMs = 10_000;
const firstPauseMs = 500;
const longestPauseMs = 30_000;
/** A connection that Slack ends sooner is not replaced without a pause. */
const shortLifeMs = 1_000;

/**
 * Returns when the connection breaks or the lease's signal aborts. Throws AccountRejectedError when Slack refuses a token or socket mode is
 * switched off, and any other error when no connection can be opened.
 */
export async function holdConnection(
  app: SlackApp,
  appCall: Call,
  host: ChannelHost,
  lease: LeaseRef,
  take: Take,
): Promise<void> {
  const { signal } = lease;
  const me = required(await app.identify(withTimeout(signal, callWithinMs)));
  const open = async (): Promise<SlackSocket> => {
    const answer = await appCall("apps.connections.open", {}, Opened, withTimeout(signal, callWithinMs));
    if (answer.kind === "refused" && answer.status === 429) {
      await delay(answer.retryAfterMs ?? firstPauseMs, undefined, { signal }).catch(() => undefined);
    }
    const socket = await SlackSocket.open(required(answer).url, host, take, signal);
    host.report({ state: "connected", as: `@${me.user} (${me.team})` });
    return socket;
  };
  const aborted = Promise.withResolvers<"aborted">();
  signal.addEventListener("abort", () => aborted.resolve("aborted"), { once: true });
  if (signal.aborted) return;

  let socket = await open();
  let openedMs = performance.now();
  for (;;) {
    const over = socket.closed.then(() => "closed" as const);
    const what = await Promise.race([over, aborted.promise, socket.leaving.then((reason) => ({ reason }))]);
    if (what === "aborted") await socket.close();
    if (typeof what === "string") return;
    if (what.reason === "link_disabled") {
      await socket.close();
      throw new AccountRejectedError("Socket Mode is switched off: enable it under Socket Mode in the app's settings");
    }
    if (performance.now() - openedMs < shortLifeMs) {
      await delay(firstPauseMs, undefined, { signal }).catch(() => undefined);
    }
    const next = await openBefore(socket.closed, open, signal);
    if (next === null) return;
    await socket.close();
    socket = next;
    openedMs = performance.now();
  }
}

/** Opens the next connection, with pauses between failures; null when the old one closed meanwhile or the lease ended. */
async function openBefore(
  closed: Promise<void>,
  open: () => Promise<SlackSocket>,
  signal: AbortSignal,
): Promise<SlackSocket | null> {
  const ended = new AbortController();
  void closed.then(() => ended.abort());
  const over = AbortSignal.any([signal, ended.signal]);
  for (let pauseMs = firstPauseMs; !over.aborted; pauseMs = Math.min(pauseMs * 2, longestPauseMs)) {
    try {
      return await open();
    } catch (error) {
      if (error instanceof AccountRejectedError) throw error;
      await delay(pauseMs, undefined, { signal: over }).catch(() => undefined);
    }
  }
  return null;
}

/** The result of a call without which there is no connection. Throws as `resultOf`. */
export function required<Result>(answer: Answer<Result>): Result {
  return resultOf(answer, "Slack");
}
