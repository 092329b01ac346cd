// Voice sessions, what they have heard, and answers that wait to be spoken.
import { z } from "zod";
import { AttachmentSchema } from "../attachments.ts";
import { request } from "../contract.ts";
import { ReplyAddressSchema } from "../inbound.ts";
import { SenderSchema } from "../messages.ts";
import { Empty, Fenced } from "./shared.ts";

/**
 * `starting`: ordered; `listening`; `stopping`: the server is still to be told. Over: `stopped` by a person, `failed` by itself.
 */
const voiceStates = ["starting", "listening", "stopping", "stopped", "failed"] as const;

export const VoiceSessionSchema = z.object({
  voiceId: z.string(),
  /** Leads to the session that what is heard goes into. */
  route: z.string(),
  /** The session the route leads to now; null: there is none yet. */
  sessionId: z.string().nullable(),
  /** `microphone`, `loopback` or the name of a device. */
  source: z.string(),
  state: z.enum(voiceStates),
  /** Whose word is heard. */
  sender: SenderSchema,
  /** Where answers go; null: they are read from the session. */
  replyTo: ReplyAddressSchema.nullable(),
  /** Beginning to listen was tried: it is not tried again. */
  claimed: z.boolean(),
  /** The MCP server, and its own id of the session; null before it listens. */
  server: z.string().nullable(),
  sttSessionId: z.string().nullable(),
  /** The tool-runner whose server it is; null: any of them reaches it. */
  runner: z.string().nullable(),
  /** Everything up to this event has been kept. */
  sinceSeq: z.number().int(),
  /** Utterances that became input. */
  utterances: z.number().int(),
  /** Why it failed, or what went wrong when it was stopped. */
  problem: z.string().nullable(),
  /** ISO 8601, UTC. */
  startedAt: z.string(),
  changedAt: z.string(),
});
export type VoiceSession = z.infer<typeof VoiceSessionSchema>;

/** Characters of a text that was heard; what is longer is cut. */
export const maxHeardCharacters = 20_000;
/** Events of one commit: as many as a server may answer with. */
const maxEvents = 500;

const HeardSchema = z.object({
  seq: z.number().int().nonnegative(),
  /** As the server says it; `utterance_final` becomes input. */
  type: z.string().max(64),
  text: z.string().max(maxHeardCharacters),
});
export type Heard = z.infer<typeof HeardSchema>;

export const voiceOpen = request({
  subject: "store.voice.open",
  server: "store",
  clients: ["channel-gateway"],
  doc: "Order a voice session for a route. `opened: false`: the route has one that is not over; that one is answered.",
  input: z.object({
    opId: z.uuid(),
    route: z.string().min(1).max(600),
    source: z.string().min(1).max(200),
    sender: SenderSchema,
    replyTo: ReplyAddressSchema.nullable(),
  }),
  output: z.object({ opened: z.boolean(), voice: VoiceSessionSchema }),
});

export const voiceStop = request({
  subject: "store.voice.stop",
  server: "store",
  clients: ["channel-gateway"],
  doc: "End the voice session of a route. One that has not been tried yet is over at once; else the leader tells the server. Null: none is there that is not over.",
  input: z.object({ route: z.string().min(1).max(600) }),
  output: z.object({ voice: VoiceSessionSchema.nullable() }),
});

export const voiceGet = request({
  subject: "store.voice.get",
  server: "store",
  clients: ["channel-gateway", "agent-core"],
  doc: "A voice session by its id, or the newest one of a route; with its newest events, oldest first, texts cut at 2,000 characters.",
  input: z.object({
    voiceId: z.string().optional(),
    route: z.string().optional(),
    events: z.number().int().min(0).max(100),
  }),
  output: z.object({
    voice: VoiceSessionSchema.nullable(),
    /** `at`: ISO 8601, UTC. */
    events: z.array(HeardSchema.extend({ at: z.string() })),
  }),
});

export const voiceWork = request({
  subject: "store.voice.work",
  server: "store",
  clients: ["agent-core"],
  doc: "Voice sessions that are not over. Those that were only just ordered are left out: whoever ordered them asks the leader.",
  input: z.object({ orderedMsAgo: z.number().int().nonnegative() }),
  output: z.object({ voices: z.array(VoiceSessionSchema) }),
});

export const voiceClaim = request({
  subject: "store.voice.claim",
  server: "store",
  clients: ["agent-core"],
  doc: "Take the one attempt to begin listening. Not granted where it was taken before, or the session is not `starting`.",
  input: z.object({ ...Fenced, voiceId: z.string() }),
  output: z.object({ granted: z.boolean(), voice: VoiceSessionSchema.nullable() }),
});

export const voiceMove = request({
  subject: "store.voice.move",
  server: "store",
  clients: ["agent-core"],
  doc: "What became of a voice session: it listens, or it is over. One that was told to stop meanwhile stays so when it begins to listen; one that is over stays over. `tell` is sent to where it was started, in the same commit.",
  input: z.object({
    ...Fenced,
    voiceId: z.string(),
    to: z.discriminatedUnion("state", [
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

export const voiceAdvance = request({
  subject: "store.voice.advance",
  server: "store",
  clients: ["agent-core"],
  doc: "Keep what was heard: each `utterance_final` after the cursor becomes one row of the inbox, and the cursor follows in the same commit. What is not after the cursor is known and changes nothing.",
  input: z.object({
    ...Fenced,
    voiceId: z.string(),
    events: z.array(HeardSchema).min(1).max(maxEvents),
    /** How many events are kept to be looked at. */
    keep: z.number().int().min(1),
  }),
  output: z.object({ state: z.enum(voiceStates), sinceSeq: z.number().int(), inboxIds: z.array(z.string()) }),
});

const SpokenSchema = z.object({
  spokenId: z.string(),
  turnId: z.string(),
  sessionId: z.string(),
  text: z.string(),
  /** Tries that failed. */
  attempts: z.number().int(),
});
export type Spoken = z.infer<typeof SpokenSchema>;

export const spokenPending = request({
  subject: "store.spoken.pending",
  server: "store",
  clients: ["agent-core"],
  doc: "Answers that wait to be spoken, oldest first, as far as their time has come. Those that nobody wants any more are forgotten.",
  input: z.object({ limit: z.number().int().min(1).max(100) }),
  output: z.object({ spoken: z.array(SpokenSchema) }),
});

export const spokenSettle = request({
  subject: "store.spoken.settle",
  server: "store",
  clients: ["agent-core"],
  doc: "What became of an answer that was to be spoken: its sound goes out in this commit, once; or it is tried again later, or given up.",
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
