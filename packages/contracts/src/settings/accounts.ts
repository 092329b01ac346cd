// The configured accounts. Pure.
import type { ParleySettings } from "./parley.ts";

/** All `[channels.<channel>.<account>]` as `channel:account`, sorted. */
export function accountsOf({ channels }: Pick<ParleySettings, "channels">): string[] {
  return Object.entries(channels)
    .flatMap(([channel, accounts]) => Object.keys(accounts).map((account) => `${channel}:${account}`))
    .toSorted();
}
