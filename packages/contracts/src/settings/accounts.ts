// Through which accounts something can be sent; pure.
import type { ParleySettings } from "./parley.ts";

/** `channel:account`, sorted: every `[channels.<channel>.<account>]` there is. */
export function accountsOf({ channels }: Pick<ParleySettings, "channels">): string[] {
  return Object.entries(channels)
    .flatMap(([channel, accounts]) => Object.keys(accounts).map((account) => `${channel}:${account}`))
    .toSorted();
}

export function hasAccount(
  settings: Pick<ParleySettings, "channels">,
  { channel, account }: { channel: string; account: string },
): boolean {
  return accountsOf(settings).includes(`${channel}:${account}`);
}
