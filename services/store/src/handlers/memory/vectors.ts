// Memory vectors: lists texts without a vector and stores the vectors from agent-core.
import { WireError } from "@parley/contracts";
import { refreshIndex } from "../../memory/refresh-index.ts";
import { packed, vectorOf } from "../../memory/vectors.ts";
import type { Handlers } from "../handler.ts";

/** Maximum UTF-8 bytes of the texts of one reply. */
const maxTextBytes = 200 * 1024;

export const vectorHandlers = {
  /** Also deletes vectors whose texts no longer exist. */
  async memoryEmbed({ database, memorySettings }, { model, vectors, limit }) {
    const parsed = vectors.map(({ sha256, values }) => ({ sha256, vector: vectorOf(values) }));
    if (parsed.some(({ vector }) => vector.length === 0 || !vector.every(Number.isFinite)))
      throw new WireError("INVALID_INPUT", "a vector needs at least one number, and all numbers must be finite");
    for (const { sha256, vector } of parsed) {
      await database.query(
        "INSERT INTO parley.memory_vectors (model, sha256, packed) VALUES ($1, $2, $3) ON CONFLICT DO NOTHING",
        [model, sha256, packed(vector)],
      );
    }
    await refreshIndex(database, memorySettings);
    await database.query(
      "DELETE FROM parley.memory_vectors v WHERE NOT EXISTS (SELECT FROM parley.memory_chunks c WHERE c.sha256 = v.sha256)",
    );
    const { rows } = await database.query<{ sha256: string; text: string }>(
      `SELECT sha256, min(text) AS text FROM parley.memory_chunks c
       WHERE NOT EXISTS (SELECT FROM parley.memory_vectors v WHERE v.model = $1 AND v.sha256 = c.sha256)
       GROUP BY sha256 ORDER BY max(id) DESC LIMIT $2`,
      [model, limit],
    );
    let bytes = 0;
    return { texts: rows.filter(({ text }) => (bytes += Buffer.byteLength(JSON.stringify(text))) <= maxTextBytes) };
  },
} satisfies Partial<Handlers>;
