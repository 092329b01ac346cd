// agent-core's configuration: the only reader of its environment.
import {
  ConfigError,
  parseEnvironment,
  requireSecret,
  SecretFiles,
  type BaseConfig,
  type Environment,
  type Secret,
} from "@parley/chassis";
import {
  defaultModel,
  type LlmsSettings,
  type MemorySettings,
  type SpeechSettings,
  type TranscriptionSettings,
} from "@parley/contracts";
import { z } from "zod";
import { httpSynthesizer, type Synthesizer } from "./voice/synthesizer.ts";
import { programTranscriber } from "./voice/program-transcriber.ts";
import { httpTranscriber, type Transcriber } from "./voice/transcriber.ts";
import { httpEmbedder, type Embedder } from "./memory/embedder.ts";
import { findAccess, fullName, type ModelAccess, type NamedServer } from "./model/model-access.ts";
import type { ModelFailure } from "./model/provider.ts";
import { redisAddress, type RedisAddress } from "./redis.ts";

/** Times of the lease in milliseconds. With a TTL below 5 s, pauses of Node or Redis would demote a healthy leader. */
export interface LeaseTimes {
  ttlMs: number;
  renewMs: number;
  /** The leader ends itself this long after the START of its last successful renewal. */
  giveUpMs: number;
  pingMs: number;
  /** A leader that answered before, and whose subject nobody has served for this long, may be replaced. Longer than a reconnect. */
  absentMs: number;
  pollMs: number;
  /** A leader that answered no ping for this long may be replaced. */
  silentMs: number;
}

export const leaseTimes: LeaseTimes = {
  ttlMs: 6_000,
  renewMs: 2_000,
  giveUpMs: 4_000,
  // With absentMs it decides how soon a killed leader is noticed: after 225 ms at the latest.
  pingMs: 100,
  absentMs: 100,
  pollMs: 1_000,
  silentMs: 1_500,
};

/** Attempts of a model call and the delays between them. */
export interface RetryTimes {
  tries: number;
  baseMs: number;
  capMs: number;
  /** Failures to retry; omitted: all that are retryable. */
  on?: readonly ModelFailure[];
  /** Until the first byte, and between two events of a stream. */
  firstByteMs: number;
  idleMs: number;
}

export interface AgentConfig extends BaseConfig {
  redis: RedisAddress;
  /** The agent's own model with its provider's prefix; access to it is configured. */
  model: string;
  /** Keys and addresses of the providers. */
  access: ModelAccess;
  /** The secrets of `access`; some may change. */
  secrets: SecretFiles;
  /** Computes embeddings of memory; null: disabled. */
  embedder: Embedder | null;
  /** Transcribes recordings; null: disabled. */
  transcriber: Transcriber | null;
  /** Synthesizes speech; null: disabled. */
  synthesizer: Synthesizer | null;
  lease: LeaseTimes;
  retry: RetryTimes;
  /** How long a planned hand-over waits for running steps to commit. */
  handoverMs: number;
}

const openAiBaseUrl = "https://api.openai.com/v1";

const AgentEnv = z.object({
  REDIS_URL: z.string().min(1).default("redis://127.0.0.1:6379"),
  PARLEY_MODEL: z.string().optional(),
  // Keys, or files with them: `SecretFiles` reads them.
  ANTHROPIC_API_KEY: z.string().optional(),
  ANTHROPIC_API_KEY_FILE: z.string().optional(),
  OPENAI_API_KEY: z.string().optional(),
  OPENAI_API_KEY_FILE: z.string().optional(),
  ANTHROPIC_BASE_URL: z.url().optional(),
  OPENAI_BASE_URL: z
    .url({ protocol: /^https?$/, error: "must be an address such as http://127.0.0.1:11434/v1" })
    .refine(
      (url) => (URL.parse(url)?.username ?? "") === "",
      "must not contain a user name or password; set the key in OPENAI_API_KEY",
    )
    .optional(),
  PARLEY_MODEL_RETRY_BASE_MS: z.coerce.number().int().min(1).optional(),
  PARLEY_MODEL_FIRST_BYTE_MS: z.coerce.number().int().min(1).default(120_000),
  // The SDK does not pass on the API's pings, so a model that thinks without visible output is silent for minutes.
  PARLEY_MODEL_IDLE_MS: z.coerce.number().int().min(1).default(300_000),
});

export function readConfig(env: Environment, base: BaseConfig): AgentConfig {
  requireSecret(env, "REDIS_URL");
  const agent = parseEnvironment(AgentEnv, env);
  const secrets = new SecretFiles();
  const access = accessIn(agent, env, base.settings.llm, secrets);
  // Precedence of PARLEY_MODEL: below a flag, above parley.toml.
  const model = chooseModel(base.settings.agent.model ?? agent.PARLEY_MODEL, access);
  const { retry } = base.settings.models;
  // Without a key the rehearsal model answers, even if the settings name models for later use.
  if (model !== "rehearsal") checkFallback(base.settings.models.fallback, access);
  return {
    ...base,
    redis: redisAddress(agent.REDIS_URL, env),
    model,
    access,
    secrets,
    embedder: embedderIn(env, base.settings.memory.embedder),
    transcriber: transcriberIn(env, base.settings.attachments.transcription),
    synthesizer: synthesizerIn(env, base.settings.voice.speech),
    lease: leaseTimes,
    retry: {
      tries: retry.tries,
      baseMs: agent.PARLEY_MODEL_RETRY_BASE_MS ?? retry.base_seconds * 1_000,
      capMs: retry.max_seconds * 1_000,
      on: retry.on,
      firstByteMs: agent.PARLEY_MODEL_FIRST_BYTE_MS,
      idleMs: agent.PARLEY_MODEL_IDLE_MS,
    },
    handoverMs: Math.min(10_000, base.drainMs / 2),
  };
}

function embedderIn(env: Environment, settings: MemorySettings["embedder"]): Embedder | null {
  if (settings === undefined) return null;
  const { key_env: name } = settings;
  const key = name === undefined ? undefined : env[name];
  if (name !== undefined && (key === undefined || key === ""))
    throw new ConfigError(`memory.embedder.key_env: ${name} is not set. Set it, or remove key_env if no key is needed`);
  return httpEmbedder(settings, key);
}

function transcriberIn(env: Environment, settings: TranscriptionSettings | undefined): Transcriber | null {
  if (settings === undefined) return null;
  const { key_env: name } = settings;
  const key = name === undefined ? undefined : env[name];
  if (name !== undefined && (key === undefined || key === ""))
    throw new ConfigError(
      `attachments.transcription.key_env: ${name} is not set. Set it, or remove key_env if no key is needed`,
    );
  const { url, model, command } = settings;
  if (command !== undefined) return programTranscriber(command, settings.timeout_seconds * 1_000, env);
  return url === undefined || model === undefined ? null : httpTranscriber({ ...settings, url, model }, key);
}

function synthesizerIn(env: Environment, settings: SpeechSettings | undefined): Synthesizer | null {
  if (settings === undefined) return null;
  const { key_env: name } = settings;
  const key = name === undefined ? undefined : env[name];
  if (name !== undefined && (key === undefined || key === ""))
    throw new ConfigError(`voice.speech.key_env: ${name} is not set. Set it, or remove key_env if no key is needed`);
  return httpSynthesizer(settings, key);
}

function accessIn(
  { ANTHROPIC_BASE_URL, OPENAI_BASE_URL }: z.infer<typeof AgentEnv>,
  env: Environment,
  servers: LlmsSettings,
  secrets: SecretFiles,
): ModelAccess {
  const anthropicKey = secrets.find("ANTHROPIC_API_KEY", env);
  const openAiKey = secrets.find("OPENAI_API_KEY", env);
  const own = openAiKey !== undefined || OPENAI_BASE_URL !== undefined;
  return {
    anthropic: anthropicKey === undefined ? null : { apiKey: anthropicKey, baseUrl: ANTHROPIC_BASE_URL },
    openai: own ? { apiKey: openAiKey, baseUrl: OPENAI_BASE_URL ?? openAiBaseUrl } : null,
    named: new Map(
      Object.entries(servers).map(([name, server]) => [
        name,
        namedServer(name, server, secrets.find(server.key_env ?? "", env)),
      ]),
    ),
  };
}

function namedServer(name: string, server: LlmsSettings[string], apiKey: Secret | undefined): NamedServer {
  const { api, base_url: baseUrl, key_env: keyVariable, model } = server;
  if (keyVariable !== undefined && apiKey === undefined)
    throw new ConfigError(
      `llm.${name}.key_env: ${keyVariable} is not set. Set it, or remove key_env if no key is needed`,
    );
  return { api, baseUrl, apiKey, model, keyVariable, addressSetting: `base_url under [llm.${name}]` };
}

/** The prefixes `anthropic:` and `openai:` select the provider; a model without a prefix is Claude. */
function chooseModel(wanted: string | undefined, access: ModelAccess): string {
  if (wanted === undefined && access.anthropic === null) return "rehearsal";
  const found = findAccess(wanted ?? defaultModel, access);
  if ("model" in found) return fullName(found.model);
  throw new ConfigError(`agent model: ${found.problem}. To run without a model, set PARLEY_MODEL=rehearsal`);
}

function checkFallback(fallback: readonly string[], access: ModelAccess): void {
  for (const name of fallback) {
    const found = findAccess(name, access);
    if ("problem" in found) throw new ConfigError(`models.fallback: ${found.problem}. Or remove it from the list`);
  }
}
