// Steps of turns: model calls and tool calls. Columns of the other kind are null.
import type { HookOutcome, store, StoredAuthorization, ToolResult, Usage } from "@parley/contracts";
import { sql } from "drizzle-orm";
import { index, integer, primaryKey, text } from "drizzle-orm/pg-core";
import { bigInteger, createdAt, json, oneOf, parley, partialIndex, time } from "./columns.ts";
import { turnReference } from "./turns.ts";

export const steps = parley.table(
  "steps",
  {
    turnId: turnReference(),
    /** Position in the turn, from 1. */
    n: integer("n").notNull(),
    kind: oneOf("kind", ["model", "tool"]).notNull(),
    /** A tool call is `intended` until it starts, and `unknown` when it may have had its effect without a result. */
    state: oneOf("state", ["intended", "running", "done", "failed", "cancelled", "unknown"]).notNull(),
    epoch: bigInteger("epoch").notNull(),
    // Of model calls.
    model: text("model"),
    stopReason: text("stop_reason"),
    usage: json<Usage>("usage"),
    // Of tool calls.
    callId: text("call_id"),
    tool: text("tool"),
    /** The effect class. */
    class: oneOf("class", ["pure", "idempotent", "once"]),
    /** The arguments: the JSON text that the model wrote. */
    input: json<string>("input"),
    /** The arguments that hooks changed, with which the call runs; null: no hook changed them, or its question contains them. */
    authorizationJson: json<StoredAuthorization>("authorization_json"),
    result: json<ToolResult>("result"),
    /** The process instance that runs the call. */
    runner: text("runner"),
    /** How often the call was started. */
    starts: integer("starts").notNull().default(0),
    /** Position of the message that contains the answer or the result; null: the result has not been added to the conversation. */
    messageSeq: bigInteger("message_seq"),
    createdAt: createdAt(),
    startedAt: time("started_at"),
    finishedAt: time("finished_at"),
    /** Millionths of a US dollar; null: unknown price. */
    costMicros: bigInteger("cost_micros"),
    /** SHA-256 of the secret of each claim of the call, the newest last: a runner proves with the secret that it may act for the call. */
    claimSecretHashes: text("claim_hashes").array(),
    /** Set when the hooks on the result have run. */
    hookOutcome: json<HookOutcome>("hook_outcome"),
    durationMs: integer("duration_ms"),
    firstTokenMs: integer("first_token_ms"),
    /** What the request to the model consisted of. */
    request: json<store.RequestRecord>("request"),
  },
  (table) => [
    primaryKey({ columns: [table.turnId, table.n] }),
    // For sums of usage and cost over a period.
    partialIndex(index("steps_cost").on(table.createdAt), sql`kind = 'model'`),
  ],
);
