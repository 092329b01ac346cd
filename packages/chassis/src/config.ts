// The configuration that every service has. A service's own config.ts adds its part; no other file reads the environment.
import { randomUUID } from "node:crypto";
import { hostname } from "node:os";
import { errorMessage, type ParleySettings, type ServiceName } from "@parley/contracts";
import { readBusServers, type TlsFiles } from "@parley/bus";
import { z } from "zod";
import { ConfigError } from "./errors.ts";
import { loadSettings } from "./settings.ts";
import { tlsFilesIn } from "./tls-config.ts";
import { TracingEnv, tracingOf, type TracingConfig } from "./tracing-config.ts";

export type Environment = Record<string, string | undefined>;

export interface BaseConfig {
  service: ServiceName;
  /** Stable name of this replica, e.g. the pod. */
  replica: string;
  /** New on every start. */
  incarnation: string;
  natsUrl: string;
  /** Any file requires TLS for the bus. */
  natsTls: TlsFiles;
  namespace: string;
  logLevel: string;
  /** Address of the separate listener for probes and metrics. */
  healthHost: string;
  /** 0 = any free port. */
  healthPort: number;
  /** How long `close` may take before the process ends anyway. */
  drainMs: number;
  /** Settings from parley.toml, its preset, variables and flags. */
  settings: ParleySettings;
  /** Null: tracing is off. */
  tracing: TracingConfig | null;
  faults: { point: string | undefined; directory: string | undefined; dropHints: number };
}

function checkBusUrl(url: string, context: z.RefinementCtx): void {
  try {
    readBusServers(url);
  } catch (error) {
    context.addIssue({ code: "custom", message: errorMessage(error) });
  }
}

const BaseEnv = z.object({
  PARLEY_NATS_URL: z.string().default("nats://127.0.0.1:4222").superRefine(checkBusUrl),
  PARLEY_NAMESPACE: z
    .string()
    .regex(/^[A-Za-z0-9_-]+$/)
    .default("parley"),
  PARLEY_REPLICA: z.string().min(1).default(hostname()),
  PARLEY_LOG_LEVEL: z.enum(["trace", "debug", "info", "warn", "error", "fatal", "silent"]).default("info"),
  PARLEY_HEALTH_HOST: z.string().default("127.0.0.1"),
  PARLEY_HEALTH_PORT: z.coerce.number().int().min(0).max(65_535).default(0),
  PARLEY_DRAIN_MS: z.coerce.number().int().min(0).default(20_000),
  PARLEY_CONFIG: z.string().optional(),
  // Layers of the settings, like `PARLEY__TABLE__KEY`.
  PARLEY_PRESET: z.string().optional(),
  PARLEY_SET: z.string().optional(),
  FAULT: z.string().optional(),
  FAULT_DIR: z.string().optional(),
  FAULT_DROP_HINTS: z.coerce.number().min(0).max(1).default(0),
  ...TracingEnv.shape,
});

/** Throws ConfigError. */
export function readBaseConfig(env: Environment, service: ServiceName): BaseConfig {
  const base = parseEnvironment(BaseEnv, env);
  return {
    service,
    replica: base.PARLEY_REPLICA,
    incarnation: randomUUID(),
    natsUrl: base.PARLEY_NATS_URL,
    natsTls: tlsFilesIn(env, "PARLEY_NATS"),
    namespace: base.PARLEY_NAMESPACE,
    logLevel: base.PARLEY_LOG_LEVEL,
    healthHost: base.PARLEY_HEALTH_HOST,
    healthPort: base.PARLEY_HEALTH_PORT,
    drainMs: base.PARLEY_DRAIN_MS,
    settings: loadSettings(base.PARLEY_CONFIG, env),
    tracing: tracingOf(base),
    faults: { point: base.FAULT, directory: base.FAULT_DIR, dropHints: base.FAULT_DROP_HINTS },
  };
}

/** Reads variables by a schema; an empty variable counts as absent. Throws ConfigError that names the variable. */
export function parseEnvironment<S extends z.ZodType>(schema: S, env: Environment): z.infer<S> {
  const present = Object.fromEntries(Object.entries(env).filter(([, value]) => value !== undefined && value !== ""));
  const result = schema.safeParse(present);
  if (result.success) return result.data;
  const lines = result.error.issues.map((issue) => `  ${issue.path.join(".")}: ${issue.message}`);
  throw new ConfigError(`environment:\n${lines.join("\n")}`);
}
