// The subjects of the store. Writes carry `opId`: a repeated `opId` returns the first reply.
export {
  inboxEdit,
  inboxFlush,
  inboxGet,
  inboxList,
  inboxPending,
  inboxPut,
  inboxReady,
  type QueuedMessage,
} from "./store/inbox.ts";
export {
  approvalDecide,
  approvalGet,
  approvalList,
  approvalRequest,
  listedSummaryCharacters,
  type Approval,
} from "./store/approvals.ts";
export {
  FinishSchema,
  stepCommit,
  stepSettle,
  turnAppend,
  turnCancel,
  turnClaim,
  turnFinish,
  turnGet,
  turnPark,
  turnSpawn,
  type Finish,
  type InlineSettlement,
} from "./store/turns.ts";
export {
  eventList,
  prefixGet,
  prefixPut,
  sessionArchive,
  sessionBind,
  sessionBound,
  sessionCompact,
  sessionFork,
  sessionGet,
  sessionList,
  sessionMessages,
  sessionOpen,
  sessionUpdate,
  sessionUpdated,
  sessionView,
} from "./store/sessions.ts";
export { sessionTodos } from "./store/todos.ts";
export {
  outboxClaim,
  outboxGet,
  outboxPut,
  OutboxRowSchema,
  outboxReady,
  outboxSettle,
  type OutboxRow,
} from "./store/outbox.ts";
export {
  checkpointFiles,
  checkpointList,
  checkpointPageFiles,
  checkpointTrack,
  checkpointUnreferenced,
  type KeptDocument,
  rewindBegin,
  rewindDocument,
  rewindEnd,
  rewindPermit,
  type RewindPermit,
  rewindRenew,
} from "./store/checkpoints.ts";
export {
  callBlobBegin,
  callBlobCommit,
  callBlobGet,
  callBlobPut,
  callDocumentGet,
  callDocumentLines,
  callDocumentList,
  callDocumentPut,
  callSettle,
  stepClaim,
} from "./store/calls.ts";
export { leadershipAcquire, leaseAcquire, leaseRelease, leaseRenew } from "./store/leases.ts";
export { ContactSchema, contactGet, pairingApprove, pairingList, pairingRequest } from "./store/contacts.ts";
export {
  maxQuestionCharacters,
  questionAnswered,
  questionAsk,
  questionLook,
  questionRaise,
} from "./store/questions.ts";
export { stepSampled } from "./store/sampling.ts";
export { usageReport } from "./store/usage.ts";
export { OutgoingSchema, type Outgoing } from "./store/shared.ts";
export { documentLines, documentVouch } from "./store/document-lines.ts";
export {
  documentChanged,
  documentDelete,
  documentRestore,
  documentGet,
  documentHistory,
  documentList,
  documentPut,
} from "./store/documents.ts";
export {
  heartbeatFire,
  maxDueJobs,
  scheduleChanged,
  scheduleCreate,
  scheduleDue,
  scheduleEnds,
  scheduleFire,
  scheduleGet,
  scheduleHistory,
  scheduleList,
  scheduleMisses,
  scheduleOverlaps,
  scheduleRemove,
  scheduleRun,
  ScheduleRunSchema,
  ScheduleSchema,
  scheduleTargets,
  scheduleUpdate,
  type Schedule,
  type ScheduleRun,
} from "./store/schedules.ts";
export {
  memoryAppend,
  memoryEmbed,
  memoryForget,
  memoryGet,
  type MemoryHit,
  memorySearch,
  memoryUnembedded,
} from "./store/memory.ts";
export {
  memoryConsolidate,
  memoryMaterial,
  type MemoryProgress,
  type MemorySource,
} from "./store/memory-consolidation.ts";
export {
  processBegin,
  processCommandChars,
  processEnd,
  processList,
  processLose,
  processRenew,
  processTold,
} from "./store/processes.ts";
export {
  spokenPending,
  spokenSettle,
  voiceAdvance,
  voiceClaim,
  voiceGet,
  voiceMove,
  voiceOpen,
  voiceStop,
  voiceWork,
} from "./store/voice.ts";
export { mcpSwitch, mcpSwitches } from "./store/mcp.ts";
export { type Blob, blobBegin, blobChunkBytes, blobCommit, blobGet, blobHead, blobPut } from "./store/blobs.ts";
