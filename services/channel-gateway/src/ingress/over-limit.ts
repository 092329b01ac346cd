// The refusal of a message whose sender is over a limit.
import type { store } from "@parley/contracts";

/** Nothing was stored. On a channel the store tells the sender, once in the limit's window; callers of the API receive the text. */
export class OverLimitError extends Error {
  override readonly name = "OverLimitError";
  readonly retryAfterSeconds: number;

  constructor({ text, retryAfterMs }: store.OverLimit) {
    super(text);
    this.retryAfterSeconds = Math.ceil(retryAfterMs / 1_000);
  }
}
