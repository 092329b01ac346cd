// The registry of platforms: creates the configured accounts from settings and secrets. No other file depends on the adapters.
import { errorMessage } from "@parley/contracts";
import type { ParleySettings } from "@parley/contracts";
import { OperationError } from "../operations/operation.ts";
import type { Disabled } from "../delivery/account-states.ts";
import type { ChannelAccount } from "./accounts.ts";
import { createIrc } from "../channels/irc/index.ts";
import { createTelegram } from "../channels/telegram/index.ts";

export interface ConfiguredAccounts {
  accounts: ChannelAccount[];
  /** Accounts whose secret is missing or whose settings the adapter refuses. */
  disabled: Disabled[];
}

/** Creates the configured accounts. An account that fails is disabled with its reason and does not affect the others. */
export function createAccounts(settings: ParleySettings, secrets: ReadonlyMap<string, string>): ConfiguredAccounts {
  const { telegram, irc } = settings.channels;
  const made: ConfiguredAccounts = { accounts: [], disabled: [] };
  const add = (name: string, create: () => ChannelAccount): void => {
    try {
      made.accounts.push(create());
    } catch (error) {
      made.disabled.push({ name, reason: errorMessage(error) });
    }
  };
  for (const [account, each] of Object.entries(telegram)) {
    const where = `[channels.telegram.${account}]`;
    add(`telegram:${account}`, () => {
      const token = secretOf(secrets, each.token_env, `${where} token_env`);
      const webhookSecret =
        each.webhook_secret_env === undefined
          ? {}
          : { webhookSecret: secretOf(secrets, each.webhook_secret_env, `${where} webhook_secret_env`) };
      return { adapter: createTelegram(account, each, { token, ...webhookSecret }), people: each };
    });
  }
  for (const [account, each] of Object.entries(irc)) {
    add(`irc:${account}`, () => {
      const where = `[channels.irc.${account}] password_env`;
      const password = each.password_env === undefined ? {} : { password: secretOf(secrets, each.password_env, where) };
      return { adapter: createIrc(account, each, password), people: each };
    });
  }
  return made;
}

/** Throws an Error that names the missing variable. */
function secretOf(secrets: ReadonlyMap<string, string>, name: string, where: string): string {
  const secret = secrets.get(name);
  if (secret === undefined)
    throw new Error(`${where}: the environment variable ${name} is not set; set it to the secret`);
  return secret;
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
