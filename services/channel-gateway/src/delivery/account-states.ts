// The states of accounts, webhooks and observers, for the health report and the log.
import type { Logger } from "@parley/chassis";
import type { accountReports, OutputOf } from "@parley/contracts";

/** A configured account, webhook or observer that cannot be used until the configuration changes. */
export interface Disabled {
  /** For example `<channel>:<account>`, `hook:build`, `observer:0`. */
  name: string;
  reason: string;
}

export type AccountState =
  /** Connected; `as` is the account's name on the platform. */
  | { state: "connected"; as: string }
  /** The platform calls this gateway. */
  | { state: "listening" }
  /** This replica does not hold the lease, or has not connected yet. */
  | { state: "standby" }
  /** Not connected at the moment; retried. */
  | { state: "failing"; reason: string }
  /** Unusable until the configuration changes. */
  | { state: "disabled"; reason: string };

export class AccountStates {
  readonly #log: Pick<Logger, "error" | "warn">;
  readonly #states = new Map<string, AccountState & { since: string }>();
  /** The reasons that were logged, by account, until it works again. */
  readonly #logged = new Map<string, string>();

  constructor(log: Pick<Logger, "error" | "warn">) {
    this.#log = log;
  }

  /** Sets the state of an account; a new failure reason is logged once, also when the account was standby in between. */
  set(name: string, next: AccountState): void {
    const before = this.#states.get(name);
    const isSame = before !== undefined && describe(before) === describe(next);
    this.#states.set(name, { ...next, since: isSame ? before.since : new Date().toISOString() });
    if (next.state === "connected" || next.state === "listening") this.#logged.delete(name);
    if (!("reason" in next) || this.#logged.get(name) === next.reason) return;
    this.#logged.set(name, next.reason);
    this.#log[next.state === "disabled" ? "error" : "warn"](
      { account: name, reason: next.reason },
      `account ${next.state}`,
    );
  }

  /** Forgets an account that was removed. */
  forget(name: string): void {
    this.#states.delete(name);
    this.#logged.delete(name);
  }

  /** The accounts of these channels, for operators. */
  reports(isChannel: (name: string) => boolean): OutputOf<typeof accountReports>["accounts"] {
    return [...this.#states].flatMap(([name, each]) => {
      const [channel = "", account = ""] = name.split(":");
      if (!isChannel(channel)) return [];
      const { state, since } = each;
      const as = "as" in each ? each.as : null;
      return [{ channel, account, state, since, as, reason: "reason" in each ? each.reason : null }];
    });
  }

  /** How many accounts of each channel have each state, for the metrics. */
  counts(): { channel: string; state: AccountState["state"]; accounts: number }[] {
    const groups = Map.groupBy(this.#states, ([name, { state }]) => `${name.split(":", 1)[0] ?? ""} ${state}`);
    return [...groups].map(([key, accounts]) => {
      const [channel = "", state] = key.split(" ");
      return { channel, state: state as AccountState["state"], accounts: accounts.length };
    });
  }

  /** The fields of the health report; empty without accounts. */
  details(): { channels?: string; channelsDown?: number; channelProblems?: string } {
    if (this.#states.size === 0) return {};
    const texts = [...this.#states].map(([name, each]) => `${name} ${describe(each)}`);
    const down = [...this.#states].filter(([, each]) => "reason" in each);
    if (down.length === 0) return { channels: texts.join("; "), channelsDown: 0 };
    return {
      channels: texts.join("; "),
      channelsDown: down.length,
      channelProblems: down.map(([name, each]) => `${name} ${describe(each)}`).join("; "),
    };
  }
}

function describe(account: AccountState): string {
  if ("reason" in account) return `${account.state}: ${account.reason}`;
  return account.state === "connected" ? `connected as ${account.as}` : account.state;
}
