// The rates of a channel's entry in the form of the store's requests. Pure.
import type { SendRates } from "@parley/contracts";

export function ratesOf({ account, conversations }: SendRates) {
  return {
    ...(account === undefined ? {} : { account }),
    ...(conversations === undefined ? {} : { conversations: [...conversations] }),
  };
}
