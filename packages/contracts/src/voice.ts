// What is said on the bus about listening: agent-core asks tool-runners for MCP servers that turn speech into text, and the gateway
// asks the leader.
import { z } from "zod";
import { hint, request } from "./contract.ts";
import { VoiceSessionSchema } from "./store/voice.ts";

/** The tools of a listening server, by what they are for; their names are settings. */
export const sttTools = ["start", "updates", "stop", "session", "devices"] as const;
export type SttTool = (typeof sttTools)[number];

export const voiceServers = request({
  subject: "voice.servers",
  server: "tool-runner",
  served: "all",
  clients: ["agent-core"],
  doc: "The MCP servers of this tool-runner, and which of the tools that listen each of them has.",
  input: z.object({}),
  output: z.object({
    /** The replica's name. */
    runner: z.string(),
    servers: z.array(
      z.object({
        server: z.string(),
        /** It is behind an address: any replica reaches the same one. */
        shared: z.boolean(),
        has: z.array(z.enum(sttTools)),
      }),
    ),
  }),
});

export const voiceCall = request({
  subject: "voice.call.{replica}",
  server: "tool-runner",
  served: "all",
  clients: ["agent-core"],
  // Beginning to listen twice is two sessions.
  idempotent: false,
  doc: "Call one of the tools that listen, on the server of this very tool-runner. Refused with STALE_EPOCH when it has seen a higher epoch.",
  input: z.object({
    epoch: z.number().int(),
    server: z.string(),
    tool: z.enum(sttTools),
    arguments: z.record(z.string(), z.unknown()),
    timeoutMs: z.number().int().positive(),
  }),
  output: z.discriminatedUnion("outcome", [
    /** The server's answer, as far as it is a JSON object. */
    z.object({ outcome: z.literal("answered"), value: z.record(z.string(), z.unknown()) }),
    /** Why there is no answer, in a sentence. */
    z.object({ outcome: z.literal("failed"), problem: z.string() }),
  ]),
});

export const controlVoice = request({
  subject: "agent.control.voice",
  server: "agent-core",
  served: "leader",
  clients: ["channel-gateway"],
  doc: "Begin to listen for a voice session that the store has (`start`; asked again it is the same beginning), ask its server how it does (`status`), or which devices there are (`devices`).",
  input: z.discriminatedUnion("do", [
    z.object({ do: z.literal("start"), voiceId: z.string() }),
    z.object({ do: z.literal("status"), voiceId: z.string() }),
    z.object({ do: z.literal("devices") }),
  ]),
  output: z.object({
    /** As it is now; null where none is meant. */
    voice: VoiceSessionSchema.nullable(),
    /** What the server says of it, or why it says nothing, and how news of it come; null: nothing to say. */
    text: z.string().nullable(),
  }),
});

export const voiceChanged = hint({
  subject: "voice.changed",
  publishers: ["store"],
  consumers: ["agent-core"],
  doc: "A voice session is to end, or an answer waits to be spoken.",
  payload: z.object({}),
});

export const voiceNews = hint({
  subject: "voice.news",
  publishers: ["tool-runner"],
  consumers: ["agent-core"],
  doc: "An MCP server of this tool-runner says that it has heard something, or was just reached anew: ask it now. At most 20 a second for a server.",
  payload: z.object({
    /** The replica's name. */
    runner: z.string(),
    server: z.string(),
    /** The server's own id of the session; null: any that it has. */
    sttSessionId: z.string().max(500).nullable(),
  }),
});
export type VoiceNews = z.infer<typeof voiceNews.payload>;
