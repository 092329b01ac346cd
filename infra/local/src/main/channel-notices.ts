// Prints a notice in the terminal of `npm start` when an account stops working while Parley runs, and when it works again.

import { setTimeout as delay } from "node:timers/promises";

import { z } from "zod";

const pollIntervalMs = 15_000;
/** A notice needs this many consecutive polls that find the account failing, so that a brief loss of the connection causes none. */
const pollsBeforeNotice = 2;

const Accounts = z.object({
  accounts: z.array(
    z.object({ channel: z.string(), account: z.string(), state: z.string(), reason: z.string().nullable() }),
  ),
});
type Account = z.infer<typeof Accounts>["accounts"][number];

/** Consecutive polls that have found the account failing, by name. */
type Failures = ReadonlyMap<string, number>;

/** The notices of one poll, and the failures to pass to the next one. Pure. */
export function channelNotices(
  before: Failures,
  accounts: readonly Account[],
): { failures: Failures; notices: string[] } {
  const failures = new Map<string, number>();
  const notices: string[] = [];
  for (const { channel, account, state, reason } of accounts) {
    const name = `${channel}:${account}`;
    const polls = before.get(name) ?? 0;
    if (state === "failing" || state === "disabled") {
      failures.set(name, polls + 1);
      if (polls + 1 === pollsBeforeNotice) {
        notices.push(`${name} does not work: ${reason ?? state}. See npx parley channels list`);
      }
    } else if (state === "standby") {
      // Another gateway takes over; it has not tried yet.
      if (polls > 0) failures.set(name, polls);
    } else if (polls >= pollsBeforeNotice && state !== "paused") notices.push(`${name} works again`);
  }
  return { failures, notices };
}

/** Prints notices until `signal` aborts. `npm start` has already printed the failures that the first poll finds. */
export async function watchChannels(
  cluster: { httpUrl: string; token: string },
  print: (line: string) => void,
  signal: AbortSignal,
): Promise<void> {
  let accounts = await poll(cluster, []);
  let failures: Failures = new Map(
    [...channelNotices(new Map(), accounts).failures.keys()].map((name) => [name, pollsBeforeNotice]),
  );
  while (!signal.aborted) {
    await delay(pollIntervalMs, undefined, { signal, ref: false }).catch(() => undefined);
    if (signal.aborted) return;
    accounts = await poll(cluster, accounts);
    const next = channelNotices(failures, accounts);
    failures = next.failures;
    for (const line of next.notices) print(line);
  }
}

/** The accounts; those of the previous poll if the gateway does not respond. */
async function poll(
  { httpUrl, token }: { httpUrl: string; token: string },
  before: readonly Account[],
): Promise<readonly Account[]> {
  try {
    const response = await fetch(`${httpUrl}/api/channels`, {
      headers: { authorization: `Bearer ${token}` },
      signal: AbortSignal.timeout(pollIntervalMs),
    });
    return Accounts.parse(await response.json()).accounts;
  } catch {
    return before;
  }
}
