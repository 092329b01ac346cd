// Tracing of a service process: enabled before the service starts, flushed after it has ended. Without a collector only OpenTelemetry's
// API is loaded, and spans cost next to nothing.
import { setTimeout as delay } from "node:timers/promises";
import { trace } from "@opentelemetry/api";
import type { BaseConfig } from "./config.ts";
import { createLogger } from "./logger.ts";

export interface Tracing {
  /** Sends the collected spans; gives up after `withinMs`. Never throws. */
  flush(withinMs: number): Promise<void>;
}

const off: Tracing = { flush: async () => undefined };
let capturing = false;

/** Enables tracing if configured. A failure is logged, and the service runs without tracing. */
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
        const ended = sdk.shutdown().catch((error: unknown) => log.warn({ err: error }, "last spans not sent"));
        await Promise.race([ended, delay(Math.max(0, withinMs), undefined, { ref: false })]);
      },
    };
  } catch (error) {
    log.error({ err: error }, "tracing not started: the service runs without it");
    return off;
  }
}

/** Whether spans may contain messages. False unless OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT is set. */
export function capturesContent(): boolean {
  return capturing;
}

/** Log fields that identify the active span. */
export function spanFields(): { trace_id?: string; span_id?: string } {
  const span = trace.getActiveSpan()?.spanContext();
  return span === undefined ? {} : { trace_id: span.traceId, span_id: span.spanId };
}
