// Whether and how this process traces, by OpenTelemetry's standard variables. OpenTelemetry's libraries read all further variables
// (collector, headers, resource attributes) when they are loaded.
import { z } from "zod";

const protocol = z.enum(["http/protobuf", "http/json"]);
const samplers = ["always_on", "always_off", "traceidratio"] as const;

export const TracingEnv = z.object({
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
export function tracingOf(env: z.infer<typeof TracingEnv>): TracingConfig | null {
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
