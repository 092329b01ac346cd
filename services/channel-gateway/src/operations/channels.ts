// Accounts of channels: their state across replicas, tests of credentials, pauses.
import {
  accountReports,
  channelEntries,
  errorMessage,
  neededSecrets,
  operations,
  settingNamesOf,
  store,
} from "@parley/contracts";
import { implement, OperationError, type AccountRef } from "./operation.ts";

/** How long replicas have to report their accounts. */
const gatherMs = 250;
/** A platform that takes longer counts as unreachable. */
const testMs = 5_000;

type Report = Pick<operations.ChannelAccountStatus, "channel" | "account" | "state" | "as" | "reason" | "since">;

/** From the best to the worst to show when replicas report different states: a connected replica is the owner. */
const order = ["connected", "disabled", "failing", "listening", "standby", "paused", "unknown"];

/** The report that describes the account best. Pure. */
export function bestReport(reports: readonly Report[], of: Pick<Report, "channel" | "account">): Report {
  const own = reports.filter((report) => isSame(report, of));
  const [best] = own.toSorted((a, b) => order.indexOf(a.state) - order.indexOf(b.state));
  return best ?? { ...of, state: "unknown", as: null, reason: null, since: null };
}

const isSame = (one: AccountRef, other: AccountRef) => one.channel === other.channel && one.account === other.account;

export const channelOperations = [
  implement(operations.channelsKinds, () => ({
    kinds: channelEntries.map((entry) => ({
      name: entry.name,
      title: entry.title,
      ...settingNamesOf(entry),
      secrets: entry.secrets.map(({ setting, purpose }) => ({
        setting,
        purpose,
        required: neededSecrets(entry, {}).some((needed) => needed.setting === setting),
      })),
      setUp: [...entry.setUp],
    })),
  })),

  implement(operations.channelsAdd, async (input, { deps, actor }) => {
    const { channel, account } = input;
    return { channel, account, ...(await deps.channels.add(input, actor)) };
  }),

  implement(operations.channelsRemove, async (account, { deps, actor }) => {
    await deps.channels.remove(account, actor);
    return { removed: true };
  }),

  implement(operations.channelsList, async (_input, { deps: { bus, channels } }) => {
    const accounts = channels.list();
    const [reports, status] = await Promise.all([
      bus.gather(accountReports, {}, gatherMs),
      bus.request(store.accountStatus, { accounts: accounts.map(({ channel, account }) => ({ channel, account })) }),
    ]);
    const all = reports.flatMap(({ accounts: reported }) => reported);
    return {
      accounts: status.accounts.map((each) => {
        const { state, as, reason, since } = bestReport(all, each);
        const isPaused = each.paused !== null && state !== "disabled";
        const origin = accounts.find((listed) => isSame(listed, each))?.origin ?? "added";
        return {
          ...each,
          origin,
          state: isPaused ? ("paused" as const) : state,
          as: isPaused ? null : as,
          reason,
          since,
        };
      }),
    };
  }),

  implement(operations.channelsTest, async (account, { deps }) => {
    try {
      deps.channels.require(account);
      const found = await deps.channels.check(account, AbortSignal.timeout(testMs));
      if (found === null) return { ok: true, text: "this channel has no test; see the state of the account" };
      return { ok: true, text: `the credentials are valid: ${found.as}` };
    } catch (error) {
      if (error instanceof OperationError && error.code === "no_such_account") throw error;
      return { ok: false, text: errorMessage(error) };
    }
  }),

  implement(operations.channelsPause, async (account, { deps, actor: by }) => {
    deps.channels.require(account);
    await deps.bus.request(store.accountPause, { ...account, paused: true, by });
    return { paused: true };
  }),

  implement(operations.channelsResume, async (account, { deps, actor: by }) => {
    deps.channels.require(account);
    await deps.bus.request(store.accountPause, { ...account, paused: false, by });
    return { paused: false };
  }),
];
