// Steps of turns: model calls and tool calls.
import type { HookOutcome, store, ToolResult, Usage } from "@parley/contracts";
import { sql } from "drizzle-orm";
import { index, integer, primaryKey, text } from "drizzle-orm/pg-core";
import { counter, createdAt, json, oneOf, parley, partial, time } from "./columns.ts";
import { ofTurn } from "./turns.ts";

export const steps = parley.table(
  "steps",
  {
    turnId: ofTurn(),
    n: integer("n").notNull(),
    kind: oneOf("kind", ["model", "tool"]).notNull(),
    state: oneOf("state", ["intended", "running", "done", "failed", "cancelled", "unknown"]).notNull(),
    epoch: counter("epoch").notNull(),
    model: text("model"),
    stopReason: text("stop_reason"),
    usage: json<Usage>("usage"),
    callId: text("call_id"),
    tool: text("tool"),
    class: oneOf("class", ["pure", "idempotent", "once"]),
    input: json<string>("input"),
    result: json<ToolResult>("result"),
    runner: text("runner"),
    starts: integer("starts").notNull().default(0),
    messageSeq: counter("message_seq"),
    createdAt: createdAt(),
    startedAt: time("started_at"),
    finishedAt: time("finished_at"),
    costMicros: counter("cost_micros"),
    claimHashes: text("claim_hashes").array(),
    hookOutcome: json<HookOutcome>("hook_outcome"),
    durationMs: integer("duration_ms"),
    firstTokenMs: integer("first_token_ms"),
    request: json<store.RequestRecord>("request"),
  },
  (table) => [
    primaryKey({ columns: [table.turnId, table.n] }),
    partial(index("steps_cost").on(table.createdAt), sql`kind = 'model'`),
  ],
);
