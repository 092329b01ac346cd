// How a failure is said to a person: what happened, and what to do, without a stack where the error is one we know.

import { LocalError } from "../errors.ts";

/** Writes an error to standard error. */
export function report(error: unknown): void {
  if (error instanceof LocalError) {
    console.error(error.message);
    if (error.fix !== null) console.error(error.fix);
  } else {
    console.error(error);
  }
}
