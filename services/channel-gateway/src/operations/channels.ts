// Accounts of channels: their state across replicas, tests of credentials, pauses.
import { gatherUntil } from "@parley/bus";
import {
  accountLogs,
  accountReports,
  channelEntries,
  errorMessage,
  healthReports,
  neededSecrets,
  operations,
  settingNamesOf,
  store,
} from "@parley/contracts";
import { implement, OperationError, type AccountRef } from "./operation.ts";

/** How long replicas have to answer. */
const gatherMs = 250;
/** How long they have to report their accounts, again and again while the report of an account is missing. */
const reportMs = [gatherMs, 500, 1_000, 2_000];
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

/** The reports of all accounts: a replica that is slow to answer has more time. `gather`: the reports that arrive within `waitMs`. */
export async function gatherReports(
  gather: (waitMs: number) => Promise<Report[]>,
  status: Promise<readonly (AccountRef & { owner: string | null })[]>,
): Promise<Report[]> {
  // A failure ends the gathering; the caller, who awaits `status` too, reports it.
  const accounts = status.catch(() => []);
  return gatherUntil(reportMs, gather, async (reports) =>
    (await accounts).every((account) => {
      const { state } = bestReport(reports, account);
      // Another replica has the connection: its own report is missing.
      return state !== "unknown" && (state !== "standby" || account.owner === null);
    }),
  );
}

const isSame = (one: AccountRef, other: AccountRef) => one.channel === other.channel && one.account === other.account;

function accountText({ channel, account, state, owner, waiting, reason }: operations.ChannelAccountStatus): string {
  const more = [
    ...(owner === null ? [] : [`on ${owner.split("/", 1)[0]}`]),
    ...(waiting === 0 ? [] : [`${waiting} texts wait`]),
    ...(reason === null ? [] : [reason]),
  ];
  return [`${channel}:${account}  ${state}`, ...more].join(", ");
}

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

  implement(
    operations.channelsList,
    async (_input, { deps: { bus, channels } }) => {
      const accounts = channels.list();
      const refs = accounts.map(({ channel, account }) => ({ channel, account }));
      const requested = bus.request(store.accountStatus, { accounts: refs });
      const [all, status] = await Promise.all([
        gatherReports(
          async (waitMs) => (await bus.gather(accountReports, {}, waitMs)).flatMap((reply) => reply.accounts),
          requested.then((reply) => reply.accounts),
        ),
        requested,
      ]);
      return {
        accounts: status.accounts.map(({ waitingReason, ...each }) => {
          const { state, as, reason, since } = bestReport(all, each);
          const isPaused = each.paused !== null && state !== "disabled";
          const origin = accounts.find((listed) => isSame(listed, each))?.origin ?? "added";
          return {
            ...each,
            origin,
            state: isPaused ? ("paused" as const) : state,
            as: isPaused ? null : as,
            reason: reason ?? waitingReason,
            since,
          };
        }),
      };
    },
    ({ accounts }) => accounts.map(accountText).join("\n") || "There is no account.",
  ),

  implement(operations.channelsTest, async (account, { deps }) => {
    try {
      deps.channels.require(account);
      const found = await deps.channels.check(account, AbortSignal.timeout(testMs));
      if (found === null)
        return { ok: true, text: "there is nothing to test without the connection; see the state of the account" };
      return { ok: true, text: `the credentials are valid: ${found.as}` };
    } catch (error) {
      if (error instanceof OperationError && error.code === "no_such_account") throw error;
      return { ok: false, text: errorMessage(error) };
    }
  }),

  implement(operations.channelsLogs, async ({ level, since, limit, ...account }, { deps: { bus, channels } }) => {
    // A disabled account has the lines that say why.
    if (!channels.list().some((listed) => isSame(listed, account))) channels.require(account);
    const from = since === undefined ? {} : { since: new Date(since).toISOString() };
    const replies = await bus.gather(accountLogs, { ...account, ...from, level, limit }, gatherMs);
    const lines = replies.flatMap((reply) => reply.lines).toSorted((a, b) => (a.at < b.at ? -1 : a.at > b.at ? 1 : 0));
    return { lines: lines.slice(-limit) };
  }),

  implement(operations.channelsPause, async (account, { deps, actor: by }) => {
    deps.channels.require(account);
    await deps.bus.request(store.accountPause, { ...account, paused: true, by });
    return { paused: true };
  }),

  implement(
    operations.channelsMove,
    async ({ replica, ...account }, { deps: { bus, channels }, actor: by }) => {
      channels.require(account);
      if (!channels.hasConnection(account))
        throw new OperationError("conflict", "the platform calls any gateway: this account has no connection to move");
      if (replica !== null) {
        const gather = (waitMs: number) => bus.gather(healthReports["channel-gateway"], {}, waitMs);
        const isThere = (gateways: readonly { replica: string }[]) => gateways.some((each) => each.replica === replica);
        const gateways = await gatherUntil(reportMs, gather, isThere);
        const names = [...new Set(gateways.map((each) => each.replica))].sort();
        if (!isThere(gateways))
          throw new OperationError("not_found", `there is no gateway "${replica}"; there are: ${names.join(", ")}`);
      }
      await bus.request(store.accountMove, { ...account, replica, by });
      const { accounts } = await bus.request(store.accountStatus, { accounts: [account] });
      return { movedTo: replica, owner: accounts[0]?.owner ?? null };
    },
    ({ movedTo }) =>
      movedTo === null ? "The gateways choose who holds it." : `It moves to ${movedTo} within seconds.`,
  ),

  implement(operations.channelsResume, async (account, { deps, actor: by }) => {
    deps.channels.require(account);
    await deps.bus.request(store.accountPause, { ...account, paused: false, by });
    return { paused: false };
  }),
];
