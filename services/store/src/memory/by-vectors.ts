// Ranking by vectors: the cosine of the question's vector and each piece's, within the scopes that are asked. The vectors of one
// person's memory are few enough to be looked through one by one.
import type { PoolClient } from "../database.ts";

export interface Near {
  id: number;
  /** -1 to 1. */
  cosine: number;
}

/** Vectors read at a time. */
const pageSize = 1_000;

/** The nearest pieces, nearest first. A vector of another length than the question's is passed over. */
export async function findByVector(
  client: PoolClient,
  scopes: readonly string[],
  question: { model: string; vector: Float32Array },
  limit: number,
): Promise<Near[]> {
  let best: Near[] = [];
  for (let after = 0; ;) {
    const { rows } = await client.query<{ id: number; vector: number[] }>(
      `SELECT c.id, v.vector FROM parley.memory_chunks c JOIN parley.memory_vectors v ON v.sha256 = c.sha256 AND v.model = $2
       WHERE c.scope = ANY($1) AND c.id > $3 ORDER BY c.id LIMIT ${pageSize}`,
      [scopes, question.model, after],
    );
    const near = rows
      .filter(({ vector }) => vector.length === question.vector.length)
      .map(({ id, vector }) => ({ id, cosine: cosineOf(vector, question.vector) }));
    best = [...best, ...near].sort((one, other) => other.cosine - one.cosine).slice(0, limit);
    if (rows.length < pageSize) return best;
    after = rows.at(-1)?.id ?? after;
  }
}

function cosineOf(one: ArrayLike<number>, other: ArrayLike<number>): number {
  let product = 0;
  let first = 0;
  let second = 0;
  for (let index = 0; index < one.length; index++) {
    const left = one[index] ?? 0;
    const right = other[index] ?? 0;
    product += left * right;
    first += left * left;
    second += right * right;
  }
  return first === 0 || second === 0 ? 0 : product / Math.sqrt(first * second);
}

/** From little-endian 32-bit floats in base64; what is left over at the end is dropped. */
export function vectorOf(values: string): Float32Array {
  const bytes = Buffer.from(values, "base64");
  const vector = new Float32Array(Math.floor(bytes.length / 4));
  for (let index = 0; index < vector.length; index++) vector[index] = bytes.readFloatLE(index * 4);
  return vector;
}
