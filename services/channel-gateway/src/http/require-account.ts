// Checks that an account can send.
import type { HttpDeps } from "./deps.ts";
import { HttpError } from "./errors.ts";

/** Throws HttpError when no adapter serves the account; a text for it would wait in the outbox until it expires. */
export function requireAccount(
  { adapters, disabled }: Pick<HttpDeps, "adapters" | "disabled">,
  { channel, account }: { channel: string; account: string },
): void {
  if (adapters.some(({ adapter }) => adapter.channel === channel && adapter.account === account)) return;
  const found = disabled.find(({ name }) => name === `${channel}:${account}`);
  if (found !== undefined) {
    throw new HttpError(503, "account_disabled", `the account ${found.name} is disabled: ${found.reason}`);
  }
  throw new HttpError(
    404,
    "no_such_account",
    `account ${channel}:${account} is not configured; add [channels.${channel}.${account}] to parley.toml`,
  );
}
