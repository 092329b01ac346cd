// Errors that cross the bus. Errors that stay inside a process have their own classes.
import { z } from "zod";

export const wireErrorCodes = [
  /** The writer's epoch is not the current one: another agent-core leads. The caller must exit. */
  "STALE_EPOCH",
  /** The caller does not hold the lease it names, or holds an older fence of it. It must close that connection. */
  "FENCED",
  /** The payload does not match the contract. `message` names the path and the problem. Never retried. */
  "INVALID_INPUT",
  "NOT_FOUND",
  /** The grant or permit of the request is forged, expired, or does not include the right. Never retried. */
  "FORBIDDEN",
  /** The request contradicts what is stored, e.g. a turn that has already ended. Never retried. */
  "CONFLICT",
  /** The payload exceeds the bus's limit; use paging or `store.blob`. */
  "TOO_LARGE",
  /** No replica serves the subject, or a backing server is unavailable. Idempotent requests are retried until the deadline. */
  "UNAVAILABLE",
  /** No reply within the deadline; the outcome is unknown. */
  "TIMEOUT",
  "CANCELLED",
  /** A bug in the serving process; its log has details under the same trace. */
  "INTERNAL",
] as const;
export type WireErrorCode = (typeof wireErrorCodes)[number];

export const WireErrorSchema = z.object({
  code: z.enum(wireErrorCodes),
  message: z.string(),
});
export type WireErrorData = z.infer<typeof WireErrorSchema>;

/** An error with a code that the receiver can switch on. */
export class WireError extends Error {
  override readonly name: string = "WireError";
  readonly code: WireErrorCode;

  constructor(code: WireErrorCode, message: string, options?: { cause?: unknown }) {
    super(message, options);
    this.code = code;
  }

  toData(): WireErrorData {
    return { code: this.code, message: this.message };
  }

  /** True for a WireError with one of the codes (any code when none is given). */
  static is(error: unknown, ...codes: WireErrorCode[]): error is WireError {
    return error instanceof WireError && (codes.length === 0 || codes.includes(error.code));
  }
}
