// The routes of the gateway that the command uses, with the schemas of their answers. Unknown fields are ignored, so that the command works
// with newer gateways.

import {
  checkpointRewind,
  controlCompact,
  controlHeartbeat,
  documentAuthors,
  DocumentSchema,
  type HttpProjection,
  mcpStatus,
  operations,
  permissionModes,
  ReplicaReportSchema,
  SessionSummarySchema,
  store,
} from "@parley/contracts";
import { z } from "zod";

/** A route, in the form of the definition of an operation. */
export interface Route<O extends z.ZodType = z.ZodType> {
  /** Fields of the input that the path names are its parameters; the others are the query of a GET, else the JSON body. */
  readonly http?: Pick<HttpProjection, "method" | "path">;
  readonly output: O;
}

export type Answer<R extends Route> = z.output<R["output"]>;

function route<O extends z.ZodType>(method: HttpProjection["method"], path: string, output: O): Route<O> {
  return { http: { method, path }, output };
}

const Status = z.object({
  version: z.string(),
  model: z.object({ provider: z.string(), model: z.string(), note: z.string().nullable() }).nullable(),
  replicas: z.array(ReplicaReportSchema),
  /** Deliveries by state, if the gateway counts them. */
  outbox: z.record(z.string(), z.number()).optional(),
  inbox: z.record(z.string(), z.number()).optional(),
});
const Agent = z.object({
  version: z.string(),
  model: z.object({ provider: z.string(), model: z.string() }).nullable(),
  tools: z.array(z.string()),
  /** Omitted by older gateways. */
  mcpServers: z.array(z.string()).optional(),
  permissionMode: z.enum(permissionModes),
  workspace: z.string().nullable(),
  /** Omitted by older gateways. */
  profiles: z.array(z.string()).default([]),
});
/** The stored message, or the result of a command such as `/stop`. */
const Stored = z.union([
  z.object({ messageId: z.string(), sessionId: z.string(), duplicate: z.boolean() }),
  z.object({ command: z.string(), text: z.string() }),
]);
const Session = z.object({ session: SessionSummarySchema });
const Job = z.object({ job: store.ScheduleSchema });
const Content = DocumentSchema.extend({ content: z.string() });
const Changed = z.object({ status: z.enum(["saved", "unchanged"]), document: DocumentSchema });
const Switch = store.mcpSwitch.output.shape.switch;
const Server = mcpStatus.output.shape.servers.element.extend({ switched: Switch.nullable() });
const Switched = z.object({
  server: z.string(),
  tool: z.string().nullable(),
  outcome: z.enum(["done", "same"]),
  switch: Switch,
});

export const api = {
  status: route("GET", "/api/status", Status),
  agent: route("GET", "/api/agent", Agent),
  consoleCode: route("POST", "/api/console/codes", z.object({ code: z.string(), expiresAt: z.string() })),
  sendMessage: route("POST", "/api/messages", Stored),
  message: route("GET", "/api/messages/:id", store.inboxGet.output),
  turn: route("GET", "/api/turns/:id", store.turnGet.output),
  sendText: route("POST", "/api/send", store.outboxPut.output),
  delivery: route("GET", "/api/outbox/:id", store.outboxGet.output),
  sessions: route("GET", "/api/sessions", store.sessionList.output),
  session: route("GET", "/api/sessions/:id", Session),
  messages: route("GET", "/api/sessions/:id/messages", store.sessionMessages.output),
  openSession: route("POST", "/api/sessions", Session),
  updateSession: route("PATCH", "/api/sessions/:id", Session),
  cancel: route("POST", "/api/sessions/:id/cancel", store.turnCancel.output),
  compact: route("POST", "/api/sessions/:id/compact", controlCompact.output),
  queue: route("GET", "/api/sessions/:id/queue", store.inboxList.output),
  cancelQueued: route("DELETE", "/api/sessions/:id/queue/:messageId", z.unknown()),
  editQueued: route("PATCH", "/api/sessions/:id/queue/:messageId", z.unknown()),
  checkpoints: route("GET", "/api/sessions/:id/checkpoints", store.checkpointList.output),
  rewind: route("POST", "/api/sessions/:id/rewind", checkpointRewind.output),
  takeProgramCall: operations.programCallsTake,
  answerProgramCall: operations.programCallsAnswer,
  approvals: operations.approvalsList,
  decide: operations.approvalsDecide,
  rules: operations.rulesList,
  addRules: operations.rulesAdd,
  removeRules: operations.rulesRemove,
  trace: operations.turnsTrace,
  work: operations.workGet,
  retryDeadLetter: operations.deadLettersRetry,
  usage: route("GET", "/api/usage", store.usageReport.output),
  pairings: route("GET", "/api/pairings", store.pairingList.output),
  approvePairing: route("POST", "/api/pairings/approve", store.pairingApprove.output),
  channels: operations.channelsList,
  addChannel: operations.channelsAdd,
  removeChannel: operations.channelsRemove,
  testChannel: operations.channelsTest,
  pauseChannel: operations.channelsPause,
  resumeChannel: operations.channelsResume,
  moveChannel: operations.channelsMove,
  channelLogs: operations.channelsLogs,
  tokens: operations.tokensList,
  createToken: operations.tokensCreate,
  revokeToken: operations.tokensRevoke,
  audit: operations.auditEntries,
  people: operations.peopleList,
  peopleLimits: operations.peopleLimits,
  limitPerson: operations.peopleLimit,
  setPerson: operations.peopleSet,
  removePerson: operations.peopleRemove,
  linkPerson: operations.peopleLink,
  jobs: route("GET", "/api/schedules", store.scheduleList.output),
  addJob: route("POST", "/api/schedules", Job),
  updateJob: route("POST", "/api/schedules/:id/update", Job),
  removeJob: route("POST", "/api/schedules/:id/remove", Job),
  runJob: route("POST", "/api/schedules/:id/run", Job.extend({ messageId: z.string(), sessionId: z.string() })),
  jobHistory: route("GET", "/api/schedules/:id/history", store.scheduleGet.output.pick({ runs: true })),
  heartbeat: route("POST", "/api/heartbeat", controlHeartbeat.output),
  servers: route("GET", "/api/mcp", z.object({ servers: z.array(Server) })),
  server: route("GET", "/api/mcp/:server", z.object({ server: Server, tools: mcpStatus.output.shape.tools })),
  switchServer: route("POST", "/api/mcp/:server", Switched),
  skills: operations.skillsList,
  documents: route("GET", "/api/documents", z.object({ documents: z.array(DocumentSchema) })),
  document: route("GET", "/api/documents/content", z.object({ document: Content })),
  authoredDocument: route(
    "GET",
    "/api/documents/content",
    z.object({ document: Content.extend({ authors: z.array(z.enum(documentAuthors)) }) }),
  ),
  documentHistory: route("GET", "/api/documents/history", store.documentHistory.output),
  putDocument: route("POST", "/api/documents/put", Changed),
  deleteDocument: route("POST", "/api/documents/delete", Changed),
  restoreDocument: route("POST", "/api/documents/restore", Changed),
  vouchDocument: route("POST", "/api/documents/vouch", Changed),
};
