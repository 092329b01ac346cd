// Ranking by vectors: the cosine of the question's vector and each piece's, within the scopes that are asked. The vectors of one
// person's memory are few enough to be looked through one by one, once they are at hand.
import type { PoolClient } from "../database.ts";
import { pointing, unpacked, type VectorCache } from "./vectors.ts";

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
  cache: VectorCache,
  scopes: readonly string[],
  question: { model: string; vector: Float32Array },
  limit: number,
): Promise<Near[]> {
  const { rows } = await client.query<{ id: number; sha256: string }>(
    "SELECT id, sha256 FROM parley.memory_chunks WHERE scope = ANY($1)",
    [scopes],
  );
  const known = await vectorsOf(client, cache, question.model, [...new Set(rows.map(({ sha256 }) => sha256))]);
  const asked = pointing(question.vector);
  return rows
    .flatMap(({ id, sha256 }) => {
      const vector = known.get(sha256);
      return vector?.length === asked.length ? [{ id, cosine: product(vector, asked) }] : [];
    })
    .sort((one, other) => other.cosine - one.cosine || other.id - one.id)
    .slice(0, limit);
}

/** A text's vector never changes: what was read once need not be read again. */
async function vectorsOf(
  client: PoolClient,
  cache: VectorCache,
  model: string,
  texts: readonly string[],
): Promise<Map<string, Float32Array>> {
  const known = new Map<string, Float32Array>();
  const missing = texts.filter((sha256) => {
    const vector = cache.get(model, sha256);
    if (vector !== undefined) known.set(sha256, vector);
    return vector === undefined;
  });
  for (let from = 0; from < missing.length; from += pageSize) {
    const { rows } = await client.query<{ sha256: string; packed: Buffer }>(
      "SELECT sha256, packed FROM parley.memory_vectors WHERE model = $1 AND sha256 = ANY($2)",
      [model, missing.slice(from, from + pageSize)],
    );
    for (const { sha256, packed } of rows) {
      const vector = pointing(unpacked(packed));
      known.set(sha256, vector);
      cache.set(model, sha256, vector);
    }
  }
  return known;
}

function product(one: Float32Array, other: Float32Array): number {
  let sum = 0;
  for (let index = 0; index < one.length; index++) sum += (one[index] ?? 0) * (other[index] ?? 0);
  return sum;
}
