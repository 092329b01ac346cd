export { errorMessage } from "./error-message.ts";
export { newId, timeOfId } from "./ids.ts";
export * from "./answer.ts";
export * from "./attachments.ts";
export { allowsType, type AttachmentSettings, type TranscriptionSettings } from "./settings/attachments.ts";
export { ineffectiveVoiceSettings, type SpeechSettings, type VoiceSettings } from "./settings/voice.ts";
export { controlVoice, type SttTool, sttTools, voiceCall, voiceChanged, voiceServers } from "./voice.ts";
export { maxHiddenTools, type McpChange, type McpOverride } from "./store/mcp.ts";
export { maxUtteranceCharacters, type Utterance, type SpokenReply, type VoiceSession } from "./store/voice.ts";
export { services, roles, type Role, type ServiceName } from "./roles.ts";
export { WireError, WireErrorSchema, type WireErrorCode, type WireErrorData } from "./errors.ts";
export {
  MessageSchema,
  noUsage,
  PartSchema,
  textOf,
  UsageSchema,
  type Message,
  type MessageRole,
  type Part,
  type Sender,
  type ToolCall,
  type ToolResult,
  type Usage,
  isUntrustedInput,
} from "./messages.ts";
export {
  InboundMessageSchema,
  maxInboundBytes,
  ReplyAddressSchema,
  type InboundMessage,
  type ReplyAddress,
} from "./inbound.ts";
export {
  answererRole,
  approvalAnswerers,
  reviewReason,
  contactRoles,
  priorityOf,
  trustLevel,
  trustLevels,
  noAnswererReason,
  widestAnswerer,
  type ApprovalAnswerer,
  type ContactRole,
  type Origin,
  type TrustLevel,
} from "./principals.ts";
export { type ProgramAgent, ProgramAgentsSchema, type StartedAgent } from "./program-agents.ts";
export { type ProgramTool } from "./program-tools.ts";
export { apiScopes, ApiScopeSchema, includesScope, type ApiScope } from "./principals.ts";
export {
  type ClaimedTurn,
  type Cost,
  CostSchema,
  type ExitReason,
  noCost,
  type SessionOverrides,
  type SessionState,
  SessionStateSchema,
  type TaskMode,
  SessionSummarySchema,
  type SessionSummary,
  type StepState,
  type ToolClass,
  type HookOutcome,
  type StoredAuthorization,
  type ToolStep,
  TurnSummarySchema,
  type TurnState,
  type TurnSummary,
} from "./turns.ts";
export {
  DurableEventSchema,
  SessionEventSchema,
  type DurableEvent,
  type LiveEvent,
  type SessionEvent,
  type ToolProgress,
} from "./events.ts";
export {
  paramsOf,
  subjectOf,
  type Contract,
  type EventContract,
  type InputOf,
  type OutputOf,
  type PayloadOf,
  type RequestContract,
} from "./contract.ts";
export * as store from "./store.ts";
export type {
  Approval,
  Finish,
  CapturedDocument,
  MemoryHit,
  MemoryProgress,
  MemorySource,
  OutboxRow,
  Outgoing,
  QueuedMessage,
  JobPerson,
  Schedule,
  ScheduleRun,
  InlineSettlement,
  TraceSpan,
} from "./store.ts";
export {
  callToken,
  folderWorkspaceId,
  isOwnersWorkspace,
  mainWorkspaceId,
  toolAlive,
  toolAliveIntervalMs,
  toolCall,
  toolCancel,
  toolCatalog,
  toolProcess,
  toolProcesses,
  toolStop,
  toolProgress,
  type ProcessLine,
  type ProcessQuestion,
  type ToolCallRequest,
  type ToolDescriptor,
  type ToolEffect,
  type Containment,
  type ToolRisk,
} from "./tools.ts";
export {
  HookOutputSchema,
  hookRun,
  maxHookOutputBytes,
  type HookOutput,
  type HookPayload,
  type HookResult,
} from "./hooks.ts";
export {
  mcpConsent,
  mcpAuthorize,
  mcpAuthorized,
  publicKeyInState,
  sealedCodeContext,
  mcpStatus,
  mcpPrompt,
  mcpPrompts,
  mcpSwitched,
  toolsChanged,
  type McpPrompt,
  type McpServerStatus,
} from "./mcp.ts";
export {
  agentSample,
  agentSampleCancel,
  maxSampleCharacters,
  maxSampleMessages,
  type SampleMessage,
} from "./sampling.ts";
export { mcpClientOf, type McpClient } from "./mcp-client.ts";
export {
  checkpointRewind,
  maxCapturedPathCharacters,
  previewedOutcomes,
  type CapturedFile,
  type RewindReport,
  type RewoundFile,
} from "./checkpoints.ts";
export {
  controlCancel,
  controlCompact,
  controlHeartbeat,
  controlModelRequest,
  controlModels,
  controlStreaming,
  controlPing,
  controlSessionEnded,
  modelTitle,
} from "./control.ts";
export { isThreadOf, mainSessionKey, routeOfKey, threadKey } from "./session-keys.ts";
export { nearestName } from "./suggest.ts";
export * from "./health.ts";
export * from "./registry.ts";
export {
  documentAuthors,
  documentFolders,
  documentPathProblem,
  isPrivateDocument,
  LineRangeSchema,
  type LineRange,
  DocumentSchema,
  maxDocumentBytes,
  rootDocuments,
  type DocumentAuthor,
  type DocumentChange,
  type DocumentMeta,
} from "./store/documents.ts";
export { authorAt, letterOf, linesOf, type LineAuthors } from "./store/document-lines.ts";
export { containsUntrustedContent, markUntrusted, untrustedMarker, type ShownLine } from "./untrusted-content.ts";
export { isMemoryPath } from "./store/memory.ts";
export { controlSkills, toolRequirements, type SkillProblem } from "./skills.ts";
export {
  encodeGrant,
  GrantSchema,
  GrantToken,
  joinGrant,
  splitGrant,
  type DocumentRights,
  type Grant,
  type GrantParts,
} from "./grants.ts";
export { inboxPrefix, natsPermissions, type NatsPermissions } from "./permissions.ts";
export type { OidcSettings } from "./settings/oidc.ts";
export { redisRules, redisUser } from "./redis-rules.ts";
export { ParleySettingsSchema, personLimitsOf, presetNames, type ParleySettings } from "./settings/parley.ts";
export {
  defaultModel,
  efforts,
  profileNames,
  readerProfileName,
  type Effort,
  type OutputMode,
  type ProfileSettings,
  type ToolExecution,
} from "./settings/agent.ts";
export { accountsOf } from "./settings/accounts.ts";
export { accountName, type WebhookAccount } from "./settings/channels.ts";
export { webhookSchemes, webhookSigners, type WebhookScheme, type WebhookSigner } from "./webhooks.ts";
export {
  admissionOf,
  defineChannel,
  PeoplePolicySchema,
  peopleSettings,
  secretVariable,
  type Admission,
  type ChannelCapabilities,
  type ChannelEntry,
  type LengthUnit,
  type PeoplePolicy,
  type SendRates,
  type TextFormat,
  type TextLimits,
} from "./channels/entry.ts";
export * from "./channels/index.ts";
export type { CheckpointSettings } from "./settings/checkpoints.ts";
export type { CompactionSettings } from "./settings/compaction.ts";
export type { ContextSettings } from "./settings/context.ts";
export type { HeartbeatSettings } from "./settings/heartbeat.ts";
export {
  compileAnywhere,
  compileCommand,
  compilePathPattern,
  compileText,
  escapePattern,
  type TextMatcher,
} from "./patterns.ts";
export {
  builtInToolNames,
  matcherPatterns,
  matchesNamePattern,
  ownToolName,
  toolNamesOf,
  unmatchedHooks,
} from "./tool-names.ts";
export { hookEvents, hookName, type HookEvent, type HookSettings } from "./settings/hooks.ts";
export type { McpServerSettings, McpSettings, SigningAlgorithm } from "./settings/mcp.ts";
export type { EmbedderSettings, MemorySettings } from "./settings/memory.ts";
export type { ModelsSettings } from "./settings/models.ts";
export type { ObserverSettings } from "./settings/observers.ts";
export {
  commandClassOf,
  namesOneTool,
  parsePermissionRule,
  type CommandClass,
  permissionModes,
  ruleLists,
  type RuleList,
  type PermissionMode,
  type PermissionRule,
  type PermissionSettings,
} from "./settings/permissions.ts";
export { isolationLevels, type IsolationLevel } from "./settings/isolation.ts";
export type { SearchSettings, WebSettings } from "./settings/tools.ts";
export { queueModes, type QueueMode } from "./settings/queue.ts";
export { builtInProviders, type LlmsSettings } from "./settings/llm.ts";
export { ViewRecordSchema, writtenSummary, type ViewRecord } from "./view-record.ts";
export { isUnfinished, maxTodos, TodoSchema, todosText, type Todo } from "./todos.ts";
export * as operations from "./operations/index.ts";
export { promptCommand, slashCommands } from "./operations/commands.ts";
export {
  type ControlProjection,
  type HttpProjection,
  type McpProjection,
  scopeOf,
  type OperationDefinition,
  type OperationInput,
  type OperationOutput,
  type SlashArgument,
  type SlashCommand,
  type SlashProjection,
} from "./operations/operation.ts";
