// The configuration that every service has: bus, probes, TLS files, tracing by OpenTelemetry's standard variables. A service's own config.ts adds
// its part; no other file reads the environment.

import { randomUUID } from "node:crypto";
import { readFileSync } from "node:fs";
import { hostname } from "node:os";

import { parseBusUrl, readTlsFiles, type TlsFiles } from "@parley/bus";
import { errorMessage, type ParleySettings, type ServiceName } from "@parley/contracts";
import { omitUndefined } from "@parley/kit";
import { z } from "zod";

import { ConfigError } from "./errors.ts";
import { requireSecret } from "./secrets-folder.ts";
import { loadSettings } from "./settings.ts";

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
  /** The seed of this service's NKey, from a file that may change; undefined: the URL contains the login. */
  natsSeed: () => string | undefined;
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
    parseBusUrl(url);
  } catch (error) {
    context.addIssue({ code: "custom", message: errorMessage(error) });
  }
}

/** Base32 of a type, 32 bytes and a checksum; the seed of a user begins with SU. */
function isSeed(text: string | undefined): boolean {
  return text === undefined || /^SU[A-Z2-7]{56}$/.test(text);
}

const protocol = z.enum(["http/protobuf", "http/json"]);
const samplers = ["always_on", "always_off", "traceidratio"] as const;

const TracingEnv = z.object({
  OTEL_SDK_DISABLED: z.stringbool().default(false),
  OTEL_TRACES_EXPORTER: z.enum(["otlp", "none"]).optional(),
  OTEL_EXPORTER_OTLP_ENDPOINT: z.url().optional(),
  OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: z.url().optional(),
  OTEL_EXPORTER_OTLP_PROTOCOL: protocol.default("http/protobuf"),
  OTEL_EXPORTER_OTLP_TRACES_PROTOCOL: protocol.optional(),
  OTEL_TRACES_SAMPLER: z
    .enum([...samplers, "parentbased_always_on", "parentbased_always_off", "parentbased_traceidratio"])
    .default("parentbased_always_on"),
  /** Share of the traces for the `traceidratio` samplers. */
  OTEL_TRACES_SAMPLER_ARG: z.coerce.number().min(0).max(1).default(1),
  // The defaults of OpenTelemetry's specification.
  OTEL_BSP_SCHEDULE_DELAY: z.coerce.number().int().min(1).default(5_000),
  OTEL_BSP_MAX_QUEUE_SIZE: z.coerce.number().int().min(1).default(2_048),
  OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT: z.stringbool().default(false),
  PARLEY_TRACE_STORE: z.stringbool().default(false),
});

const BaseEnv = z.object({
  PARLEY_NATS_URL: z.string().default("nats://127.0.0.1:4222").superRefine(checkBusUrl),
  // An NKey instead of a login in the URL: the seed, or a file with it.
  PARLEY_NATS_SEED: z.string().optional().refine(isSeed, "must be the seed of a NATS user: SU…"),
  PARLEY_NATS_SEED_FILE: z.string().optional(),
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
  requireSecret(env, "PARLEY_NATS_URL");
  const base = parseEnvironment(BaseEnv, env);
  return {
    service,
    replica: base.PARLEY_REPLICA,
    incarnation: randomUUID(),
    natsUrl: base.PARLEY_NATS_URL,
    natsTls: tlsFilesIn(env, "PARLEY_NATS"),
    natsSeed: seedReader(base),
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

/** Reads the seed's file again at each call. The result throws while the file contains no seed. */
function seedReader(env: { PARLEY_NATS_SEED?: string | undefined; PARLEY_NATS_SEED_FILE?: string | undefined }) {
  const { PARLEY_NATS_SEED: seed, PARLEY_NATS_SEED_FILE: path } = env;
  return (): string | undefined => {
    if (path === undefined) return seed;
    // An optional secret without this key has no file: then the URL contains the login.
    const text = readIfPresent(path)?.trim();
    if (text !== undefined && !isSeed(text)) throw new Error(`${path} contains no seed of a NATS user (SU…)`);
    return text ?? seed;
  };
}

function readIfPresent(path: string): string | undefined {
  try {
    return readFileSync(path, "utf8");
  } catch (error) {
    if (error instanceof Error && "code" in error && error.code === "ENOENT") return undefined;
    throw error;
  }
}

/** Reads variables by a schema; an empty variable counts as absent. Throws ConfigError that names the variable. */
export function parseEnvironment<S extends z.ZodType>(schema: S, env: Environment): z.infer<S> {
  const present = Object.fromEntries(Object.entries(env).filter(([, value]) => value !== undefined && value !== ""));
  const result = schema.safeParse(present);
  if (result.success) return result.data;
  const lines = result.error.issues.map((issue) => `  ${issue.path.join(".")}: ${issue.message}`);
  throw new ConfigError(`environment:\n${lines.join("\n")}`);
}

/**
 * The files that the environment names for a link, `{}` for none. Each file is read once, so that a wrong path throws a ConfigError that
 * names the link's variables. A certificate needs its key and vice versa.
 */
export function tlsFilesIn(env: Readonly<Record<string, string | undefined>>, prefix: string): TlsFiles {
  const named = (suffix: string): string | undefined => env[`${prefix}_${suffix}`] || undefined;
  const [caFile, certFile, keyFile] = [named("CA_FILE"), named("CERT_FILE"), named("KEY_FILE")];
  if ((certFile === undefined) !== (keyFile === undefined)) {
    throw new ConfigError(
      `environment: ${prefix}_CERT_FILE and ${prefix}_KEY_FILE must be set together; one of them is not set`,
    );
  }
  const files: TlsFiles = omitUndefined({ caFile, certFile, keyFile });
  try {
    readTlsFiles(files);
  } catch (error) {
    throw new ConfigError(`environment: ${prefix}_CA_FILE, _CERT_FILE, _KEY_FILE: ${errorMessage(error)}`);
  }
  return files;
}

/** `OTEL_TRACES_SAMPLER` and its argument. */
export interface SamplerChoice {
  /** The decision for root spans: always, never, or a share of the traces. */
  root: (typeof samplers)[number];
  /** Share of the traces for `traceidratio`, 0 to 1. */
  ratio: number;
  /** Follow the decision of the parent span, if any. */
  parentBased: boolean;
}

export interface TracingConfig {
  /** Encoding of OTLP over HTTP. */
  protocol: z.infer<typeof protocol>;
  sampler: SamplerChoice;
  /** How long spans are collected before they are sent. */
  scheduleDelayMs: number;
  /** Maximum spans that wait for the collector; further spans are dropped. */
  maxQueueSize: number;
  /** Include messages, tool arguments and tool results in the spans. */
  captureContent: boolean;
  /** A span for each request to the store. */
  traceStore: boolean;
}

/** Null when no collector is configured or tracing is disabled. */
function tracingOf(env: z.infer<typeof TracingEnv>): TracingConfig | null {
  const named = env.OTEL_EXPORTER_OTLP_ENDPOINT ?? env.OTEL_EXPORTER_OTLP_TRACES_ENDPOINT;
  const exporter = env.OTEL_TRACES_EXPORTER ?? (named === undefined ? "none" : "otlp");
  if (env.OTEL_SDK_DISABLED || exporter === "none") return null;
  const sampler = env.OTEL_TRACES_SAMPLER;
  return {
    protocol: env.OTEL_EXPORTER_OTLP_TRACES_PROTOCOL ?? env.OTEL_EXPORTER_OTLP_PROTOCOL,
    sampler: {
      root: samplers.find((root) => sampler.endsWith(root)) ?? "always_on",
      ratio: env.OTEL_TRACES_SAMPLER_ARG,
      parentBased: sampler.startsWith("parentbased_"),
    },
    scheduleDelayMs: env.OTEL_BSP_SCHEDULE_DELAY,
    maxQueueSize: env.OTEL_BSP_MAX_QUEUE_SIZE,
    captureContent: env.OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT,
    traceStore: env.PARLEY_TRACE_STORE,
  };
}
