// Checks of an account's settings that its schema cannot express.
import { isIP } from "node:net";

/** The platform cannot use the settings of an account, or they would be unsafe. */
export class AccountSettingsError extends Error {
  override readonly name = "AccountSettingsError";

  constructor(channel: string, account: string, problem: string) {
    super(`channels.${channel}.${account}: ${problem}`);
  }
}

export function isLoopback(host: string): boolean {
  return host === "localhost" || host === "::1" || host === "[::1]" || (isIP(host) === 4 && host.startsWith("127."));
}
