// OpenTelemetry's SDK, loaded only if a collector is configured: sends batches of spans over OTLP/HTTP in the background. A slow or
// unavailable collector costs spans, never time.

import { context, diag, DiagLogLevel, propagation, trace } from "@opentelemetry/api";
import { AsyncLocalStorageContextManager } from "@opentelemetry/context-async-hooks";
import { W3CTraceContextPropagator } from "@opentelemetry/core";
import { OTLPTraceExporter as JsonExporter } from "@opentelemetry/exporter-trace-otlp-http";
import { OTLPTraceExporter as ProtobufExporter } from "@opentelemetry/exporter-trace-otlp-proto";
import { detectResources, envDetector, resourceFromAttributes } from "@opentelemetry/resources";
import {
  AlwaysOffSampler,
  AlwaysOnSampler,
  BatchSpanProcessor,
  ParentBasedSampler,
  type Sampler,
  TraceIdRatioBasedSampler,
  TracerProvider,
} from "@opentelemetry/sdk-trace";

import type { SamplerChoice, TracingConfig } from "./config.ts";
import type { Logger } from "./logger.ts";
import { version } from "./version.ts";

/** Longest value of one attribute, in characters: with content in them, 2,048 waiting spans stay a bounded share of the memory. */
const maxAttributeChars = 32 * 1024;
/** Minimum interval between log lines about an unavailable collector. */
const complainEveryMs = 60_000;

/** Enables tracing. Use the returned provider to flush and shut down. */
export function registerSdk(
  config: TracingConfig,
  who: { service: string; replica: string },
  log: Logger,
): TracerProvider {
  const resource = resourceFromAttributes({
    "service.namespace": "parley",
    "service.name": who.service,
    "service.instance.id": who.replica,
    "service.version": version,
  }).merge(detectResources({ detectors: [envDetector] }));
  const exporter = config.protocol === "http/json" ? new JsonExporter() : new ProtobufExporter();
  const provider = new TracerProvider({
    resource,
    sampler: samplerFor(config.sampler),
    spanLimits: { attributeValueLengthLimit: maxAttributeChars },
    spanProcessors: [
      new BatchSpanProcessor({
        exporter,
        scheduledDelayMillis: config.scheduleDelayMs,
        maxQueueSize: config.maxQueueSize,
      }),
    ],
  });
  diag.setLogger(complaintsTo(log), DiagLogLevel.WARN);
  context.setGlobalContextManager(new AsyncLocalStorageContextManager().enable());
  propagation.setGlobalPropagator(new W3CTraceContextPropagator());
  trace.setGlobalTracerProvider(provider);
  return provider;
}

function samplerFor({ root, ratio, parentBased }: SamplerChoice): Sampler {
  const roots = {
    always_on: () => new AlwaysOnSampler(),
    always_off: () => new AlwaysOffSampler(),
    traceidratio: () => new TraceIdRatioBasedSampler(ratio),
  };
  return parentBased ? new ParentBasedSampler({ root: roots[root]() }) : roots[root]();
}

/** Logs OpenTelemetry's warnings, rate-limited. */
function complaintsTo(log: Logger) {
  let nextAtMs = 0;
  const complain = (text: string) => {
    if (performance.now() < nextAtMs) return;
    nextAtMs = performance.now() + complainEveryMs;
    log.warn({ reason: reasonIn(text) }, "spans lost");
  };
  const ignore = () => undefined;
  return { error: complain, warn: complain, info: ignore, debug: ignore, verbose: ignore };
}

/** Extracts the message of an error that arrives as JSON with its stack. */
function reasonIn(text: string): string {
  return /"message":"((?:[^"\\]|\\.)*)"/.exec(text)?.[1] ?? text;
}
