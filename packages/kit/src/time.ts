// Times.

/** Milliseconds since a time (ISO 8601), at least 0, because clocks of two machines differ. Undefined for null. */
export function millisecondsSince(at: string | null): number | undefined {
  return at === null ? undefined : Math.max(0, Date.now() - Date.parse(at));
}
