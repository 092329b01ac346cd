// Voice: which MCP server listens and how it is asked, and who turns the agent's words into sound.
import { z } from "zod";
import { contactRoles } from "../people.ts";

const toolName = z.string().min(1).max(128);

const SttToolSettings = z
  .strictObject({
    /** Begins to listen; answers with a `session_id`. */
    start: toolName.default("stt_start_session"),
    /** What was heard after `since_seq`. */
    updates: toolName.default("stt_get_updates"),
    stop: toolName.default("stt_stop_session"),
    /** How a session is doing, for `/voice status`; a server may do without. */
    session: toolName.default("stt_get_session"),
    /** Microphones and the like, for `/voice devices` and `/voice start <device>`; a server may do without. */
    devices: toolName.default("stt_list_devices"),
  })
  .prefault({});

/** The sound formats of OpenAI's interface. */
const speechFormats = ["opus", "mp3", "aac", "flac", "wav", "pcm"] as const;

const SpeechSettings = z.strictObject({
  /** Base of an API in OpenAI's format, with its `/v1`; `/audio/speech` is added. */
  url: z.url({ protocol: /^https?$/ }),
  model: z.string().min(1),
  /** As the service names it. */
  voice: z.string().min(1).default("alloy"),
  /** `opus` is what Telegram shows as a voice message. */
  format: z.enum(speechFormats).default("opus"),
  /** The environment variable with the key; left out: none is sent. */
  key_env: z
    .string()
    .regex(/^[A-Z_][A-Z0-9_]*$/)
    .optional(),
  timeout_seconds: z.number().int().min(1).max(600).default(60),
  /** Of one text; the rest is left to be read. OpenAI takes 4,096. */
  max_characters: z.number().int().min(1).max(100_000).default(4_000),
  /** How often the sound of an answer is tried to be made before it is dropped. */
  tries: z.number().int().min(1).max(20).default(4),
});
export type SpeechSettings = z.infer<typeof SpeechSettings>;

/** MCP has a use of its own for these: what comes by them is never news of what was heard. */
const takenNotifications = new Set([
  "notifications/cancelled",
  "notifications/progress",
  "notifications/tools/list_changed",
]);

export const VoiceSettings = z
  .strictObject({
    /** Which of `mcp.servers` listens; left out: the one that has the tools, where exactly one has. */
    server: z.string().min(1).optional(),
    /** What the server calls its tools. */
    tools: SttToolSettings,
    /** What else the server is told when it begins, such as `endpointing_ms`. */
    start_arguments: z.record(z.string(), z.union([z.string(), z.number(), z.boolean()])).default({}),
    /** Between two questions for what was heard, in milliseconds. */
    poll_ms: z.number().int().min(50).max(60_000).default(500),
    /**
     * The notification by which the server says that it has heard something, such as `notifications/stt/updated`; its `session_id` says
     * for which session, left out: for any. Left out: there is none.
     */
    notify: z
      .string()
      .regex(/^[\w$.-]+(?:\/[\w$.-]+)*$/, "must be the name of a notification, such as notifications/stt/updated")
      .max(200)
      .refine((method) => !takenNotifications.has(method), "MCP uses this notification for something else")
      .optional(),
    /**
     * The resource that changes when a session hears something, with `{session_id}` for the server's id of it; it is subscribed to where the
     * server can do that. Left out: the one the server names in the `resource_uri` of its answers, if any.
     */
    resource: z.string().min(1).max(1_000).optional(),
    /** Between two questions while the server's notifications tell what is new: the most that a lost one costs. Never less than `poll_ms`. */
    push_poll_ms: z.number().int().min(50).max(60_000).default(5_000),
    /** Events of one answer. */
    poll_limit: z.number().int().min(1).max(500).default(100),
    /** Failures in a row after which voice stops. */
    poll_tries: z.number().int().min(1).max(100).default(5),
    /** Wall time of one call. */
    call_timeout_seconds: z.number().int().min(1).max(300).default(10),
    /** Events of a voice session that `/voice events` can show. */
    keep_events: z.number().int().min(1).max(10_000).default(200),
    /** Whose word it is that a loopback device hears: it plays what others say. A microphone has the word of whoever started it. */
    loopback_role: z.enum(contactRoles).default("guest"),
    /** Text to speech; left out: the agent only writes. */
    speech: SpeechSettings.optional(),
  })
  .prefault({});
export type VoiceSettings = z.infer<typeof VoiceSettings>;
