// For adapters that check what the schema of an account's settings cannot express: the error to throw, and a check that several share.
import { isIP } from "node:net";

/** The platform cannot use the settings of an account, or they would be unsafe. */
export class AccountSettingsError extends Error {
  override readonly name = "AccountSettingsError";

  constructor(channel: string, account: string, problem: string) {
    super(`channels.${channel}.${account}: ${problem}`);
  }
}

/** Whether a host name or IP address of the settings is this machine. Does not resolve names. */
export function isLoopback(host: string): boolean {
  return host === "localhost" || host === "::1" || host === "[::1]" || (isIP(host) === 4 && host.startsWith("127."));
}
