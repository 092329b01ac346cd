// Accounts that stop working while Parley runs, and that work again: told once in the terminal of `npm start`.

import { setTimeout as delay } from "node:timers/promises";

import { z } from "zod";

const everyMs = 15_000;
/** Looks in a row that find a failure before it is told: a connection that is lost for a moment is no news. */
const looksBeforeNews = 2;

const Accounts = z.object({
  accounts: z.array(
    z.object({ channel: z.string(), account: z.string(), state: z.string(), reason: z.string().nullable() }),
  ),
});
type Account = z.infer<typeof Accounts>["accounts"][number];

/** How many looks in a row have found the account failing, by name. */
type Failures = ReadonlyMap<string, number>;

/** What a look at the accounts tells after those before it. */
export function channelNews(before: Failures, accounts: readonly Account[]): { failures: Failures; news: string[] } {
  const failures = new Map<string, number>();
  const news: string[] = [];
  for (const { channel, account, state, reason } of accounts) {
    const name = `${channel}:${account}`;
    const looks = before.get(name) ?? 0;
    if (state === "failing" || state === "disabled") {
      failures.set(name, looks + 1);
      if (looks + 1 === looksBeforeNews) {
        news.push(`${name} does not work: ${reason ?? state}. See npx parley channels list`);
      }
    } else if (state === "standby") {
      // Another gateway takes over; it has not tried yet.
      if (looks > 0) failures.set(name, looks);
    } else if (looks >= looksBeforeNews && state !== "paused") news.push(`${name} works again`);
  }
  return { failures, news };
}

/** Tells the news until `signal` aborts. Failures of the first look were printed by the start. */
export async function watchChannels(
  cluster: { httpUrl: string; token: string },
  tell: (line: string) => void,
  signal: AbortSignal,
): Promise<void> {
  let accounts = await look(cluster, []);
  let failures: Failures = new Map(
    [...channelNews(new Map(), accounts).failures.keys()].map((name) => [name, looksBeforeNews]),
  );
  while (!signal.aborted) {
    await delay(everyMs, undefined, { signal, ref: false }).catch(() => undefined);
    if (signal.aborted) return;
    accounts = await look(cluster, accounts);
    const next = channelNews(failures, accounts);
    failures = next.failures;
    for (const line of next.news) tell(line);
  }
}

/** The accounts; those of the look before if the gateway does not answer. */
async function look(
  { httpUrl, token }: { httpUrl: string; token: string },
  before: readonly Account[],
): Promise<readonly Account[]> {
  try {
    const response = await fetch(`${httpUrl}/api/channels`, {
      headers: { authorization: `Bearer ${token}` },
      signal: AbortSignal.timeout(everyMs),
    });
    return Accounts.parse(await response.json()).accounts;
  } catch {
    return before;
  }
}
