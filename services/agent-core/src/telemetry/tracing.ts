// The spans of a turn, following OpenTelemetry's conventions for generative AI:
//
//   invoke_agent <agent>           one run of a turn: until it ends, parks, or another leader resumes it
//   ├─ chat <model>                one model call, its retries included
//   ├─ execute_tool <tool>         a tool that agent-core runs itself
//   └─ send tool.call.<tool> …     the bus's own span, and below it the tool-runner's `execute_tool`
//
// Spans contain message content only if the settings enable it. Without a collector nothing is recorded.
import {
  activeTrace,
  capturesContent,
  failSpan,
  genAi,
  genAiOperation,
  inSpan,
  parleyAttribute,
} from "@parley/chassis";
import type { ClaimedTurn, Part, ToolStep } from "@parley/contracts";
import { ModelError, type ModelReply, type ModelRequest } from "../model/provider.ts";

/** The agent and its model provider. */
export interface TracedAgent {
  /** The profile, or `parley`. */
  agent: string;
  /** Value of `gen_ai.provider.name`: `anthropic`, `openai`, … */
  provider: string;
}

/**
 * Runs a turn in its span, as a child of the span that accepted its first message; the wake-up is a link. The result
 * (`left`, `queued`, `finished`, …) is an attribute of the span.
 */
export function traceTurn<T extends string>(
  turn: Pick<ClaimedTurn, "turnId" | "sessionId" | "attempt" | "trace">,
  { agent, provider }: TracedAgent,
  work: () => Promise<T>,
): Promise<T> {
  const attributes = {
    [genAi.operationName]: genAiOperation.invokeAgent,
    [genAi.agentName]: agent,
    [genAi.providerName]: provider,
    [genAi.conversationId]: turn.sessionId,
    [parleyAttribute.turnId]: turn.turnId,
    [parleyAttribute.attempt]: turn.attempt,
  };
  const options = { parent: turn.trace, links: [activeTrace()], attributes };
  return inSpan(`${genAiOperation.invokeAgent} ${agent}`, options, async (span) => {
    const end = await work();
    span.setAttribute(parleyAttribute.outcome, end);
    return end;
  });
}

export interface TracedModelCall {
  /** Value of `gen_ai.provider.name`. */
  provider: string;
  /** The requested model. */
  model: string;
  sessionId: string;
  /** Step number of the call. */
  step: number;
  request: Pick<ModelRequest, "system" | "messages" | "maxOutputTokens">;
}

/** Runs a model call in its span. An interruption by the user is not recorded as a model failure. */
export function traceModelCall(call: TracedModelCall, work: () => Promise<ModelReply>): Promise<ModelReply> {
  const { provider, model, request } = call;
  const attributes = {
    [genAi.operationName]: genAiOperation.chat,
    [genAi.providerName]: provider,
    [genAi.requestModel]: model,
    [genAi.requestMaxTokens]: request.maxOutputTokens,
    [genAi.conversationId]: call.sessionId,
    [parleyAttribute.step]: call.step,
    ...(capturesContent() ? promptContent(request) : {}),
  };
  const options = { kind: "client" as const, attributes, errorType: modelErrorType };
  return inSpan(`${genAiOperation.chat} ${model}`, options, async (span) => {
    const reply = await work();
    span.setAttributes({
      [genAi.responseModel]: reply.model,
      [genAi.responseFinishReasons]: [reply.rawStopReason],
      ...usageOf(reply.usage),
      ...(capturesContent()
        ? {
            [genAi.outputMessages]: JSON.stringify([
              { role: "assistant", parts: contentOf(reply.parts), finish_reason: reply.rawStopReason },
            ]),
          }
        : {}),
    });
    return reply;
  });
}

/** Runs one of agent-core's own tools in its span. Tool-runners record the spans of theirs. */
export function traceTool<T extends { isError: boolean; content: string }>(
  sessionId: string,
  step: Pick<ToolStep, "turnId" | "n" | "callId" | "tool" | "input">,
  work: () => Promise<T>,
): Promise<T> {
  const attributes = {
    [genAi.operationName]: genAiOperation.executeTool,
    [genAi.toolName]: step.tool,
    [genAi.toolType]: "function",
    [genAi.toolCallId]: step.callId,
    [genAi.conversationId]: sessionId,
    [parleyAttribute.turnId]: step.turnId,
    [parleyAttribute.step]: step.n,
    ...(capturesContent() ? { [genAi.toolCallArguments]: step.input } : {}),
  };
  return inSpan(`${genAiOperation.executeTool} ${step.tool}`, { attributes }, async (span) => {
    const result = await work();
    if (capturesContent()) span.setAttribute(genAi.toolCallResult, result.content);
    if (result.isError) failSpan(span, "failed");
    return result;
  });
}

function modelErrorType(error: unknown): string | undefined {
  if (error instanceof ModelError) return error.failure;
  return error instanceof Error && error.name === "TurnInterruptedError" ? undefined : "_OTHER";
}

/** Parley's input tokens exclude cached ones; the conventions include them. */
function usageOf(usage: ModelReply["usage"]): Record<string, number> {
  if (usage === null) return {};
  return {
    [genAi.usageInputTokens]: usage.inputTokens + usage.cacheReadTokens + usage.cacheWriteTokens,
    [genAi.usageOutputTokens]: usage.outputTokens,
    [genAi.usageCacheReadTokens]: usage.cacheReadTokens,
    [genAi.usageCacheCreationTokens]: usage.cacheWriteTokens,
  };
}

function promptContent({ system, messages }: TracedModelCall["request"]): Record<string, string> {
  return {
    [genAi.systemInstructions]: JSON.stringify([{ type: "text", content: system }]),
    [genAi.inputMessages]: JSON.stringify(messages.map(({ role, parts }) => ({ role, parts: contentOf(parts) }))),
  };
}

/** Parts in the format of the conventions, without binary data and provider-specific parts. */
function contentOf(parts: readonly Part[]): object[] {
  return parts.flatMap((part): object[] => {
    switch (part.type) {
      case "text":
        return [{ type: "text", content: part.text }];
      case "reasoning":
        return [{ type: "reasoning", content: part.text }];
      case "tool_call":
        return [{ type: "tool_call", id: part.id, name: part.name, arguments: part.input }];
      case "tool_result":
        return [{ type: "tool_call_response", id: part.id, response: part.content }];
      default:
        return [];
    }
  });
}
