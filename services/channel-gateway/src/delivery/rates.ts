// The rates of a channel's entry in the form of the store's requests. Pure.
import type { SendRates } from "@parley/contracts";

/** The store's form of rates: absent limits are left out. */
interface StoredRates {
  account?: NonNullable<SendRates["account"]>;
  conversations?: NonNullable<SendRates["conversations"]>[number][];
}

export function ratesOf({ account, conversations }: SendRates): StoredRates {
  return {
    ...(account === undefined ? {} : { account }),
    ...(conversations === undefined ? {} : { conversations: [...conversations] }),
  };
}
