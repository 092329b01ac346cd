// The state of a session while this leader works on it.
import type { store, TrustLevel } from "@parley/contracts";

export interface Active {
  /** Woken while working: input may have arrived since the last check. */
  again: boolean;
  turnId: string | undefined;
  /** Of the running turn: only input of equal trust joins it. */
  trust: TrustLevel | undefined;
  stop: AbortController;
  /** Input has arrived since the running turn last checked. */
  input: boolean;
  /** A turn that the store started for this leader. */
  started: store.StartedTurn | undefined;
  done: Promise<void>;
}

/** What a wake-up reports in addition to the session. */
export interface WakeUp {
  /** The trust of input that may join the running turn. */
  steers?: TrustLevel | undefined;
  started?: store.StartedTurn | undefined;
}
