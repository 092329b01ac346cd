// Converts message parts to content blocks, and the end of a turn to a result message. Pure.
import type { Cost, ExitReason, Message, Part, Usage } from "@parley/contracts";
import type { ContentBlock, ModelUsage, PermissionDenial, ResultSubtype, SdkBody, SdkUsage } from "./sdk-types.ts";

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
        return [{ type: "tool_use", id: part.id, name: part.name, input: jsonOr(part.input) }];
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

export function stopReasonOf({ parts }: Message): string | null {
  return parts.find((part) => part.type === "finish")?.reason ?? null;
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

export function sdkUsage(usage: Usage): SdkUsage {
  return {
    input_tokens: usage.inputTokens,
    output_tokens: usage.outputTokens,
    cache_read_input_tokens: usage.cacheReadTokens,
    cache_creation_input_tokens: usage.cacheWriteTokens,
  };
}

/** US dollars; null when a call has no known price, because the sum would be too small. */
function dollars({ micros, unpricedCalls }: Cost): number | null {
  return unpricedCalls > 0 ? null : micros / 1_000_000;
}

function usageByModel(models: readonly string[], usage: Usage, cost: Cost): Record<string, ModelUsage> {
  const [only] = models;
  if (models.length === 1 && only !== undefined) {
    const whole = {
      inputTokens: usage.inputTokens,
      outputTokens: usage.outputTokens,
      cacheReadInputTokens: usage.cacheReadTokens,
      cacheCreationInputTokens: usage.cacheWriteTokens,
      costUSD: dollars(cost),
    };
    return { [only]: whole };
  }
  const unknown = {
    inputTokens: null,
    outputTokens: null,
    cacheReadInputTokens: null,
    cacheCreationInputTokens: null,
    costUSD: null,
  };
  return Object.fromEntries(models.map((model) => [model, unknown]));
}

/** The result message of a turn. `turn`: the state collected from its events; null when no turn was started. */
export function resultOf(
  reason: ExitReason,
  { text, usage, cost }: { text: string; usage: Usage; cost: Cost },
  turn: { modelCalls: number; models: ReadonlySet<string>; denials: readonly PermissionDenial[] } | null,
  durationMs: number,
): SdkBody {
  const subtype = subtypeOf(reason);
  const isError = subtype !== "success";
  return {
    type: "result",
    subtype,
    is_error: isError,
    terminal_reason: reason,
    duration_ms: durationMs,
    num_turns: turn?.modelCalls ?? 0,
    result: text,
    total_cost_usd: dollars(cost),
    usage: sdkUsage(usage),
    modelUsage: usageByModel([...(turn?.models ?? [])], usage, cost),
    permission_denials: turn?.denials ?? [],
    errors: isError ? [text] : [],
  };
}
