// What adapters over HTTP share: whether a failed request can have arrived, bodies up to a limit, and error texts without URLs, which may
// contain secrets.

/** Error codes of failures before the request was sent: no connection, or an untrusted certificate. */
const beforeSending =
  /^(?:ECONNREFUSED|ENOTFOUND|EAI_AGAIN|EHOSTUNREACH|ENETUNREACH|EADDRNOTAVAIL|UND_ERR_CONNECT_TIMEOUT|CERT_\w+|ERR_TLS_\w+|DEPTH_ZERO_\w+|SELF_SIGNED_\w+|UNABLE_TO_\w+)$/;

/** A request without a response. `unreached`: certainly not sent. `lost`: it may have arrived. */
export type RequestFailure = { kind: "unreached"; reason: string } | { kind: "lost"; reason: string };

/** Classifies the error of a `fetch` that may have been aborted by `signal`. */
export function requestFailure(error: unknown, signal: AbortSignal): RequestFailure {
  const reason = signal.aborted ? "no response in time" : errorCode(error);
  return { kind: !signal.aborted && beforeSending.test(reason) ? "unreached" : "lost", reason };
}

/** The error code of the system. Never the message, because fetch includes URLs in some. */
function errorCode(error: unknown): string {
  for (let at = error; at instanceof Error; at = at.cause) {
    if ("code" in at && typeof at.code === "string") return at.code;
    if (at instanceof AggregateError && at.errors.length > 0) return errorCode(at.errors[0]);
  }
  return error instanceof Error ? error.name : "failure";
}

/** The body of a response. Rejects when the connection breaks. */
export async function readUpTo(response: Response, maxBytes: number): Promise<Uint8Array | "too_large"> {
  const chunks: Uint8Array[] = [];
  let bytes = 0;
  if (response.body === null) return Buffer.alloc(0);
  const reader: ReadableStreamDefaultReader<Uint8Array> = response.body.getReader();
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return Buffer.concat(chunks);
    bytes += value.length;
    if (bytes > maxBytes) {
      await reader.cancel();
      return "too_large";
    }
    chunks.push(value);
  }
}

/** Aborts with `signal`, or after `ms`. */
export function withTimeout(signal: AbortSignal, ms: number): AbortSignal {
  return AbortSignal.any([signal, AbortSignal.timeout(ms)]);
}
