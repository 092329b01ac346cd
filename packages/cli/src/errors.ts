// Errors that a person can act on: what failed and how to fix it, without a stack trace.

import { exitCodes } from "./exit-codes.ts";

export class CliError extends Error {
  override readonly name: string = "CliError";
  readonly exitCode: number;
  /** How to fix it, in one line; null when the message is enough. */
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
