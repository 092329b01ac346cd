// The list of all bus subjects, from which types, permissions and docs/protocol.md are derived.
import { z } from "zod";
import * as control from "./control.ts";
import { event, hint, type Contract } from "./contract.ts";
import { SessionEventSchema } from "./events.ts";
import { accountLogs, accountReports, healthReports } from "./health.ts";
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
  doc: "A row waits in this session's inbox, or is the input of a turn that was started with it.",
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
  doc: "A replica released a connection's lease; another replica may acquire it.",
  payload: z.object({ name: z.string() }),
});

export const accountChanged = hint({
  subject: "account.changed",
  publishers: ["store"],
  consumers: ["channel-gateway"],
  doc: "An account of a channel was added, changed or removed.",
  payload: z.object({ channel: z.string(), account: z.string() }),
});

export const sendPaused = hint({
  subject: "send.paused",
  publishers: ["channel-gateway"],
  consumers: ["channel-gateway"],
  doc: "A platform demanded that an account sends nothing for a time; texts that are claimed already wait too. The pause itself is stored.",
  payload: store.sendPaused,
});

export const sessionBound = hint({
  subject: "session.bound",
  publishers: ["store"],
  consumers: ["channel-gateway"],
  doc: "A route is now bound to another session.",
  payload: store.sessionBound,
});

export const sessionUpdated = hint({
  subject: "session.updated",
  publishers: ["store"],
  consumers: ["channel-gateway"],
  doc: "The title, the status or the overrides of a session changed.",
  payload: store.sessionUpdated,
});

export const documentChanged = hint({
  subject: "document.changed",
  publishers: ["store"],
  consumers: ["agent-core"],
  doc: "A document has a new version; caches of it are outdated.",
  payload: store.documentChanged,
});

export const scheduleChanged = hint({
  subject: "schedule.changed",
  publishers: ["store"],
  consumers: ["agent-core"],
  doc: "A job is new or its due time changed; the leader checks when the next job is due.",
  payload: store.scheduleChanged,
});

export const sessionEvent = event({
  subject: "turn.{session}.event",
  publishers: ["agent-core", "store"],
  consumers: ["channel-gateway"],
  doc: "Live events of a session.",
  payload: SessionEventSchema,
});

export const leaderChanged = event({
  subject: "leader.changed",
  publishers: ["agent-core"],
  consumers: ["agent-core", "channel-gateway", "tool-runner"],
  doc: "A new epoch has begun.",
  payload: z.object({ epoch: z.number().int(), holder: z.string() }),
});

export const leaderCapacity = hint({
  subject: "leader.capacity",
  publishers: ["agent-core"],
  consumers: ["store"],
  doc: "Whether the leader has free turns; sent every 2 s and when it changes. With free turns the store starts a turn in the commit of its message.",
  payload: z.object({ epoch: z.number().int(), free: z.boolean() }),
});

export const leaderReleased = event({
  subject: "leader.released",
  publishers: ["agent-core"],
  consumers: ["agent-core"],
  doc: "The leader stopped its work and released the leadership; a standby may take over now.",
  payload: z.object({ epoch: z.number().int(), holder: z.string() }),
});

function isContract(exported: unknown): exported is Contract {
  return typeof exported === "object" && exported !== null && "subject" in exported;
}

// A bundle without this list leaves out the contracts that its service does not use.
export const registry: readonly Contract[] = /* @__PURE__ */ allContracts();

function allContracts(): Contract[] {
  return [
    ...Object.values<unknown>(store).filter(isContract),
    inboxReady,
    outboxReady,
    stepSettled,
    leaseReleased,
    accountChanged,
    sendPaused,
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
    mcp.mcpConsent,
    mcp.mcpAuthorize,
    mcp.mcpAuthorized,
    mcp.mcpPrompts,
    mcp.mcpPrompt,
    mcp.mcpStatus,
    mcp.mcpSwitched,
    sampling.agentSample,
    sampling.agentSampleCancel,
    voice.voiceServers,
    voice.voiceCall,
    voice.voiceChanged,
    checkpointRewind,
    hookRun,
    sessionEvent,
    control.controlPing,
    control.controlCancel,
    control.controlModels,
    skills.controlSkills,
    control.controlModelRequest,
    control.controlStreaming,
    control.controlHeartbeat,
    voice.controlVoice,
    control.controlCompact,
    control.controlSessionEnded,
    leaderChanged,
    leaderCapacity,
    leaderReleased,
    accountLogs,
    accountReports,
    ...Object.values(healthReports),
  ];
}
