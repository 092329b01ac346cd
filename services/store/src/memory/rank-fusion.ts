// Fuses the full-text and the vector ranking by reciprocal rank, and boosts recent or important notes. Pure.
import type { MemorySettings } from "@parley/contracts";
import type { VectorMatch } from "./vector-search.ts";
import type { TextMatch } from "./bm25.ts";

/** Source: Cormack, Clarke and Büttcher, 2009. */
const rankConstant = 60;
const dayMs = 24 * 60 * 60 * 1000;
const halfLifeDays = 30;

export interface Ranked {
  id: number;
  /** Only for ordering. */
  rank: number;
  /** 0 to 1, for people. */
  score: number;
}

/** Without vectors the full-text order is used. */
export function fuse(byWords: readonly TextMatch[], byVector: readonly VectorMatch[] | undefined): Ranked[] {
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

/** Factor for the rank. */
export function boostOf(piece: { path: string | null; day: string | null }, weights: Weights, now: number): number {
  const ageDays = piece.day === null ? undefined : Math.max(0, now - Date.parse(piece.day)) / dayMs;
  const recency = ageDays === undefined ? 0 : weights.recency_weight * 0.5 ** (ageDays / halfLifeDays);
  const importance = piece.path === "MEMORY.md" ? weights.importance_weight : 0;
  return (1 + recency) * (1 + importance);
}
