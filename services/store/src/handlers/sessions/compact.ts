// View records of sessions, and their prefixes.
import { WireError, writtenSummary, type DurableEvent, type Usage, type ViewRecord } from "@parley/contracts";
import { singleRow, runOperation } from "../../db/operation.ts";
import { SessionLog } from "./log.ts";
import type { Handlers } from "../handler.ts";

type CompactedBody = Omit<Extract<DurableEvent, { type: "compacted" }>, "type" | "seq" | "turnId" | "summary"> & {
  /** Only for `store.usage.report`. Null: no model was called. */
  spent: { model: string; usage: Usage; costMicros: number | null } | null;
  /** Only for `store.step.request`, and contains the summary. */
  view: ViewRecord;
};

/** The field `summary` of a logged event. */
export function loggedSummary({ kind, parts }: { kind: string; parts: string }): { summary?: string } {
  if (kind !== "compacted") return {};
  const { view } = JSON.parse(parts) as Partial<CompactedBody>;
  // Older versions did not log it.
  const summary = view === undefined ? null : writtenSummary(view);
  return summary === null ? {} : { summary };
}

export const compactHandlers = {
  /** Writes the next view record. Throws CONFLICT when the summary was made from an older record. */
  sessionCompact({ database }, input) {
    return runOperation(
      database,
      { ...input, lockSession: input.sessionId },
      {
        name: "compact",
        async run(client, session) {
          if (session === undefined) throw new WireError("NOT_FOUND", `no session ${input.sessionId}`);
          const { usage, view } = input;
          const { rowCount } = await client.query(
            `UPDATE parley.sessions SET view = $2, view_version = $3, prefix_hash = NULL,
               input_tokens = input_tokens + $4, output_tokens = output_tokens + $5,
               cache_read_tokens = cache_read_tokens + $6, cache_write_tokens = cache_write_tokens + $7,
               cost_micros = cost_micros + coalesce($8::bigint, 0),
               unpriced_calls = unpriced_calls + CASE WHEN $8::bigint IS NULL AND $9::text IS NOT NULL THEN 1 ELSE 0 END
             WHERE id = $1 AND view_version = $3 - 1`,
            [
              input.sessionId,
              JSON.stringify(view),
              view.version,
              usage.inputTokens,
              usage.outputTokens,
              usage.cacheReadTokens,
              usage.cacheWriteTokens,
              input.costMicros,
              input.model,
            ],
          );
          if (rowCount !== 1) {
            throw new WireError(
              "CONFLICT",
              `the view of session ${input.sessionId} is not at version ${view.version - 1}`,
            );
          }
          const body: CompactedBody = {
            trigger: input.trigger,
            strategy: view.strategy,
            tokensBefore: input.tokensBefore,
            tokensAfter: input.tokensAfter,
            spent: input.model === null ? null : { model: input.model, usage, costMicros: input.costMicros },
            view,
          };
          const seq = await new SessionLog(client, input.sessionId, input.turnId).event("compacted", body);
          return { result: { seq }, memo: { seq } };
        },
      },
    );
  },

  async prefixPut({ database }, { hash, content }) {
    await database.query(
      // A commit is about to refer to it: the new time prevents its deletion until then.
      "INSERT INTO parley.prefixes (hash, content) VALUES ($1, $2) ON CONFLICT (hash) DO UPDATE SET created_at = now()",
      [hash, content],
    );
    return {};
  },

  async prefixGet({ database }, { hash }) {
    const { rows } = await database.query<{ content: string }>("SELECT content FROM parley.prefixes WHERE hash = $1", [
      hash,
    ]);
    return { content: rows.length === 0 ? null : singleRow(rows).content };
  },
} satisfies Partial<Handlers>;
