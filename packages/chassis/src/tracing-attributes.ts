// Attribute names: those of OpenTelemetry's conventions for generative AI that Parley uses, and Parley's own. The conventions have the
// status "development"; a test compares the names with the published list.

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
