// The error that says: the configuration is wrong, and here is what to do. It ends the process with its own exit code.

/** sysexits.h EX_CONFIG: the supervisor does not restart a service that ends with it. */
export const configExitCode = 78;

/** Thrown while reading the configuration; the message says what is wrong and what to do. */
export class ConfigError extends Error {
  override readonly name = "ConfigError";
}
