// Voice: the MCP server for speech to text and its polling, and the text-to-speech service.
import { z } from "zod";
import { contactRoles } from "../principals.ts";

const toolName = z.string().min(1).max(128);

const SttToolSettings = z
  .strictObject({
    /** Starts listening; returns a `session_id`. */
    start: toolName.default("stt_start_session"),
    /** Returns events after `since_seq`. */
    updates: toolName.default("stt_get_updates"),
    stop: toolName.default("stt_stop_session"),
    /** Status of a session, for `/voice status`; optional. */
    session: toolName.default("stt_get_session"),
    /** Lists input devices, for `/voice devices` and `/voice start <device>`; optional. */
    devices: toolName.default("stt_list_devices"),
  })
  .prefault({});

/** The audio formats of OpenAI's API. */
const speechFormats = ["opus", "mp3", "aac", "flac", "wav", "pcm"] as const;

const SpeechSettings = z.strictObject({
  /** Base URL of an OpenAI-compatible API, including `/v1`; `/audio/speech` is appended. */
  url: z.url({ protocol: /^https?$/ }),
  model: z.string().min(1),
  /** The service's name of the voice. */
  voice: z.string().min(1).default("alloy"),
  /** Chat platforms show `opus` as a voice message. */
  format: z.enum(speechFormats).default("opus"),
  /** The environment variable with the key; omitted: no key is sent. */
  key_env: z
    .string()
    .regex(/^[A-Z_][A-Z0-9_]*$/)
    .optional(),
  timeout_seconds: z.number().int().min(1).max(600).default(60),
  /** Maximum characters of one spoken text; the rest is only written. OpenAI accepts 4,096. */
  max_characters: z.number().int().min(1).max(100_000).default(4_000),
  /** Attempts to synthesize an answer before it is dropped. */
  tries: z.number().int().min(1).max(20).default(4),
});
export type SpeechSettings = z.infer<typeof SpeechSettings>;

export const VoiceSettings = z
  .strictObject({
    /** The speech-to-text server among `mcp.servers`; omitted: the only one that has the tools. */
    server: z.string().min(1).optional(),
    /** The server's names of its tools. */
    tools: SttToolSettings,
    /** Additional arguments of the start call, such as `endpointing_ms`. */
    start_arguments: z.record(z.string(), z.union([z.string(), z.number(), z.boolean()])).default({}),
    /** Milliseconds between two polls for new events. */
    poll_ms: z.number().int().min(50).max(60_000).default(500),
    /** Accepted without effect until the next release: Parley polls every server. */
    notify: z.string().optional(),
    resource: z.string().optional(),
    push_poll_ms: z.number().optional(),
    /** Maximum events of one poll. */
    poll_limit: z.number().int().min(1).max(500).default(100),
    /** Consecutive failures after which the voice session ends. */
    poll_tries: z.number().int().min(1).max(100).default(5),
    /** Maximum wall-clock time of one call. */
    call_timeout_seconds: z.number().int().min(1).max(300).default(10),
    /** Number of events of a voice session that are kept for `/voice events`. */
    keep_events: z.number().int().min(1).max(10_000).default(200),
    /** Role of speech from a loopback device, which records other people. Speech from a microphone has the role of the person who started it. */
    loopback_role: z.enum(contactRoles).default("guest"),
    /** Text to speech; omitted: no spoken answers. */
    speech: SpeechSettings.optional(),
  })
  .prefault({});
export type VoiceSettings = z.infer<typeof VoiceSettings>;

/** Describes the settings that are accepted but have no effect. */
export function ineffectiveVoiceSettings(voice: VoiceSettings): string[] {
  return (["notify", "resource", "push_poll_ms"] as const)
    .filter((name) => voice[name] !== undefined)
    .map((name) => `voice.${name} has no effect and will be rejected by the next release: remove it`);
}
