// The tables as the query builder sees them. migrations/ creates them; a test holds the two against each other.
import type { store } from "@parley/contracts";
import { bigint, boolean, integer, pgSchema, smallint, text, timestamp, uuid } from "./drizzle.ts";
import type { z } from "zod";

const parley = pgSchema("parley");
const counter = (name: string) => bigint(name, { mode: "number" });
const time = (name: string) => timestamp(name, { withTimezone: true, mode: "string" });
const tokens = {
  inputTokens: counter("input_tokens").notNull(),
  outputTokens: counter("output_tokens").notNull(),
  cacheReadTokens: counter("cache_read_tokens").notNull(),
  cacheWriteTokens: counter("cache_write_tokens").notNull(),
};

export const sessions = parley.table("sessions", {
  id: uuid("id").primaryKey(),
  key: text("key").notNull(),
  seq: counter("seq").notNull(),
  inboxSeq: counter("inbox_seq").notNull(),
  messageCount: integer("message_count").notNull(),
  ...tokens,
  createdAt: time("created_at").notNull(),
  updatedAt: time("updated_at").notNull(),
  title: text("title"),
  status: text("status", { enum: ["active", "archived"] }).notNull(),
  parentId: uuid("parent_id"),
  profile: text("profile"),
  depth: smallint("depth").notNull(),
  costMicros: counter("cost_micros").notNull(),
  unpricedCalls: integer("unpriced_calls").notNull(),
  overrides: text("overrides"),
  view: text("view"),
  viewVersion: integer("view_version").notNull(),
  prefixHash: text("prefix_hash"),
  todos: text("todos"),
});

export const prefixes = parley.table("prefixes", {
  hash: text("hash").primaryKey(),
  content: text("content").notNull(),
  createdAt: time("created_at").notNull(),
});

export const bindings = parley.table("bindings", {
  route: text("route").primaryKey(),
  sessionId: uuid("session_id").notNull(),
  boundAt: time("bound_at").notNull(),
});

const taskModes = ["wait", "background"] as const;

export const turns = parley.table("turns", {
  id: uuid("id").primaryKey(),
  sessionId: uuid("session_id").notNull(),
  inboxId: uuid("inbox_id").notNull(),
  state: text("state", { enum: ["running", "done", "failed", "cancelled", "dead"] }).notNull(),
  epoch: counter("epoch").notNull(),
  attempts: integer("attempts").notNull(),
  replyTo: text("reply_to"),
  nextStep: integer("next_step").notNull(),
  modelSteps: integer("model_steps").notNull(),
  cancelRequested: boolean("cancel_requested").notNull(),
  exitReason: text("exit_reason"),
  answer: text("answer"),
  ...tokens,
  startedAt: time("started_at").notNull(),
  claimedAt: time("claimed_at").notNull(),
  finishedAt: time("finished_at"),
  trust: text("trust").notNull(),
  parked: boolean("parked").notNull(),
  wakeAt: time("wake_at"),
  parentTurnId: uuid("parent_turn_id"),
  parentStep: integer("parent_step"),
  parentMode: text("parent_mode", { enum: taskModes }),
  rootTurnId: uuid("root_turn_id"),
  costMicros: counter("cost_micros").notNull(),
  unpricedCalls: integer("unpriced_calls").notNull(),
});

export const inbox = parley.table("inbox", {
  id: uuid("id").primaryKey(),
  sessionId: uuid("session_id").notNull(),
  seq: counter("seq").notNull(),
  channel: text("channel").notNull(),
  account: text("account").notNull(),
  externalId: text("external_id").notNull(),
  priority: smallint("priority").notNull(),
  parts: text("parts").notNull(),
  replyTo: text("reply_to"),
  sender: text("sender").notNull(),
  state: text("state", { enum: ["queued", "claimed", "done", "dead", "cancelled"] }).notNull(),
  turnId: uuid("turn_id"),
  receivedAt: time("received_at").notNull(),
  mode: text("mode", { enum: ["steer", "queue", "coalesce", "interrupt", "reject"] }).notNull(),
  trust: text("trust").notNull(),
  readyAt: time("ready_at").notNull(),
  parentTurnId: uuid("parent_turn_id"),
  parentStep: integer("parent_step"),
  parentMode: text("parent_mode", { enum: taskModes }),
  trace: text("trace"),
});

export const messages = parley.table("messages", {
  sessionId: uuid("session_id").notNull(),
  seq: counter("seq").notNull(),
  turnId: uuid("turn_id").notNull(),
  role: text("role", { enum: ["user", "assistant", "tool"] }).notNull(),
  parts: text("parts").notNull(),
  model: text("model"),
  createdAt: time("created_at").notNull(),
  sender: text("sender"),
});

export const steps = parley.table("steps", {
  turnId: uuid("turn_id").notNull(),
  n: integer("n").notNull(),
  kind: text("kind", { enum: ["model", "tool"] }).notNull(),
  state: text("state", { enum: ["intended", "running", "done", "failed", "cancelled", "unknown"] }).notNull(),
  epoch: counter("epoch").notNull(),
  model: text("model"),
  stopReason: text("stop_reason"),
  usage: text("usage"),
  callId: text("call_id"),
  tool: text("tool"),
  class: text("class", { enum: ["pure", "idempotent", "once"] }),
  input: text("input"),
  result: text("result"),
  runner: text("runner"),
  starts: integer("starts").notNull(),
  messageSeq: counter("message_seq"),
  createdAt: time("created_at").notNull(),
  startedAt: time("started_at"),
  finishedAt: time("finished_at"),
  costMicros: counter("cost_micros"),
});

export const events = parley.table("events", {
  sessionId: uuid("session_id").notNull(),
  seq: counter("seq").notNull(),
  type: text("type", {
    enum: ["turn.finished", "compacted", "approval.requested", "approval.decided", "question.asked"],
  }).notNull(),
  turnId: uuid("turn_id").notNull(),
  createdAt: time("created_at").notNull(),
  body: text("body"),
});

export const questions = parley.table("questions", {
  turnId: uuid("turn_id").notNull(),
  n: integer("n").notNull(),
  sessionId: uuid("session_id").notNull(),
  trust: text("trust").notNull(),
  body: text("body").notNull(),
  state: text("state", { enum: ["open", "answered", "over"] }).notNull(),
  askedAt: time("asked_at").notNull(),
  expiresAt: time("expires_at").notNull(),
  raisedAs: uuid("raised_as"),
  answer: text("answer"),
  heldUntil: time("held_until"),
  raised: integer("raised").notNull(),
  answeredBy: uuid("answered_by"),
  fetched: boolean("fetched").notNull(),
});

export const approvals = parley.table("approvals", {
  id: text("id").primaryKey(),
  sessionId: uuid("session_id").notNull(),
  turnId: uuid("turn_id").notNull(),
  n: integer("n").notNull(),
  tool: text("tool").notNull(),
  callHash: text("call_hash").notNull(),
  summary: text("summary").notNull(),
  reason: text("reason").notNull(),
  state: text("state", { enum: ["pending", "allowed", "denied", "expired"] }).notNull(),
  always: boolean("always").notNull(),
  requestedAt: time("requested_at").notNull(),
  expiresAt: time("expires_at").notNull(),
  decidedBy: text("decided_by"),
  decidedAt: time("decided_at"),
});

export const outbox = parley.table("outbox", {
  id: counter("id").primaryKey(),
  turnId: uuid("turn_id"),
  opId: uuid("op_id"),
  ordinal: integer("ordinal").notNull(),
  channel: text("channel").notNull(),
  account: text("account").notNull(),
  conversation: text("conversation").notNull(),
  replyToId: text("reply_to_id"),
  body: text("body").notNull(),
  state: text("state", { enum: ["pending", "sending", "sent", "unknown", "dropped"] }).notNull(),
  attempts: integer("attempts").notNull(),
  notBefore: time("not_before").notNull(),
  expiresAt: time("expires_at").notNull(),
  claimReplica: text("claim_replica"),
  claimIncarnation: text("claim_incarnation"),
  claimUntil: time("claim_until"),
  providerMessageId: text("provider_message_id"),
  error: text("error"),
  createdAt: time("created_at").notNull(),
  settledAt: time("settled_at"),
  trace: text("trace"),
  attachment: text("attachment"),
});

export const leadership = parley.table("leadership", {
  name: text("name").primaryKey(),
  epoch: counter("epoch").notNull(),
  holder: text("holder"),
  acquiredAt: time("acquired_at"),
});

export const leadershipLog = parley.table("leadership_log", {
  epoch: counter("epoch").primaryKey(),
  holder: text("holder").notNull(),
  acquiredAt: time("acquired_at").notNull(),
});

export const ops = parley.table("ops", {
  opId: uuid("op_id").primaryKey(),
  result: text("result").notNull(),
  createdAt: time("created_at").notNull(),
});

export const leases = parley.table("leases", {
  name: text("name").primaryKey(),
  owner: text("owner"),
  fence: counter("fence").notNull(),
  expiresAt: time("expires_at").notNull(),
  cursor: text("cursor"),
});

export const contacts = parley.table("contacts", {
  channel: text("channel").notNull(),
  account: text("account").notNull(),
  contactId: text("contact_id").notNull(),
  name: text("name"),
  role: text("role", { enum: ["owner", "user", "guest", "blocked"] }).notNull(),
  createdAt: time("created_at").notNull(),
});

export const pairings = parley.table("pairings", {
  channel: text("channel").notNull(),
  account: text("account").notNull(),
  contactId: text("contact_id").notNull(),
  name: text("name"),
  codeSha256: text("code_sha256").notNull(),
  expiresAt: time("expires_at").notNull(),
});

export const documents = parley.table("documents", {
  path: text("path").notNull(),
  version: integer("version").notNull(),
  change: counter("change").notNull(),
  content: text("content").notNull(),
  bytes: integer("bytes").notNull(),
  sha256: text("sha256").notNull(),
  deleted: boolean("deleted").notNull(),
  author: text("author", { enum: ["owner", "import", "agent", "untrusted"] }).notNull(),
  turnId: uuid("turn_id"),
  latest: boolean("latest").notNull(),
  createdAt: time("created_at").notNull(),
  restoredFrom: integer("restored_from"),
  lineAuthor: text("line_author", { enum: ["owner", "import", "agent", "untrusted"] }),
});

export const checkpoints = parley.table("checkpoints", {
  id: uuid("id").primaryKey(),
  sessionId: uuid("session_id").notNull(),
  kind: text("kind", { enum: ["turn", "rewind"] }).notNull(),
  at: time("at").notNull(),
});

export const checkpointFiles = parley.table("checkpoint_files", {
  checkpointId: uuid("checkpoint_id").notNull(),
  path: text("path").notNull(),
  n: counter("n").notNull(),
  kind: text("kind", { enum: ["file", "link", "directory", "absent", "untracked"] }).notNull(),
  sha256: text("sha256"),
  size: counter("size"),
  mode: integer("mode"),
  reason: text("reason"),
  trackedAt: time("tracked_at").notNull(),
});

export const checkpointDocuments = parley.table("checkpoint_documents", {
  checkpointId: uuid("checkpoint_id").notNull(),
  path: text("path").notNull(),
  version: integer("version").notNull(),
});

export const rewinds = parley.table("rewinds", {
  id: uuid("id").primaryKey(),
  sessionId: uuid("session_id").notNull(),
  targetId: uuid("target_id").notNull(),
  state: text("state", { enum: ["running", "done", "failed"] }).notNull(),
  runner: text("runner").notNull(),
  fence: counter("fence").notNull(),
  expiresAt: time("expires_at").notNull(),
  report: text("report"),
  beganAt: time("began_at").notNull(),
});

export const schedules = parley.table("schedules", {
  id: text("id").primaryKey(),
  name: text("name").notNull(),
  schedule: text("schedule").notNull(),
  anchor: time("anchor").notNull(),
  timeZone: text("time_zone").notNull(),
  prompt: text("prompt").notNull(),
  target: text("target", { enum: ["main", "own"] }).notNull(),
  deliverTo: text("deliver_to"),
  overlap: text("overlap", { enum: ["skip", "queue"] }).notNull(),
  missed: text("missed", { enum: ["skip", "run_once"] }).notNull(),
  afterRun: text("after_run", { enum: ["disable", "delete"] }).notNull(),
  maxRuns: integer("max_runs"),
  keepRuns: integer("keep_runs").notNull(),
  enabled: boolean("enabled").notNull(),
  runs: integer("runs").notNull(),
  nextDue: time("next_due"),
  lastDue: time("last_due"),
  lastInboxId: uuid("last_inbox_id"),
  createdBy: text("created_by").notNull(),
  createdAt: time("created_at").notNull(),
  updatedAt: time("updated_at").notNull(),
});

export const scheduleRuns = parley.table("schedule_runs", {
  jobId: text("job_id").notNull(),
  due: time("due").notNull(),
  at: time("at").notNull(),
  manual: boolean("manual").notNull(),
  outcome: text("outcome", { enum: ["fired", "skipped", "missed", "failed"] }).notNull(),
  reason: text("reason"),
  inboxId: uuid("inbox_id"),
});

export const voiceSessions = parley.table("voice_sessions", {
  id: uuid("id").primaryKey(),
  opId: uuid("op_id").notNull(),
  route: text("route").notNull(),
  source: text("source").notNull(),
  sender: text("sender").notNull(),
  replyTo: text("reply_to"),
  state: text("state", { enum: ["starting", "listening", "stopping", "stopped", "failed"] }).notNull(),
  claimedEpoch: counter("claimed_epoch"),
  server: text("server"),
  sttSessionId: text("stt_session_id"),
  runner: text("runner"),
  sinceSeq: counter("since_seq").notNull(),
  utterances: integer("utterances").notNull(),
  problem: text("problem"),
  startedAt: time("started_at").notNull(),
  changedAt: time("changed_at").notNull(),
});

export const voiceEvents = parley.table("voice_events", {
  voiceId: uuid("voice_id").notNull(),
  seq: counter("seq").notNull(),
  type: text("type").notNull(),
  text: text("text").notNull(),
  at: time("at").notNull(),
});

export const spokenReplies = parley.table("spoken_replies", {
  id: counter("id").primaryKey(),
  turnId: uuid("turn_id").notNull(),
  text: text("text").notNull(),
  address: text("address").notNull(),
  attempts: integer("attempts").notNull(),
  notBefore: time("not_before").notNull(),
  expiresAt: time("expires_at").notNull(),
});

export const processes = parley.table("processes", {
  id: text("id").primaryKey(),
  sessionId: uuid("session_id").notNull(),
  turnId: uuid("turn_id").notNull(),
  runner: text("runner").notNull(),
  command: text("command").notNull(),
  startedAt: time("started_at").notNull(),
  notify: boolean("notify").notNull(),
  tainted: boolean("tainted").notNull(),
  told: boolean("told").notNull(),
  state: text("state", { enum: ["running", "ended", "lost"] }).notNull(),
  seenAt: time("seen_at").notNull(),
  endedAt: time("ended_at"),
  inboxId: uuid("inbox_id"),
});

export const mcpSwitches = parley.table("mcp_switches", {
  server: text("server").primaryKey(),
  switchedOn: boolean("switched_on").notNull(),
  hidden: text("hidden").notNull(),
  restarts: integer("restarts").notNull(),
  changedBy: text("changed_by").notNull(),
  changedAt: time("changed_at").notNull(),
});

export const blobs = parley.table("blobs", {
  sha256: text("sha256").primaryKey(),
  bytes: counter("bytes").notNull(),
  mediaType: text("media_type").notNull(),
  place: text("place", { enum: ["database", "folder", "bucket"] }).notNull(),
  touchedAt: time("touched_at").notNull(),
  doomedAt: time("doomed_at"),
  object: text("object"),
});

export const blobStrays = parley.table("blob_strays", {
  place: text("place", { enum: ["folder", "bucket"] }).notNull(),
  object: text("object").notNull(),
  removeAt: time("remove_at").notNull(),
  removing: boolean("removing").notNull(),
});

export const blobUploads = parley.table("blob_uploads", {
  id: uuid("id").primaryKey(),
  sha256: text("sha256").notNull(),
  bytes: counter("bytes").notNull(),
  done: boolean("done").notNull(),
  createdAt: time("created_at").notNull(),
});

export const blobRefs = parley.table("blob_refs", {
  sessionId: uuid("session_id").notNull(),
  sha256: text("sha256").notNull(),
});

// Table and wire cannot drift apart: a contact row is a contact on the wire.
type WireContact = z.infer<typeof store.ContactSchema>;
const _contactMatches = (row: Omit<typeof contacts.$inferSelect, "createdAt">): WireContact => row;
void _contactMatches;
