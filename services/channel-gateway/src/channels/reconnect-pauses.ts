// The pauses between the connections of an account. Pure.

/** Pauses after failed connections, doubled from `first` up to `last`. */
const backoffMs = { first: 250, last: 15_000 };
/** Pause after the platform has refused the credentials. */
const refusedPauseMs = 5 * 60_000;
/** After a connection that lasted longer than this, the backoff starts again from `first`. */
const goodConnectionMs = 30_000;

export class ReconnectPauses {
  #nextMs = backoffMs.first;

  /**
   * The pause after a connection that lasted `connectedMs`, in milliseconds. `isRefused`: the platform refused the credentials, even if only at
   * the end of a long connection. The backoff starts from `first` after such a pause.
   */
  after(connectedMs: number, isRefused: boolean): number {
    if (isRefused || connectedMs > goodConnectionMs) this.#nextMs = backoffMs.first;
    if (isRefused) return refusedPauseMs;
    const pauseMs = this.#nextMs;
    this.#nextMs = Math.min(pauseMs * 2, backoffMs.last);
    return pauseMs;
  }
}
