// Tracing as a service process has it: turned on before the service starts, flushed after it has ended. Without a collector none of
// OpenTelemetry but its API is loaded, and spans cost next to nothing.
import { setTimeout as delay } from "node:timers/promises";
import { trace } from "@opentelemetry/api";
import type { BaseConfig } from "./config.ts";
import { createLogger } from "./logger.ts";

export interface Tracing {
  /** Sends what has been gathered; gives up after `withinMs`. Never throws. */
  flush(withinMs: number): Promise<void>;
}

const off: Tracing = { flush: async () => undefined };
let capturing = false;

/** Turns tracing on where the configuration says so. A failure is logged and leaves it off: a service runs without its traces. */
export async function startTracing(config: BaseConfig): Promise<Tracing> {
  const { tracing, service, replica, logLevel: level } = config;
  if (tracing === null) return off;
  const log = createLogger({ service, replica, level });
  try {
    const { registerSdk } = await import("./tracing-sdk.ts");
    const sdk = registerSdk(tracing, { service, replica }, log);
    capturing = tracing.captureContent;
    return {
      async flush(withinMs) {
        const ended = sdk
          .shutdown()
          .catch((error: unknown) => log.warn({ err: error }, "the last spans were not sent"));
        await Promise.race([ended, delay(Math.max(0, withinMs), undefined, { ref: false })]);
      },
    };
  } catch (error) {
    log.error({ err: error }, "tracing could not be started; going on without it");
    return off;
  }
}

/** Whether spans may hold what was said. Off unless OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT asks for it. */
export function capturesContent(): boolean {
  return capturing;
}

/** What a log line says of the span it was written in. */
export function spanFields(): { trace_id?: string; span_id?: string } {
  const span = trace.getActiveSpan()?.spanContext();
  return span === undefined ? {} : { trace_id: span.traceId, span_id: span.spanId };
}
