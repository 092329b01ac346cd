// agent-core's configuration: the only reader of its environment.
import { ConfigError, parseEnvironment, type BaseConfig, type Environment } from "@parley/chassis";
import { z } from "zod";

type ModelConfig =
  | { provider: "rehearsal" }
  | { provider: "anthropic"; model: string; apiKey: string; baseUrl: string | undefined };

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

const AgentEnv = z.object({
  REDIS_URL: z.string().min(1).default("redis://127.0.0.1:6379"),
  PARLEY_MODEL: z.string().optional(),
  ANTHROPIC_API_KEY: z.string().optional(),
  ANTHROPIC_BASE_URL: z.url().optional(),
  PARLEY_MODEL_RETRY_BASE_MS: z.coerce.number().int().min(1).default(2_000),
  PARLEY_MODEL_FIRST_BYTE_MS: z.coerce.number().int().min(1).default(120_000),
  PARLEY_MODEL_IDLE_MS: z.coerce.number().int().min(1).default(90_000),
});

export function readConfig(env: Environment, base: BaseConfig): AgentConfig {
  const agent = parseEnvironment(AgentEnv, env);
  return {
    ...base,
    redisUrl: agent.REDIS_URL,
    model: chooseModel(
      agent.PARLEY_MODEL ?? base.settings.agent.model,
      agent.ANTHROPIC_API_KEY,
      agent.ANTHROPIC_BASE_URL,
    ),
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

function chooseModel(wanted: string | undefined, apiKey: string | undefined, baseUrl: string | undefined): ModelConfig {
  if (wanted === "rehearsal" || (wanted === undefined && apiKey === undefined)) return { provider: "rehearsal" };
  if (apiKey === undefined) {
    throw new ConfigError(
      `PARLEY_MODEL is ${wanted ?? ""}, but ANTHROPIC_API_KEY is not set. Set the key, or PARLEY_MODEL=rehearsal`,
    );
  }
  return { provider: "anthropic", model: wanted ?? defaultModel, apiKey, baseUrl };
}
