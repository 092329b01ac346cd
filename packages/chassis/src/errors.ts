// The error for an invalid configuration. It ends the process with its own exit code.

/** EX_CONFIG of sysexits.h: the supervisor does not restart a service after this exit code. */
export const configExitCode = 78;

/** Thrown while reading the configuration; the message names the problem and the fix. */
export class ConfigError extends Error {
  override readonly name = "ConfigError";
}
