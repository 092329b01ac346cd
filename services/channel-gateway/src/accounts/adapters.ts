// Creates the configured accounts from settings and secrets, and loads their adapters. It knows channels only by their entries.
import {
  channelEntries,
  errorMessage,
  secretsOf,
  type ChannelEntry,
  type ParleySettings,
  type PeoplePolicy,
} from "@parley/contracts";
import { OperationError, type ChannelDirectory } from "../operations/operation.ts";
import type { Disabled } from "../delivery/account-states.ts";
import type { ChannelAccount } from "./accounts.ts";
import { loadAdapter } from "../channels/load.ts";

export interface ConfiguredAccounts {
  accounts: ChannelAccount[];
  /** Accounts whose secret is missing or whose settings the adapter refuses. */
  disabled: Disabled[];
}

/** Creates the configured accounts. An account that fails is disabled with its reason and does not affect the others. */
export async function createAccounts(
  { channels }: Pick<ParleySettings, "channels">,
  secrets: ReadonlyMap<string, string>,
): Promise<ConfiguredAccounts> {
  const made: ConfiguredAccounts = { accounts: [], disabled: [] };
  for (const entry of channelEntries) {
    for (const [account, settings] of Object.entries(channels[entry.name] ?? {})) {
      try {
        made.accounts.push(await createAccount(entry, account, settings, secrets));
      } catch (error) {
        made.disabled.push({ name: `${entry.name}:${account}`, reason: errorMessage(error) });
      }
    }
  }
  return made;
}

async function createAccount(
  entry: ChannelEntry,
  account: string,
  settings: PeoplePolicy,
  secrets: ReadonlyMap<string, string>,
): Promise<ChannelAccount> {
  const values: Record<string, string> = {};
  for (const { setting, variable, purpose } of secretsOf(entry, settings)) {
    if (variable === undefined) continue;
    const value = secrets.get(variable);
    if (value === undefined) {
      throw new Error(
        `[channels.${entry.name}.${account}] ${setting}: the environment variable ${variable} is not set; set it to ${purpose}`,
      );
    }
    values[setting] = value;
  }
  const createAdapter = await loadAdapter(entry.name);
  return { adapter: createAdapter(account, settings, values), people: settings };
}

/** The accounts of this replica for operations. */
export function channelDirectory({
  accounts,
  disabled,
}: Readonly<{ accounts: readonly ChannelAccount[]; disabled: readonly Disabled[] }>): ChannelDirectory {
  return {
    list: () => [
      ...accounts.map(({ adapter: { channel, account } }) => ({ channel, account })),
      ...disabled.map(({ name }) => {
        const [channel = "", account = ""] = name.split(":");
        return { channel, account };
      }),
    ],
    async check(of, signal) {
      const found = accounts.find(({ adapter }) => adapter.channel === of.channel && adapter.account === of.account);
      return (await found?.adapter.check?.(signal)) ?? null;
    },
  };
}

/** Returns a check that throws OperationError when no adapter serves an account: a text for it would wait until it expires. */
export function accountCheck({
  accounts,
  disabled,
}: {
  accounts: readonly ChannelAccount[];
  disabled: readonly Disabled[];
}): (address: { channel: string; account: string }) => void {
  return ({ channel, account }) => {
    if (accounts.some(({ adapter }) => adapter.channel === channel && adapter.account === account)) return;
    const found = disabled.find(({ name }) => name === `${channel}:${account}`);
    if (found !== undefined) {
      throw new OperationError("account_disabled", `the account ${found.name} is disabled: ${found.reason}`);
    }
    throw new OperationError(
      "no_such_account",
      `account ${channel}:${account} is not configured; add [channels.${channel}.${account}] to parley.toml`,
    );
  };
}
