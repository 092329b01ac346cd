// Spans, and the W3C trace context as text, using only OpenTelemetry's API. Without a registered SDK (the chassis registers it if a
// collector is configured) all functions do nothing.
import { WireError } from "@parley/contracts";
import {
  context,
  isSpanContextValid,
  propagation,
  ROOT_CONTEXT,
  SpanKind,
  SpanStatusCode,
  trace,
  type Attributes,
  type Context,
  type Link,
  type Span,
} from "@opentelemetry/api";

/** OpenTelemetry's kinds. `internal`: work of this process. `producer`, `consumer`: sender and receiver of a message. `client`: a call to an external service. */
type SpanKindName = "internal" | "producer" | "consumer" | "client";

const kinds: Readonly<Record<SpanKindName, SpanKind>> = {
  internal: SpanKind.INTERNAL,
  producer: SpanKind.PRODUCER,
  consumer: SpanKind.CONSUMER,
  client: SpanKind.CLIENT,
};

export interface SpanOptions {
  /** Default `internal`. */
  kind?: SpanKindName;
  attributes?: Attributes;
  /** W3C traceparent of the parent span; null begins a new trace. Omitted: the active span. */
  parent?: string | null;
  /** W3C traceparents of further causes; null ones are ignored. */
  links?: readonly (string | null)[];
  /** Value of `error.type` for a thrown value; undefined: not an error. Default: a WireError's code, otherwise the error's name. */
  errorType?: (error: unknown) => string | undefined;
}

/** Runs work inside a span. A thrown error is recorded by its type, never by its text, and rethrown. */
export async function inSpan<T>(name: string, options: SpanOptions, work: (span: Span) => Promise<T>): Promise<T> {
  const parent = options.parent === undefined ? context.active() : contextOf(options.parent);
  const links = (options.links ?? []).flatMap((link): Link[] => {
    const linked = link === null ? undefined : trace.getSpanContext(contextOf(link));
    return linked === undefined ? [] : [{ context: linked }];
  });
  const start = { kind: kinds[options.kind ?? "internal"], attributes: options.attributes ?? {}, links };
  const span = trace.getTracer("parley").startSpan(name, start, parent);
  try {
    return await context.with(trace.setSpan(parent, span), work, undefined, span);
  } catch (error) {
    const type = (options.errorType ?? errorTypeOf)(error);
    if (type !== undefined) failSpan(span, type);
    throw error;
  } finally {
    span.end();
  }
}

/** Marks a span as failed. `type` is one of few values: the code of an error, not its text. */
export function failSpan(span: Span, type: string): void {
  span.setStatus({ code: SpanStatusCode.ERROR }).setAttribute("error.type", type);
}

function errorTypeOf(error: unknown): string {
  if (WireError.is(error)) return error.code;
  return error instanceof Error ? error.name : "_OTHER";
}

/** W3C traceparent of the active span; null without one and while tracing is off. */
export function activeTrace(): string | null {
  const active = context.active();
  const span = trace.getSpanContext(active);
  if (span === undefined || !isSpanContextValid(span)) return null;
  const carrier: Record<string, string> = {};
  propagation.inject(active, carrier);
  return carrier["traceparent"] ?? null;
}

/** Links another cause to the active span, e.g. the span of a message that joined a running turn. */
export function linkTrace(traceparent: string | null): void {
  const linked = traceparent === null ? undefined : trace.getSpanContext(contextOf(traceparent));
  if (linked !== undefined) trace.getActiveSpan()?.addLink({ context: linked });
}

function contextOf(traceparent: string | null): Context {
  return traceparent === null ? ROOT_CONTEXT : propagation.extract(ROOT_CONTEXT, { traceparent });
}
