// Voice sessions, their utterances, and answers that wait to be spoken.
import { z } from "zod";
import { AttachmentSchema } from "../attachments.ts";
import { ReplyAddressSchema } from "../inbound.ts";
import { SenderSchema } from "../messages.ts";
import { Empty, Fenced, storeRequest } from "./shared.ts";

/**
 * `starting`: requested; `listening`; `stopping`: the server has not been notified yet. Ended: `stopped` by a person, `failed` by an error.
 */
const voiceStates = ["starting", "listening", "stopping", "stopped", "failed"] as const;

export const VoiceSessionSchema = z.object({
  voiceId: z.string(),
  /** The route of the session that receives the utterances. */
  route: z.string(),
  /** The session that the route is bound to now; null: none yet. */
  sessionId: z.string().nullable(),
  /** `microphone`, `loopback` or the name of a device. */
  source: z.string(),
  state: z.enum(voiceStates),
  /** The sender of the utterances. */
  sender: SenderSchema,
  /** Destination of answers; null: they are read from the session. */
  replyTo: ReplyAddressSchema.nullable(),
  /** The start was attempted and is not attempted again. */
  claimed: z.boolean(),
  /** The MCP server, and its own id of the session; null before it listens. */
  server: z.string().nullable(),
  sttSessionId: z.string().nullable(),
  /** The tool-runner of the server; null: every tool-runner reaches it. */
  runner: z.string().nullable(),
  /** All events up to this one are stored. */
  sinceSeq: z.number().int(),
  /** Number of utterances that became input. */
  utterances: z.number().int(),
  /** Why it failed, or what went wrong when it was stopped. */
  problem: z.string().nullable(),
  /** ISO 8601, UTC. */
  startedAt: z.string(),
  changedAt: z.string(),
});
export type VoiceSession = z.infer<typeof VoiceSessionSchema>;

/** Maximum characters of an utterance; longer text is truncated. */
export const maxUtteranceCharacters = 20_000;
/** Maximum events of one commit: as many as a server may return. */
const maxEvents = 500;

const UtteranceSchema = z.object({
  seq: z.number().int().nonnegative(),
  /** The server's event type; `utterance_final` becomes input. */
  type: z.string().max(64),
  text: z.string().max(maxUtteranceCharacters),
});
export type Utterance = z.infer<typeof UtteranceSchema>;

export const voiceOpen = storeRequest({
  subject: "store.voice.open",
  clients: ["channel-gateway"],
  doc: "Request a voice session for a route. `opened: false`: the route already has an active one, which is returned.",
  input: z.object({
    opId: z.uuid(),
    route: z.string().min(1).max(600),
    source: z.string().min(1).max(200),
    sender: SenderSchema,
    replyTo: ReplyAddressSchema.nullable(),
  }),
  output: z.object({ opened: z.boolean(), voice: VoiceSessionSchema }),
});

export const voiceStop = storeRequest({
  subject: "store.voice.stop",
  clients: ["channel-gateway"],
  doc: "End the voice session of a route. A session whose start was not attempted yet ends immediately; otherwise the leader stops it at the server. Null: the route has no active voice session.",
  input: z.object({ route: z.string().min(1).max(600) }),
  output: z.object({ voice: VoiceSessionSchema.nullable() }),
});

export const voiceGet = storeRequest({
  subject: "store.voice.get",
  clients: ["channel-gateway", "agent-core"],
  doc: "Get a voice session by its id, or the newest one of a route, with its newest events, oldest first; texts are truncated to 2,000 characters.",
  input: z.object({
    voiceId: z.string().optional(),
    route: z.string().optional(),
    events: z.number().int().min(0).max(100),
  }),
  output: z.object({
    voice: VoiceSessionSchema.nullable(),
    /** `at`: ISO 8601, UTC. */
    events: z.array(UtteranceSchema.extend({ at: z.string() })),
  }),
});

export const voiceWork = storeRequest({
  subject: "store.voice.work",
  clients: ["agent-core"],
  doc: "List active voice sessions. Sessions requested within `orderedMsAgo` are left out, because the gateway itself requests their start from the leader.",
  input: z.object({ orderedMsAgo: z.number().int().nonnegative() }),
  output: z.object({ voices: z.array(VoiceSessionSchema) }),
});

export const voiceMove = storeRequest({
  subject: "store.voice.move",
  clients: ["agent-core"],
  doc: "Claim the only attempt to start listening (`claimed`: not done when it was already claimed or the session is not `starting`), or record that a voice session listens or has ended. A session with a pending stop keeps it when listening begins; an ended session stays ended. `tell` is enqueued for the conversation that started it, in the same commit.",
  input: z.object({
    ...Fenced,
    voiceId: z.string(),
    to: z.discriminatedUnion("state", [
      z.object({ state: z.literal("claimed") }),
      z.object({
        state: z.literal("listening"),
        server: z.string(),
        sttSessionId: z.string(),
        runner: z.string().nullable(),
      }),
      z.object({ state: z.literal("stopped"), problem: z.string().max(2_000).nullable() }),
      z.object({ state: z.literal("failed"), problem: z.string().max(2_000) }),
    ]),
    tell: z.string().nullable(),
  }),
  output: z.object({ moved: z.boolean(), voice: VoiceSessionSchema.nullable() }),
});

export const voiceAdvance = storeRequest({
  subject: "store.voice.advance",
  clients: ["agent-core"],
  doc: "Store recognized speech: each `utterance_final` after the cursor becomes one inbox row, and the cursor advances in the same commit. Events up to the cursor are duplicates and change nothing.",
  input: z.object({
    ...Fenced,
    voiceId: z.string(),
    events: z.array(UtteranceSchema).min(1).max(maxEvents),
    /** How many events to keep for display. */
    keep: z.number().int().min(1),
  }),
  output: z.object({ state: z.enum(voiceStates), sinceSeq: z.number().int(), inboxIds: z.array(z.string()) }),
});

const SpokenReplySchema = z.object({
  spokenId: z.string(),
  turnId: z.string(),
  sessionId: z.string(),
  text: z.string(),
  /** Failed attempts. */
  attempts: z.number().int(),
});
export type SpokenReply = z.infer<typeof SpokenReplySchema>;

export const spokenPending = storeRequest({
  subject: "store.spoken.pending",
  clients: ["agent-core"],
  doc: "List due answers that wait to be spoken, oldest first. Answers that are no longer wanted are deleted.",
  input: z.object({ limit: z.number().int().min(1).max(100) }),
  output: z.object({ spoken: z.array(SpokenReplySchema) }),
});

export const spokenSettle = storeRequest({
  subject: "store.spoken.settle",
  clients: ["agent-core"],
  doc: "Record the outcome of a spoken answer: its audio is enqueued in this commit, once, or it is retried later or dropped.",
  input: z.object({
    ...Fenced,
    spokenId: z.string(),
    outcome: z.discriminatedUnion("state", [
      z.object({ state: z.literal("made"), attachment: AttachmentSchema }),
      z.object({ state: z.literal("retry"), afterMs: z.number().int().nonnegative() }),
      z.object({ state: z.literal("dropped") }),
    ]),
  }),
  output: Empty,
});
