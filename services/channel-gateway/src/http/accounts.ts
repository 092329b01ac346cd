// Whether something can be sent through an account.
import type { HttpDeps } from "./deps.ts";
import { HttpError } from "./errors.ts";

/** Throws HttpError where nobody sends for it: what is kept for it would wait until it is dropped. */
export function mustHaveAccount(
  { adapters, disabled }: Pick<HttpDeps, "adapters" | "disabled">,
  { channel, account }: { channel: string; account: string },
): void {
  if (adapters.some(({ adapter }) => adapter.channel === channel && adapter.account === account)) return;
  const found = disabled.find(({ name }) => name === `${channel}:${account}`);
  if (found !== undefined) {
    throw new HttpError(503, "account_disabled", `the account ${found.name} is disabled: ${found.reason}`);
  }
  throw new HttpError(404, "no_such_account", `there is no [channels.${channel}.${account}]`);
}
