// How a failure is said to a person: what happened, and what to do, without a stack where the error is one we know.

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
