// What callers of the bus pass and receive.

/** The values of a subject's placeholders. */
export type SubjectParams = Record<string, string>;

export interface RequestOptions {
  params?: SubjectParams;
  /** Deadline including retries. Default 10,000. */
  timeoutMs?: number;
  /**
   * Time after which an idempotent request is sent again. Default: where any replica may answer, from the durations of earlier replies,
   * 200 to 2,500, and longer after each attempt without a reply; otherwise 2,500.
   */
  attemptMs?: number;
  /** No retries: without a responder the request fails with UNAVAILABLE immediately, for callers that must check state before a retry. */
  once?: boolean;
  signal?: AbortSignal;
}

export interface Served {
  /**
   * Stops taking new requests; running handlers continue. Requests that the server delivers before it processes this are refused with
   * UNAVAILABLE, so that their senders repeat them to another replica.
   */
  close(): void;
}
