// Vector ranking on a real PostgreSQL, compared with the cosine of every chunk.
import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { after, before, test } from "node:test";
import { Cleanup } from "@parley/testing";
import fc from "fast-check";
import type { Client } from "pg";
import { findByVector } from "../src/memory/vector-search.ts";
import { packed, pointing, signsOf } from "../src/memory/vectors.ts";
import { openStoreFixture } from "./support/fixture.ts";
import { openDatabase, withClient, type Database } from "../src/db/database.ts";

const cleanup = new Cleanup();
let sql: Client;
let database: Database;

before(async () => {
  const fixture = await openStoreFixture(cleanup);
  ({ sql } = fixture);
  // As the store's own role, which may not change the tables.
  database = openDatabase(fixture.stack.postgres.storeUrl, 1, () => undefined);
  cleanup.add(() => database.pool.end());
});
after(() => cleanup[Symbol.asyncDispose]());

/** The size of a common small embedding model. */
const dimensions = 384;

const topics = 20;

/** Between -1 and 1, the same in each run. */
function number(seed: number): number {
  const large = Math.sin(seed) * 10_000;
  return 2 * (large - Math.floor(large)) - 1;
}

/** Vectors around some topics. */
function aroundTopics(count: number, seed: number): Float32Array[] {
  return Array.from({ length: count }, (_, index) =>
    Float32Array.from({ length: dimensions }, (_value, place) => {
      const topic = number((index % topics) * dimensions + place + 1);
      return topic + 0.5 * number(seed * 1_000_003 + index * dimensions + place);
    }),
  );
}

/** Ids of the chunks, in the order of the vectors. */
async function remember(scope: string, model: string, vectors: readonly Float32Array[]): Promise<number[]> {
  const keys = vectors.map(() => randomUUID());
  const { rows } = await sql.query<{ id: string }>(
    `INSERT INTO parley.memory_chunks (id, scope, path, from_line, to_line, text, sha256, length, author)
     SELECT nextval('parley.memory_chunk_ids'), $1, 'memory/a.md', 1, 1, 'x', key, 1, 'agent'
     FROM unnest($2::text[]) WITH ORDINALITY AS k (key, place) ORDER BY place RETURNING id`,
    [scope, keys],
  );
  await sql.query(
    "INSERT INTO parley.memory_vectors (model, sha256, packed) SELECT $1, * FROM unnest($2::text[], $3::bytea[])",
    [model, keys, vectors.map(packed)],
  );
  return rows.map(({ id }) => Number(id));
}

function exact(ids: readonly number[], vectors: readonly Float32Array[], question: Float32Array): number[] {
  const asked = pointing(question);
  return vectors
    .map((vector, index) => {
      const cosine = pointing(vector).reduce((sum, value, place) => sum + value * (asked[place] ?? 0), 0);
      return { id: ids[index] ?? 0, cosine };
    })
    .sort((one, other) => other.cosine - one.cosine || other.id - one.id)
    .map(({ id }) => id);
}

const find = async (scopes: string[], model: string, vector: Float32Array, limit: number) =>
  (await withClient(database, (client) => findByVector(client, scopes, { model, vector }, limit))).map(({ id }) => id);

test("returns the exact cosine order when there are no more chunks than requested", async () => {
  const vectors = aroundTopics(40, 2);
  const ids = await remember("few", "m", vectors);
  for (const question of aroundTopics(10, 3))
    assert.deepEqual(await find(["few"], "m", question, 40), exact(ids, vectors, question));
});

test("finds the nearest ten of many chunks, in order", async () => {
  const vectors = aroundTopics(2_000, 4);
  const ids = await remember("many", "m", vectors);
  for (const question of aroundTopics(20, 5))
    assert.deepEqual(
      (await find(["many"], "m", question, 200)).slice(0, 10),
      exact(ids, vectors, question).slice(0, 10),
    );
});

test("ignores vectors of another length, model or scope", async () => {
  const [question = new Float32Array()] = aroundTopics(1, 6);
  const [id] = await remember("mine", "one", [question]);
  await remember("mine", "one", [question.slice(0, dimensions / 2)]);
  await remember("mine", "two", [question]);
  await remember("theirs", "one", [question]);
  assert.deepEqual(await find(["mine"], "one", question, 20), [id]);
});

test("PostgreSQL computes the same signs of stored vectors", async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(fc.float({ noNaN: true }), { maxLength: 40 }), async (values) => {
      const vector = Float32Array.from(values);
      const { rows } = await sql.query("SELECT parley.signs($1)::text AS signs", [packed(vector)]);
      assert.deepEqual(rows, [{ signs: signsOf(vector) }]);
    }),
    { numRuns: 200 },
  );
});
