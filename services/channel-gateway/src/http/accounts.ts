// Whether something can be sent through an account.
import type { HttpDeps } from "./deps.ts";
import { HttpError } from "./errors.ts";

/** Throws HttpError where nobody sends for it: what is kept for it would wait until it is dropped. */
export function mustHaveAccount(
  { adapters }: Pick<HttpDeps, "adapters">,
  { channel, account }: { channel: string; account: string },
): void {
  if (adapters.some(({ adapter }) => adapter.channel === channel && adapter.account === account)) return;
  throw new HttpError(404, "no_such_account", `there is no [channels.${channel}.${account}]`);
}
