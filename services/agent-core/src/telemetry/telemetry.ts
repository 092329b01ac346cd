// The spans and metrics of turns and model calls. The spans follow OpenTelemetry's conventions for generative AI:
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
  type ServiceMetrics,
} from "@parley/chassis";
import {
  builtInProviders,
  timeOfId,
  type ClaimedTurn,
  type Finish,
  type Part,
  type ToolStep,
  type Usage,
} from "@parley/contracts";
import {
  ModelError,
  type ModelFailure,
  type ModelProvider,
  type ModelReply,
  type ModelRequest,
  wrapProvider,
} from "../model/provider.ts";

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

/** One attempt, which call.ts may repeat. */
export interface ModelAttempt {
  provider: ModelProvider;
  outcome: "ok" | "cancelled" | ModelFailure;
  seconds: number;
  /** Null: the call failed, or the provider reported none. */
  usage: Usage | null;
}

export function metered(provider: ModelProvider, report: (attempt: ModelAttempt) => void): ModelProvider {
  return wrapProvider(provider, {
    async stream(request, on, signal) {
      const startedAt = performance.now();
      const end = (outcome: ModelAttempt["outcome"], usage: Usage | null) =>
        report({ provider, outcome, seconds: (performance.now() - startedAt) / 1_000, usage });
      try {
        const reply = await provider.stream(request, on, signal);
        end("ok", reply.usage);
        return reply;
      } catch (error) {
        // The watchdog of call.ts aborts with the failure of a silent stream.
        const cause: unknown = signal.aborted ? signal.reason : error;
        end(cause instanceof ModelError ? cause.failure : signal.aborted ? "cancelled" : "invalid", null);
        throw error;
      }
    },
  });
}

type Turn = Pick<ClaimedTurn, "turnId" | "inboxIds">;

/** What a turn reports. */
export interface TurnMetrics {
  prefixBroken(): void;
  /** The model has produced text for people; only the first call for a turn counts. */
  textStreamed(turn: Turn): void;
  turnEnded(turn: Turn, state: Finish["state"]): void;
  modelRetried(): void;
}

export function createTurnMetrics(metrics: ServiceMetrics, now = Date.now): TurnMetrics {
  const begun = new WeakSet<Turn>();
  /** Seconds since the first message arrived; undefined where its id contains no time. */
  const waited = ({ inboxIds: [first] }: Turn): number | undefined => {
    const receivedAt = first === undefined ? null : timeOfId(first);
    return receivedAt === null ? undefined : Math.max(0, now() - receivedAt) / 1_000;
  };
  return {
    prefixBroken: () => metrics.count("parley_prompt_prefix_breaks_total"),
    textStreamed(turn) {
      if (begun.has(turn)) return;
      begun.add(turn);
      const seconds = waited(turn);
      if (seconds !== undefined) metrics.observe("parley_turn_first_text_seconds", seconds);
    },
    turnEnded(turn, state) {
      metrics.count("parley_turns_total", { outcome: state });
      const seconds = waited(turn);
      if (seconds !== undefined) metrics.observe("parley_turn_seconds", seconds);
    },
    modelRetried: () => metrics.count("parley_model_retries_total"),
  };
}

const apiOf = (name: string) => builtInProviders.find((each) => each === name) ?? "other";

/** Counts an attempt; `costMicros`: millionths of a US dollar, null where the price is not known. */
export function countAttempt(
  metrics: ServiceMetrics,
  { provider: { name, model }, outcome, seconds, usage }: ModelAttempt,
  costMicros: number | null,
): void {
  const api = apiOf(name);
  metrics.count("parley_model_calls_total", { provider: api, model, outcome });
  metrics.observe("parley_model_call_seconds", { provider: api }, seconds);
  if (usage === null) return;
  const kinds = [
    ["input", usage.inputTokens],
    ["output", usage.outputTokens],
    ["cache_read", usage.cacheReadTokens],
    ["cache_write", usage.cacheWriteTokens],
  ] as const;
  for (const [kind, tokens] of kinds)
    if (tokens > 0) metrics.count("parley_model_tokens_total", { model, kind }, tokens);
  if (costMicros !== null && costMicros > 0)
    metrics.count("parley_model_cost_usd_total", { model }, costMicros / 1_000_000);
}

const queueStates = ["waiting", "prioritized", "delayed", "active", "failed"] as const;

/** What the leader knows and no other replica. */
export interface LeaderFigures {
  activeSessions(): number;
  queueCounts(): Promise<Record<string, number>>;
  /** Cost of the day, in millionths of a US dollar. */
  dayMicroUsd(): number;
  /** The models that the configuration names. */
  models: readonly Pick<ModelAttempt["provider"], "name" | "model">[];
}

/** Exports the leader's figures from now on. */
export function exportLeaderFigures(metrics: ServiceMetrics, figures: LeaderFigures): void {
  for (const { name, model } of figures.models)
    metrics.expect("parley_model_calls_total", { provider: apiOf(name), model });
  metrics.collect("parley_sessions_active", () => metrics.set("parley_sessions_active", figures.activeSessions()));
  metrics.collect("parley_cost_today_usd", () =>
    metrics.set("parley_cost_today_usd", figures.dayMicroUsd() / 1_000_000),
  );
  metrics.collect("parley_queue_jobs", async () => {
    const counts = await figures.queueCounts();
    for (const state of queueStates) metrics.set("parley_queue_jobs", { state }, counts[state] ?? 0);
  });
}
