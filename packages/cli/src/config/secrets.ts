// Finds the environment variables that parley.toml names and that are missing. Pure; their values are never printed.

import type { ParleySettings } from "@parley/contracts";

export interface NamedSecret {
  readonly name: string;
  /** The table that names it. */
  readonly wantedBy: string;
}

function namedSecrets({ channels, webhooks, observers }: ParleySettings): NamedSecret[] {
  const named: NamedSecret[] = [];
  const add = (name: string | undefined, wantedBy: string): void => {
    if (name !== undefined) named.push({ name, wantedBy });
  };
  for (const [account, telegram] of Object.entries(channels.telegram)) {
    add(telegram.token_env, `[channels.telegram.${account}]`);
    add(telegram.webhook_secret_env, `[channels.telegram.${account}]`);
  }
  for (const [account, irc] of Object.entries(channels.irc)) add(irc.password_env, `[channels.irc.${account}]`);
  for (const [id, hook] of Object.entries(webhooks)) add(hook.secret_env, `[webhooks.${id}]`);
  for (const observer of observers) add(observer.token_env, "[[observers]]");
  return named;
}

export function missingSecrets(
  settings: ParleySettings,
  env: Readonly<Record<string, string | undefined>>,
): NamedSecret[] {
  return namedSecrets(settings).filter(({ name }) => env[name] === undefined || env[name] === "");
}
