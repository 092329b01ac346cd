// Parses the delay in the variants of the `retry-after` headers; pure.

/** Empty without a usable value. Accepts milliseconds, seconds and dates. */
export function retryAfter(headers: Headers | undefined): { retryAfterMs?: number } {
  const exact = headers?.get("retry-after-ms") ?? "";
  if (isCount(exact)) return { retryAfterMs: Number(exact) };
  const after = headers?.get("retry-after") ?? "";
  if (isCount(after)) return { retryAfterMs: Number(after) * 1_000 };
  const at = after.endsWith("GMT") ? Date.parse(after) : Number.NaN;
  return Number.isNaN(at) ? {} : { retryAfterMs: Math.max(0, at - Date.now()) };
}

function isCount(text: string): boolean {
  return /^\d+(\.\d+)?$/.test(text.trim());
}
