// Bus messages about voice input: agent-core calls MCP servers of tool-runners that convert speech to text, and the gateway sends requests
// to the leader.
import { z } from "zod";
import { hint, request } from "./contract.ts";
import { VoiceSessionSchema } from "./store/voice.ts";

/** The tools of a speech-to-text server by purpose; the settings contain their names. */
export const sttTools = ["start", "updates", "stop", "session", "devices"] as const;
export type SttTool = (typeof sttTools)[number];

export const voiceServers = request({
  subject: "voice.servers",
  server: "tool-runner",
  served: "all",
  clients: ["agent-core"],
  doc: "List the MCP servers of this tool-runner and the speech-to-text tools that each of them has.",
  input: z.object({}),
  output: z.object({
    /** The replica's name. */
    runner: z.string(),
    servers: z.array(
      z.object({
        server: z.string(),
        /** It is remote: every replica reaches the same server. */
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
  // A repeated start would open a second session.
  idempotent: false,
  doc: "Call a speech-to-text tool of an MCP server of this tool-runner. Refused with STALE_EPOCH when the runner has seen a higher epoch.",
  input: z.object({
    epoch: z.number().int(),
    server: z.string(),
    tool: z.enum(sttTools),
    arguments: z.record(z.string(), z.unknown()),
    timeoutMs: z.number().int().positive(),
  }),
  output: z.discriminatedUnion("outcome", [
    /** The server's answer; it must be a JSON object. */
    z.object({ outcome: z.literal("answered"), value: z.record(z.string(), z.unknown()) }),
    /** Why there is no answer, in one sentence. */
    z.object({ outcome: z.literal("failed"), problem: z.string() }),
  ]),
});

export const controlVoice = request({
  subject: "agent.control.voice",
  server: "agent-core",
  served: "leader",
  clients: ["channel-gateway"],
  doc: "Start listening for a stored voice session (`start`; a repeated request has no further effect), get the status from its server (`status`), or list the devices (`devices`).",
  input: z.discriminatedUnion("do", [
    z.object({ do: z.literal("start"), voiceId: z.string() }),
    z.object({ do: z.literal("status"), voiceId: z.string() }),
    z.object({ do: z.literal("devices") }),
  ]),
  output: z.object({
    /** Its current state; null where the request concerns no session. */
    voice: VoiceSessionSchema.nullable(),
    /** The server's status or the reason why there is none; null: no text. */
    text: z.string().nullable(),
  }),
});

export const voiceChanged = hint({
  subject: "voice.changed",
  publishers: ["store"],
  consumers: ["agent-core"],
  doc: "A voice session must end, or an answer waits to be spoken.",
  payload: z.object({}),
});
