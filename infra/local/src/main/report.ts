// Prints a failure: what failed and what to do next. A known error is printed without its stack.

import { knownSystemError, LocalError } from "../errors.ts";

/** Writes an error to standard error. */
export function report(failure: unknown): void {
  const error = knownSystemError(failure, "the data folder") ?? failure;
  if (error instanceof LocalError) {
    console.error(error.message);
    if (error.fix !== null) console.error(error.fix);
  } else {
    console.error(error);
  }
}
