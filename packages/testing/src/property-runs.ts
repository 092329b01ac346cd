// Number of runs of a property and size of a load: smaller in `npm test` than in `npm run test:deep`. It imports nothing, so that a
// pure test starts fast.

/** Runs of one property while PARLEY_PROPERTY_RUNS is not set. */
const defaultRuns = 300;

/**
 * The `numRuns` of a property: `full`, limited by PARLEY_PROPERTY_RUNS (a positive whole number, or `full`).
 * Without the variable at most 300. Throws on any other value of the variable.
 */
export function propertyRuns(full: number): number {
  const limit = process.env["PARLEY_PROPERTY_RUNS"] ?? String(defaultRuns);
  if (limit === "full") return full;
  if (!/^[1-9]\d*$/.test(limit))
    throw new Error(`PARLEY_PROPERTY_RUNS is "${limit}"; set it to a positive whole number or to "full".`);
  return Math.min(full, Number(limit));
}

/** The size of a test's load: `full` when PARLEY_PROPERTY_RUNS is `full`, otherwise `usual`. */
export function loadSize({ usual, full }: { usual: number; full: number }): number {
  return process.env["PARLEY_PROPERTY_RUNS"] === "full" ? full : usual;
}
