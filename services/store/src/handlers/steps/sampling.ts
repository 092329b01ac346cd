// Records model calls for MCP servers (sampling). Each is a step with a negative number: it counts like any model call but has no position
// among the ordered steps.
import { WireError } from "@parley/contracts";
import { runOperation } from "../../db/operation.ts";
import { lockTurn } from "../turns/end.ts";
import type { Handlers } from "../handler.ts";

export const samplingHandlers = {
  /** Throws NOT_FOUND, CONFLICT. */
  stepSampled({ database }, input) {
    return runOperation(database, input, {
      name: "step_sampled",
      async run(client) {
        const { usage, turnId, n, epoch } = input;
        const { sessionId } = await lockTurn(client, turnId, epoch);
        const { rowCount } = await client.query(
          `INSERT INTO parley.steps (turn_id, n, kind, state, epoch, call_id, model, stop_reason, usage, cost_micros, finished_at)
           SELECT call.turn_id, least(-1, (SELECT min(own.n) - 1 FROM parley.steps own WHERE own.turn_id = call.turn_id)),
                  'model', 'done', $3, call.call_id, $4, $5, $6, $7::bigint, now()
           FROM parley.steps call WHERE call.turn_id = $1 AND call.n = $2 AND call.kind = 'tool'`,
          [turnId, n, epoch, input.model, input.stopReason, JSON.stringify(usage), input.costMicros],
        );
        if (rowCount !== 1) throw new WireError("CONFLICT", `turn ${turnId} has no call ${n}`);
        const { inputTokens, outputTokens, cacheReadTokens, cacheWriteTokens } = usage;
        for (const [table, id] of [
          ["turns", turnId],
          ["sessions", sessionId],
        ] as const) {
          await client.query(
            `UPDATE parley.${table} SET
               input_tokens = input_tokens + $2, output_tokens = output_tokens + $3,
               cache_read_tokens = cache_read_tokens + $4, cache_write_tokens = cache_write_tokens + $5,
               cost_micros = cost_micros + coalesce($6::bigint, 0),
               unpriced_calls = unpriced_calls + CASE WHEN $6::bigint IS NULL THEN 1 ELSE 0 END
             WHERE id = $1`,
            [id, inputTokens, outputTokens, cacheReadTokens, cacheWriteTokens, input.costMicros],
          );
        }
        return { result: {}, memo: {} };
      },
      replay: async () => ({}),
    });
  },
} satisfies Partial<Handlers>;
