// Every subject of the bus, in one list: types, permissions and docs/protocol.md come from here.
import { z } from "zod";
import * as control from "./control.ts";
import { event, hint, type Contract } from "./contract.ts";
import { SessionEventSchema } from "./events.ts";
import { healthReports } from "./health.ts";
import { checkpointRewind } from "./checkpoints.ts";
import { hookRun } from "./hooks.ts";
import * as mcp from "./mcp.ts";
import * as sampling from "./sampling.ts";
import * as skills from "./skills.ts";
import * as store from "./store.ts";
import * as tools from "./tools.ts";
import * as voice from "./voice.ts";

export const inboxReady = hint({
  subject: "inbox.ready",
  publishers: ["store"],
  consumers: ["agent-core"],
  doc: "A row waits in this session's inbox.",
  payload: store.inboxReady,
});

export const outboxReady = hint({
  subject: "outbox.ready.{channel}",
  publishers: ["store"],
  consumers: ["channel-gateway"],
  doc: "A row waits in the outbox of one of this channel's accounts.",
  payload: store.outboxReady,
});

export const stepSettled = hint({
  subject: "step.settled.{turn}",
  publishers: ["store"],
  consumers: ["agent-core"],
  doc: "A tool step of this turn has its result.",
  payload: z.object({ turnId: z.string(), n: z.number().int() }),
});

export const leaseReleased = hint({
  subject: "lease.released",
  publishers: ["store"],
  consumers: ["channel-gateway"],
  doc: "A connection was given up; whoever stands by may take it.",
  payload: z.object({ name: z.string() }),
});

export const sessionBound = hint({
  subject: "session.bound",
  publishers: ["store"],
  consumers: ["channel-gateway"],
  doc: "A route leads to another session from now on.",
  payload: store.sessionBound,
});

export const sessionUpdated = hint({
  subject: "session.updated",
  publishers: ["store"],
  consumers: ["channel-gateway"],
  doc: "What belongs to one session alone was changed: its title, its overrides.",
  payload: store.sessionUpdated,
});

export const documentChanged = hint({
  subject: "document.changed",
  publishers: ["store"],
  consumers: ["agent-core"],
  doc: "A document has a new version; who keeps it reads it again.",
  payload: store.documentChanged,
});

export const scheduleChanged = hint({
  subject: "schedule.changed",
  publishers: ["store"],
  consumers: ["agent-core"],
  doc: "A job is new, or due at another time; the leader looks when the next one is due.",
  payload: store.scheduleChanged,
});

export const sessionEvent = event({
  subject: "turn.{session}.event",
  publishers: ["agent-core", "store"],
  consumers: ["channel-gateway"],
  doc: "What happens in a session, as it happens.",
  payload: SessionEventSchema,
});

export const leaderChanged = event({
  subject: "leader.changed",
  publishers: ["agent-core"],
  consumers: ["agent-core", "channel-gateway", "tool-runner"],
  doc: "A new epoch has begun.",
  payload: z.object({ epoch: z.number().int(), holder: z.string() }),
});

export const leaderReleased = event({
  subject: "leader.released",
  publishers: ["agent-core"],
  consumers: ["agent-core"],
  doc: "The leader has stopped its work and gives the leadership up; a standby may take over now.",
  payload: z.object({ epoch: z.number().int(), holder: z.string() }),
});

export const registry: readonly Contract[] = [
  store.inboxPut,
  store.inboxGet,
  store.inboxPending,
  store.inboxList,
  store.inboxEdit,
  store.inboxFlush,
  store.turnClaim,
  store.stepCommit,
  store.turnAppend,
  store.turnPark,
  store.turnSpawn,
  store.turnFinish,
  store.turnCancel,
  store.turnGet,
  store.stepClaim,
  store.stepSettle,
  store.stepSampled,
  store.sessionGet,
  store.sessionList,
  store.sessionMessages,
  store.sessionUpdate,
  store.sessionCompact,
  store.sessionTodos,
  store.sessionOpen,
  store.sessionBind,
  store.sessionFork,
  store.sessionArchive,
  store.sessionView,
  store.questionAsk,
  store.questionRaise,
  store.questionLook,
  store.questionAnswered,
  store.usageReport,
  store.prefixPut,
  store.prefixGet,
  store.approvalRequest,
  store.approvalDecide,
  store.approvalList,
  store.eventList,
  store.outboxPut,
  store.outboxGet,
  store.outboxClaim,
  store.outboxSettle,
  store.leadershipAcquire,
  store.leaseAcquire,
  store.leaseRenew,
  store.leaseRelease,
  store.contactGet,
  store.pairingRequest,
  store.pairingList,
  store.pairingApprove,
  store.checkpointTrack,
  store.checkpointList,
  store.checkpointFiles,
  store.checkpointForget,
  store.checkpointUnreferenced,
  store.rewindBegin,
  store.rewindRenew,
  store.rewindEnd,
  store.documentList,
  store.documentGet,
  store.documentPut,
  store.documentDelete,
  store.documentRestore,
  store.documentHistory,
  store.blobBegin,
  store.blobPut,
  store.blobCommit,
  store.blobHead,
  store.blobGet,
  store.memorySearch,
  store.memoryGet,
  store.memoryAppend,
  store.memoryForget,
  store.memoryUnembedded,
  store.memoryEmbed,
  store.memoryMaterial,
  store.memoryConsolidate,
  store.scheduleCreate,
  store.scheduleUpdate,
  store.scheduleRemove,
  store.scheduleGet,
  store.scheduleList,
  store.scheduleHistory,
  store.scheduleRun,
  store.scheduleDue,
  store.scheduleFire,
  store.heartbeatFire,
  store.voiceOpen,
  store.voiceStop,
  store.voiceGet,
  store.voiceWork,
  store.voiceClaim,
  store.voiceMove,
  store.voiceAdvance,
  store.spokenPending,
  store.spokenSettle,
  store.processBegin,
  store.processEnd,
  store.processTold,
  store.processRenew,
  store.processLose,
  store.processList,
  store.mcpSwitches,
  store.mcpSwitch,
  inboxReady,
  outboxReady,
  stepSettled,
  leaseReleased,
  sessionBound,
  sessionUpdated,
  documentChanged,
  scheduleChanged,
  skills.toolRequirements,
  tools.toolCatalog,
  tools.toolCall,
  tools.toolAlive,
  tools.toolProgress,
  tools.toolCancel,
  tools.toolProcess,
  tools.toolProcesses,
  tools.toolStop,
  mcp.toolsChanged,
  mcp.mcpAuthorize,
  mcp.mcpAuthorized,
  mcp.mcpPrompts,
  mcp.mcpPrompt,
  mcp.mcpLook,
  mcp.mcpSwitched,
  sampling.agentSample,
  sampling.agentSampleCancel,
  voice.voiceServers,
  voice.voiceCall,
  voice.voiceChanged,
  voice.voiceNews,
  checkpointRewind,
  hookRun,
  sessionEvent,
  control.controlPing,
  control.controlCancel,
  control.controlModels,
  control.controlHeartbeat,
  voice.controlVoice,
  control.controlCompact,
  control.controlSessionEnded,
  leaderChanged,
  leaderReleased,
  ...Object.values(healthReports),
];
