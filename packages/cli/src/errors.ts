// Failures a person can do something about: what happened, and the way out, without a stack.

import { exitCodes } from "./exit-codes.ts";

export class CliError extends Error {
  override readonly name: string = "CliError";
  readonly exitCode: number;
  /** What to do about it, one line; null when the message says it all. */
  readonly fix: string | null;

  constructor(message: string, options: { fix?: string; exitCode?: number; cause?: unknown } = {}) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause });
    this.exitCode = options.exitCode ?? exitCodes.error;
    this.fix = options.fix ?? null;
  }
}

/** The command line is wrong. */
export class UsageError extends CliError {
  constructor(message: string, fix?: string) {
    super(message, { exitCode: exitCodes.usage, ...(fix === undefined ? {} : { fix }) });
  }
}
