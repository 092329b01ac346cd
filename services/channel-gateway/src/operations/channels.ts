// Accounts of channels: their state across replicas, tests of credentials, pauses.
import { accountReports, errorMessage, operations, store } from "@parley/contracts";
import { implement, OperationError } from "./operation.ts";

/** How long replicas have to report their accounts. */
const gatherMs = 250;
/** A platform that takes longer counts as unreachable. */
const testMs = 5_000;

type Report = Pick<operations.ChannelAccountStatus, "channel" | "account" | "state" | "as" | "reason" | "since">;

/** From the best to the worst to show when replicas report different states: a connected replica is the owner. */
const order = ["connected", "disabled", "failing", "listening", "standby", "paused", "unknown"];

/** The report that describes the account best. Pure. */
export function bestReport(reports: readonly Report[], of: Pick<Report, "channel" | "account">): Report {
  const own = reports.filter(({ channel, account }) => channel === of.channel && account === of.account);
  const [best] = own.toSorted((a, b) => order.indexOf(a.state) - order.indexOf(b.state));
  return best ?? { ...of, state: "unknown", as: null, reason: null, since: null };
}

export const channelOperations = [
  implement(operations.channelsList, async (_input, { deps: { bus, channels } }) => {
    const accounts = channels.list();
    const [reports, status] = await Promise.all([
      bus.gather(accountReports, {}, gatherMs),
      bus.request(store.accountStatus, { accounts }),
    ]);
    const all = reports.flatMap(({ accounts: reported }) => reported);
    return {
      accounts: status.accounts.map((each) => {
        const { state, as, reason, since } = bestReport(all, each);
        const isPaused = each.paused !== null && state !== "disabled";
        return { ...each, state: isPaused ? ("paused" as const) : state, as: isPaused ? null : as, reason, since };
      }),
    };
  }),

  implement(operations.channelsTest, async (account, { deps }) => {
    try {
      deps.requireAccount(account);
      const found = await deps.channels.check(account, AbortSignal.timeout(testMs));
      if (found === null) return { ok: true, text: "this channel has no test; see the state of the account" };
      return { ok: true, text: `the credentials are valid: ${found.as}` };
    } catch (error) {
      if (error instanceof OperationError && error.code === "no_such_account") throw error;
      return { ok: false, text: errorMessage(error) };
    }
  }),

  implement(operations.channelsPause, async (account, { deps, actor: by }) => {
    deps.requireAccount(account);
    await deps.bus.request(store.accountPause, { ...account, paused: true, by });
    return { paused: true };
  }),

  implement(operations.channelsResume, async (account, { deps, actor: by }) => {
    deps.requireAccount(account);
    await deps.bus.request(store.accountPause, { ...account, paused: false, by });
    return { paused: false };
  }),
];
