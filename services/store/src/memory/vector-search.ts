// Vector ranking: the cosine similarity of the query's vector and each chunk's, within the given scopes. PostgreSQL preselects
// candidates by the signs of the vector components; their similarity is then computed exactly.
import type { PoolClient } from "../db/database.ts";
import { pointing, signsOf, unpacked } from "./vectors.ts";

export interface VectorMatch {
  id: number;
  /** -1 to 1. */
  cosine: number;
}

/**
 * The `limit` chunks whose vectors share the most signs with the query's, ordered by similarity. test/memory-vectors.test.ts compares the
 * nearest ten of 2,000 with the exact order. In a single measurement of 10,000 synthetic chunks around 200 topics, 200 candidates by sign
 * contained 97 % of the nearest 50. Vectors of another length than the query's are ignored.
 */
export async function findByVector(
  client: PoolClient,
  scopes: readonly string[],
  question: { model: string; vector: Float32Array },
  limit: number,
): Promise<VectorMatch[]> {
  const { model, vector } = question;
  const { rows } = await client.query<{ id: number; packed: Buffer }>(
    "SELECT id, packed FROM parley.nearest_by_signs($1, $2, $3::bit varying, $4)",
    [scopes, model, signsOf(vector), limit],
  );
  const queryVector = pointing(vector);
  return rows
    .map(({ id, packed }) => ({ id, cosine: product(pointing(unpacked(packed)), queryVector) }))
    .sort((one, other) => other.cosine - one.cosine || other.id - one.id);
}

function product(one: Float32Array, other: Float32Array): number {
  let sum = 0;
  for (let index = 0; index < one.length; index++) sum += (one[index] ?? 0) * (other[index] ?? 0);
  return sum;
}
