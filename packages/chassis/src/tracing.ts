// Tracing of a service process: enabled before the service starts, flushed after it has ended. Without a collector only OpenTelemetry's
// API is loaded, and spans cost next to nothing. The attribute names are those of OpenTelemetry's conventions for generative AI, whose status
// is "development"; a test compares them with the published list.

import { setTimeout as delay } from "node:timers/promises";

import { trace } from "@opentelemetry/api";

import type { BaseConfig } from "./config.ts";
import { createLogger } from "./logger.ts";

export interface Tracing {
  /** Sends the collected spans; gives up after `withinMs`. Never throws. */
  flush(withinMs: number): Promise<void>;
}

const off: Tracing = { flush: async () => undefined };
let capturing = false;

/** Enables tracing if configured. A failure is logged, and the service runs without tracing. */
export async function startTracing(config: BaseConfig): Promise<Tracing> {
  const { tracing, service, replica, logLevel: level } = config;
  if (tracing === null) return off;
  const log = createLogger({ service, replica, level });
  try {
    const { registerSdk } = await import("./tracing-sdk.ts");
    const sdk = registerSdk(tracing, { service, replica }, log);
    capturing = tracing.captureContent;
    return {
      async flush(withinMs) {
        const ended = sdk.shutdown().catch((error: unknown) => log.warn({ err: error }, "last spans not sent"));
        await Promise.race([ended, delay(Math.max(0, withinMs), undefined, { ref: false })]);
      },
    };
  } catch (error) {
    log.error({ err: error }, "tracing not started: the service runs without it");
    return off;
  }
}

/** Whether spans may contain messages. False unless OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT is set. */
export function capturesContent(): boolean {
  return capturing;
}

/** Log fields that identify the active span. */
export function spanFields(): { trace_id?: string; span_id?: string } {
  const span = trace.getActiveSpan()?.spanContext();
  return span === undefined ? {} : { trace_id: span.traceId, span_id: span.spanId };
}

/** `gen_ai.*`: attributes of agents, model calls and tools. */
export const genAi = {
  operationName: "gen_ai.operation.name",
  providerName: "gen_ai.provider.name",
  conversationId: "gen_ai.conversation.id",
  agentName: "gen_ai.agent.name",
  requestModel: "gen_ai.request.model",
  requestMaxTokens: "gen_ai.request.max_tokens",
  responseModel: "gen_ai.response.model",
  responseFinishReasons: "gen_ai.response.finish_reasons",
  /** The whole prompt, including the cached part. */
  usageInputTokens: "gen_ai.usage.input_tokens",
  usageOutputTokens: "gen_ai.usage.output_tokens",
  usageCacheReadTokens: "gen_ai.usage.cache_read.input_tokens",
  usageCacheCreationTokens: "gen_ai.usage.cache_creation.input_tokens",
  toolName: "gen_ai.tool.name",
  toolType: "gen_ai.tool.type",
  toolCallId: "gen_ai.tool.call.id",
  // Content: only if enabled.
  toolCallArguments: "gen_ai.tool.call.arguments",
  toolCallResult: "gen_ai.tool.call.result",
  inputMessages: "gen_ai.input.messages",
  outputMessages: "gen_ai.output.messages",
  systemInstructions: "gen_ai.system_instructions",
} as const;

/** Values of `gen_ai.operation.name`; each begins the name of its span. */
export const genAiOperation = { invokeAgent: "invoke_agent", chat: "chat", executeTool: "execute_tool" } as const;

/** Parley's own attributes. */
export const parleyAttribute = {
  channel: "parley.channel",
  account: "parley.account",
  sessionId: "parley.session.id",
  inboxId: "parley.inbox.id",
  outboxId: "parley.outbox.id",
  turnId: "parley.turn.id",
  /** Position among the turn's steps. */
  step: "parley.turn.step",
  /** How often the turn or the outbox row has been claimed, including this claim. */
  attempt: "parley.attempt",
  /** The outcome of a turn's run, a call or a sent text. */
  outcome: "parley.outcome",
} as const;
