// Converts message parts to content blocks, and the end of a turn to a result message. Pure.
import { ownToolName, type ExitReason, type Message, type Part } from "@parley/contracts";
import { dollars, sdkUsage, type RunTotals } from "./sdk-totals.ts";
import type { ContentBlock, PermissionDenial, ResultSubtype, SdkBody } from "./sdk-types.ts";

/** Converts the parts of an assistant message; parts without a block type are omitted. */
export function blocksOf(parts: readonly Part[]): ContentBlock[] {
  return parts.flatMap((part): ContentBlock[] => {
    switch (part.type) {
      case "text":
        return part.text === "" ? [] : [{ type: "text", text: part.text }];
      case "reasoning":
        if (part.redacted !== undefined) return [{ type: "redacted_thinking", data: part.redacted }];
        return [{ type: "thinking", thinking: part.text, signature: part.signature ?? null }];
      case "tool_call":
        return [{ type: "tool_use", id: part.id, name: ownToolName(part.name), input: jsonOr(part.input) }];
      default:
        return [];
    }
  });
}

/** Parses JSON; invalid JSON is returned as the text itself. */
export function jsonOr(text: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch {
    return text;
  }
}

/** Why a model reply ended, and the stop sequence that it reached; null: none, or unknown. */
export function stopOf({ parts }: Message): { stop_reason: string | null; stop_sequence: string | null } {
  const finish = parts.find((part) => part.type === "finish");
  return { stop_reason: finish?.reason ?? null, stop_sequence: finish?.stopSequence ?? null };
}

function subtypeOf(reason: ExitReason): ResultSubtype {
  switch (reason) {
    case "end_turn":
      return "success";
    case "max_turns":
      return "error_max_turns";
    case "max_budget":
      return "error_max_budget_usd";
    default:
      return "error_during_execution";
  }
}

/** How a turn ended, with the sums of its run. */
export interface TurnResult {
  text: string;
  durationMs: number;
  /** The part of `durationMs` in which tools ran. */
  toolMs: number;
  stopReason: string | null;
  denials: readonly PermissionDenial[];
}

/** The result message of a turn, or of a message that started none. */
export function resultOf(reason: ExitReason, turn: TurnResult, totals: RunTotals): SdkBody {
  const subtype = subtypeOf(reason);
  const isError = subtype !== "success";
  return {
    type: "result",
    subtype,
    is_error: isError,
    terminal_reason: reason,
    duration_ms: turn.durationMs,
    duration_api_ms: Math.max(0, turn.durationMs - turn.toolMs),
    num_turns: totals.modelCalls,
    result: turn.text,
    stop_reason: turn.stopReason,
    total_cost_usd: dollars(totals.cost),
    usage: sdkUsage(totals.usage),
    modelUsage: totals.byModel(),
    permission_denials: turn.denials,
    errors: isError ? [turn.text] : [],
  };
}
