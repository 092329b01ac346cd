// Memory vectors: lists texts without a vector and stores the vectors from agent-core.
import { WireError, type InputOf, type MemorySettings, type OutputOf, type store } from "@parley/contracts";
import { withClient, type Database } from "../../db/database.ts";
import { refreshIndex } from "../../memory/refresh-index.ts";
import { packed, vectorOf } from "../../memory/vectors.ts";

/** Maximum UTF-8 bytes of the texts of one reply. */
const maxTextBytes = 200 * 1024;

export async function unembedded(
  database: Database,
  settings: MemorySettings,
  { model, limit }: InputOf<typeof store.memoryUnembedded>,
): Promise<OutputOf<typeof store.memoryUnembedded>> {
  await refreshIndex(database, settings);
  return withClient(database, async (client) => {
    const { rows } = await client.query<{ sha256: string; text: string }>(
      `SELECT sha256, min(text) AS text FROM parley.memory_chunks c
       WHERE NOT EXISTS (SELECT FROM parley.memory_vectors v WHERE v.model = $1 AND v.sha256 = c.sha256)
       GROUP BY sha256 ORDER BY max(id) DESC LIMIT $2`,
      [model, limit],
    );
    let bytes = 0;
    return { texts: rows.filter(({ text }) => (bytes += Buffer.byteLength(JSON.stringify(text))) <= maxTextBytes) };
  });
}

/** Also deletes vectors whose texts no longer exist. */
export async function embed(
  database: Database,
  { model, vectors }: InputOf<typeof store.memoryEmbed>,
): Promise<OutputOf<typeof store.memoryEmbed>> {
  const parsed = vectors.map(({ sha256, values }) => ({ sha256, vector: vectorOf(values) }));
  if (parsed.some(({ vector }) => vector.length === 0 || !vector.every(Number.isFinite)))
    throw new WireError("INVALID_INPUT", "a vector needs at least one number, and all numbers must be finite");
  return withClient(database, async (client) => {
    for (const { sha256, vector } of parsed) {
      await client.query(
        "INSERT INTO parley.memory_vectors (model, sha256, packed) VALUES ($1, $2, $3) ON CONFLICT DO NOTHING",
        [model, sha256, packed(vector)],
      );
    }
    await client.query(
      "DELETE FROM parley.memory_vectors v WHERE NOT EXISTS (SELECT FROM parley.memory_chunks c WHERE c.sha256 = v.sha256)",
    );
    return {};
  });
}
