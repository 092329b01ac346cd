// Which platforms there are: the one place that knows their adapters. Settings and secrets go in, accounts come out.
import { errorMessage } from "@parley/contracts";
import { ConfigError } from "@parley/chassis";
import type { ParleySettings } from "@parley/contracts";
import type { ChannelAccount } from "../accounts.ts";
import { createIrc } from "./irc/index.ts";
import { createTelegram } from "./telegram/index.ts";

/** The accounts that the settings name. Throws ConfigError that names what is missing or wrong. */
export function createAccounts(settings: ParleySettings, secrets: ReadonlyMap<string, string>): ChannelAccount[] {
  const { telegram, irc } = settings.channels;
  return [
    ...Object.entries(telegram).map(([account, each]) => {
      const where = `[channels.telegram.${account}]`;
      const token = secretOf(secrets, each.token_env, `${where} token_env`);
      const webhookSecret =
        each.webhook_secret_env === undefined
          ? {}
          : { webhookSecret: secretOf(secrets, each.webhook_secret_env, `${where} webhook_secret_env`) };
      return { adapter: named(where, () => createTelegram(account, each, { token, ...webhookSecret })), people: each };
    }),
    ...Object.entries(irc).map(([account, each]) => {
      const where = `[channels.irc.${account}]`;
      const password =
        each.password_env === undefined
          ? {}
          : { password: secretOf(secrets, each.password_env, `${where} password_env`) };
      return { adapter: named(where, () => createIrc(account, each, password)), people: each };
    }),
  ];
}

function secretOf(secrets: ReadonlyMap<string, string>, name: string, where: string): string {
  const secret = secrets.get(name);
  if (secret === undefined) throw new ConfigError(`${where}: the environment has no ${name}; set it to the secret`);
  return secret;
}

/** What an adapter has against its settings is a mistake in the configuration. */
function named<T>(where: string, create: () => T): T {
  try {
    return create();
  } catch (error) {
    throw new ConfigError(`${where} ${errorMessage(error)}`);
  }
}
