// A turn's tool calls whose results are not in the conversation yet.
import { WireError, type InputOf, type store, type ToolResult, type ToolStep } from "@parley/contracts";
import type { PoolClient } from "../../db/database.ts";
import { durationOf, openSteps } from "../../db/mappers.ts";
import type { SessionLog } from "../sessions/log.ts";

type Rewritten = InputOf<typeof store.turnAppend>["rewritten"];

/** In call order, locked until the end of the transaction. */
export async function lockOpenCalls(client: PoolClient, turnId: string): Promise<ToolStep[]> {
  return openSteps(client, turnId, "FOR UPDATE OF s");
}

/** Replaces tool results by those that a hook rewrote. */
export async function rewriteResults(client: PoolClient, turnId: string, rewritten: Rewritten): Promise<void> {
  for (const { n, result } of rewritten ?? []) {
    await client.query(
      "UPDATE parley.steps SET result = $3 WHERE turn_id = $1 AND n = $2 AND kind = 'tool' AND result IS NOT NULL AND message_seq IS NULL",
      [turnId, n, JSON.stringify(result)],
    );
  }
}

/** Replacement text for results; `steps` null: for all. */
export interface Redaction {
  steps: readonly number[] | null;
  text: string;
}

/** Returns the calls with redacted results: only the error flag of a redacted result is kept. */
export async function redactResults(
  client: PoolClient,
  steps: ToolStep[],
  withhold: Redaction | undefined,
): Promise<ToolStep[]> {
  if (withhold === undefined) return steps;
  const { steps: named, text } = withhold;
  const kept: ToolStep[] = [];
  for (const step of steps) {
    const isSeen = step.hookOutcome !== undefined || (named !== null && !named.includes(step.n));
    if (step.result === null || isSeen) {
      kept.push(step);
      continue;
    }
    const { type, id, name, isError } = step.result;
    const result: ToolResult = { type, id, name, content: text, isError };
    await client.query("UPDATE parley.steps SET result = $3 WHERE turn_id = $1 AND n = $2", [
      step.turnId,
      step.n,
      JSON.stringify(result),
    ]);
    kept.push({ ...step, result });
  }
  return kept;
}

/** Settles each call without a result with `text`. A started `once` call without a recorded end becomes `unknown`. */
export async function settleOpenCalls(client: PoolClient, steps: ToolStep[], text: string): Promise<ToolResult[]> {
  const results: ToolResult[] = [];
  for (const step of steps) {
    const result: ToolResult = step.result ?? {
      type: "tool_result",
      id: step.callId,
      name: step.tool,
      content: text,
      isError: true,
      ...durationOf(step.startedAt),
    };
    if (step.result === null) {
      const state = step.state === "running" && step.class === "once" ? "unknown" : "cancelled";
      await client.query(
        "UPDATE parley.steps SET state = $3, result = $4, finished_at = now() WHERE turn_id = $1 AND n = $2",
        [step.turnId, step.n, state, JSON.stringify(result)],
      );
    }
    results.push(result);
  }
  return results;
}

/** Appends the results as the message after their calls. `tainted`: the turn is tainted, or the taint of the results is unknown. */
export async function deliverResults(
  client: PoolClient,
  log: SessionLog,
  turnId: string,
  results: ToolResult[],
  tainted?: boolean,
): Promise<void> {
  if (results.length === 0) return;
  const message = await log.append("tool", results, null, { tainted });
  await client.query(
    "UPDATE parley.steps SET message_seq = $2 WHERE turn_id = $1 AND kind = 'tool' AND message_seq IS NULL",
    [turnId, message.seq],
  );
}

/** Throws CONFLICT when the leader's number of results differs from the store's. */
export function checkResults(turnId: string, steps: ToolStep[], seen: number): void {
  const settled = steps.filter((step) => step.result !== null).length;
  if (settled === steps.length && settled === seen) return;
  throw new WireError(
    "CONFLICT",
    `turn ${turnId}: ${settled} results (${steps.length - settled} open), but the leader has ${seen}`,
  );
}
