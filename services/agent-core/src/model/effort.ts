// How hard a model works, where models know different levels; pure.
import type { Effort } from "@parley/contracts";

/** Least first. */
export const efforts: readonly Effort[] = ["low", "medium", "high", "xhigh", "max"];

/** The level asked for where the model knows it, else its nearest lower one; undefined: leave it to the model. */
export function nearestEffort(wanted: Effort | undefined, known: readonly Effort[]): Effort | undefined {
  if (wanted === undefined) return undefined;
  return efforts.slice(0, efforts.indexOf(wanted) + 1).findLast((level) => known.includes(level));
}
