// Maps a configured effort level to the levels that a model supports. Pure.
import type { Effort } from "@parley/contracts";

/** Lowest first. */
export const efforts: readonly Effort[] = ["low", "medium", "high", "xhigh", "max"];

/**
 * The highest level that the model supports, up to the wanted one. Undefined when none was configured or all supported levels are higher:
 * the request then has no effort, and the model uses its default.
 */
export function highestSupportedEffort(wanted: Effort | undefined, supported: readonly Effort[]): Effort | undefined {
  if (wanted === undefined) return undefined;
  return efforts.slice(0, efforts.indexOf(wanted) + 1).findLast((level) => supported.includes(level));
}
