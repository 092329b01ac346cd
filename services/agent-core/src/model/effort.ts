// Effort levels, and mapping them to the levels a model supports; pure.
import type { Effort } from "@parley/contracts";

/** Lowest first. */
export const efforts: readonly Effort[] = ["low", "medium", "high", "xhigh", "max"];

/** The wanted level if the model supports it, else the next lower one; undefined: leave it to the model. */
export function nearestEffort(wanted: Effort | undefined, known: readonly Effort[]): Effort | undefined {
  if (wanted === undefined) return undefined;
  return efforts.slice(0, efforts.indexOf(wanted) + 1).findLast((level) => known.includes(level));
}
