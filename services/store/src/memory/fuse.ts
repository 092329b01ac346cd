// One order out of two: what words have found and what vectors have found, by reciprocal rank; then what is newer or marked as
// lasting may be lifted a little. Pure.
import type { MemorySettings } from "@parley/contracts";
import type { Near } from "./by-vectors.ts";
import type { Found } from "./by-words.ts";

/** Source: Cormack, Clarke and Büttcher, 2009. */
const rankConstant = 60;
const dayMs = 24 * 60 * 60 * 1000;
const halfLifeDays = 30;

export interface Ranked {
  id: number;
  /** For the order alone. */
  rank: number;
  /** 0 to 1, for people. */
  score: number;
}

/** Without vectors the order is that of the words. */
export function fuse(byWords: readonly Found[], byVector: readonly Near[] | undefined): Ranked[] {
  if (byVector === undefined) return byWords.map(({ id, score, share }) => ({ id, rank: score, score: share }));
  const ranked = new Map<number, Ranked>();
  const add = (id: number, place: number, score: number) => {
    const before = ranked.get(id);
    const rank = (before?.rank ?? 0) + 1 / (rankConstant + place + 1);
    ranked.set(id, { id, rank, score: Math.max(before?.score ?? 0, score) });
  };
  for (const [place, { id, share }] of byWords.entries()) add(id, place, share);
  for (const [place, { id, cosine }] of byVector.entries()) add(id, place, Math.max(0, cosine));
  return [...ranked.values()].sort((one, other) => other.rank - one.rank || other.id - one.id);
}

type Weights = Pick<MemorySettings, "recency_weight" | "importance_weight">;

/** What the rank is multiplied by. */
export function boostOf(piece: { path: string | null; day: string | null }, weights: Weights, now: number): number {
  const ageDays = piece.day === null ? undefined : Math.max(0, now - Date.parse(piece.day)) / dayMs;
  const recency = ageDays === undefined ? 0 : weights.recency_weight * 0.5 ** (ageDays / halfLifeDays);
  const importance = piece.path === "MEMORY.md" ? weights.importance_weight : 0;
  return (1 + recency) * (1 + importance);
}
