// agent-core's configuration: the only reader of its environment.
import { ConfigError, parseEnvironment, type BaseConfig, type Environment } from "@parley/chassis";
import { z } from "zod";

type ModelConfig =
  | { provider: "rehearsal" }
  | { provider: "anthropic"; model: string; apiKey: string; baseUrl: string | undefined }
  /** Without a key where the server is one's own. */
  | { provider: "openai"; model: string; apiKey: string | undefined; baseUrl: string };

/** Times of the lease, in milliseconds. Source: the plan's "epoch lease"; below 5 s pauses of Node and Redis demote a healthy leader. */
export interface LeaseTimes {
  ttlMs: number;
  renewMs: number;
  /** The leader ends itself this long after the START of its last good renewal. */
  giveUpMs: number;
  pingMs: number;
  pollMs: number;
  /** A leader that has answered nobody for this long may be replaced. */
  silentMs: number;
}

/** Waiting between tries of a model call. */
export interface RetryTimes {
  tries: number;
  baseMs: number;
  capMs: number;
  /** Until the first byte, and between two events of a stream. */
  firstByteMs: number;
  idleMs: number;
}

export interface AgentConfig extends BaseConfig {
  redisUrl: string;
  model: ModelConfig;
  lease: LeaseTimes;
  retry: RetryTimes;
  /** How long a planned hand-over waits for running steps to reach their commit. */
  handoverMs: number;
}

/** What answers when a key is there and nothing else is said. */
const defaultModel = "claude-sonnet-5-5";
const openAiBaseUrl = "https://api.openai.com/v1";

const AgentEnv = z.object({
  REDIS_URL: z.string().min(1).default("redis://127.0.0.1:6379"),
  PARLEY_MODEL: z.string().optional(),
  ANTHROPIC_API_KEY: z.string().optional(),
  ANTHROPIC_BASE_URL: z.url().optional(),
  OPENAI_API_KEY: z.string().optional(),
  OPENAI_BASE_URL: z
    .url({ protocol: /^https?$/, error: "must be an address such as http://127.0.0.1:11434/v1" })
    .refine((url) => new URL(url).username === "", "must not hold a name or password; a key goes into OPENAI_API_KEY")
    .optional(),
  PARLEY_MODEL_RETRY_BASE_MS: z.coerce.number().int().min(1).default(2_000),
  PARLEY_MODEL_FIRST_BYTE_MS: z.coerce.number().int().min(1).default(120_000),
  // The SDK keeps the API's pings to itself: a model that thinks without showing it looks silent for minutes.
  PARLEY_MODEL_IDLE_MS: z.coerce.number().int().min(1).default(300_000),
});

export function readConfig(env: Environment, base: BaseConfig): AgentConfig {
  const agent = parseEnvironment(AgentEnv, env);
  return {
    ...base,
    redisUrl: agent.REDIS_URL,
    model: chooseModel(agent.PARLEY_MODEL ?? base.settings.agent.model, agent),
    lease: { ttlMs: 6_000, renewMs: 2_000, giveUpMs: 4_000, pingMs: 250, pollMs: 1_000, silentMs: 1_500 },
    retry: {
      tries: 8,
      baseMs: agent.PARLEY_MODEL_RETRY_BASE_MS,
      capMs: 60_000,
      firstByteMs: agent.PARLEY_MODEL_FIRST_BYTE_MS,
      idleMs: agent.PARLEY_MODEL_IDLE_MS,
    },
    handoverMs: Math.min(10_000, base.drainMs / 2),
  };
}

/** `anthropic:` and `openai:` before a model's name say who is asked; without one it is Claude. */
function chooseModel(wanted: string | undefined, env: z.infer<typeof AgentEnv>): ModelConfig {
  const apiKey = env.ANTHROPIC_API_KEY;
  if (wanted === "rehearsal" || (wanted === undefined && apiKey === undefined)) return { provider: "rehearsal" };
  const [, prefix, named] = /^(anthropic|openai):(.*)$/.exec(wanted ?? "") ?? [];
  if (named === "") {
    throw new ConfigError(`PARLEY_MODEL is ${wanted ?? ""}, which names no model. Set PARLEY_MODEL=${prefix}:<model>`);
  }
  if (prefix === "openai" && named !== undefined) return chooseOpenAi(named, env);
  if (apiKey === undefined) {
    throw new ConfigError(
      `PARLEY_MODEL is ${wanted ?? ""}, but ANTHROPIC_API_KEY is not set. Set the key, or PARLEY_MODEL=rehearsal`,
    );
  }
  return { provider: "anthropic", model: named ?? wanted ?? defaultModel, apiKey, baseUrl: env.ANTHROPIC_BASE_URL };
}

function chooseOpenAi(model: string, env: z.infer<typeof AgentEnv>): ModelConfig {
  const { OPENAI_API_KEY: apiKey, OPENAI_BASE_URL: baseUrl } = env;
  if (apiKey === undefined && baseUrl === undefined) {
    throw new ConfigError(
      `PARLEY_MODEL is openai:${model}, but neither OPENAI_API_KEY nor OPENAI_BASE_URL is set. Set OPENAI_API_KEY for OpenAI, ` +
        `OPENAI_BASE_URL for a server of your own (Ollama: http://127.0.0.1:11434/v1), or PARLEY_MODEL=rehearsal`,
    );
  }
  return { provider: "openai", model, apiKey, baseUrl: baseUrl ?? openAiBaseUrl };
}
