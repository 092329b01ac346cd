// How long a server asks to wait, in the spellings of the `retry-after` headers; pure.

/** Empty where nothing usable is said. In milliseconds, in seconds, or as a date. */
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
