// Spans, and the W3C trace context as text: what every part of Parley needs of OpenTelemetry, on its API alone. As long as no
// SDK is registered (the chassis does that, where a collector is named) all of it does nothing.
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

/** OpenTelemetry's kinds. `internal`: work of this process. `producer`, `consumer`: the two ends of a message. `client`: a call to an outside service. */
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
  /** W3C traceparent of the span this one belongs under; null begins a trace of its own. Left out: the active span. */
  parent?: string | null;
  /** W3C traceparents of other spans that led here; null ones are left out. */
  links?: readonly (string | null)[];
  /** Value of `error.type` for what the work throws; undefined: not an error. Default: a WireError's code, else the error's name. */
  errorType?: (error: unknown) => string | undefined;
}

/** Does the work inside a span that ends with it. What it throws is noted in the span by its type, never by its text, and thrown on. */
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

/** W3C traceparent of the span that is active here; null without one, and always while tracing is off. */
export function activeTrace(): string | null {
  const active = context.active();
  const span = trace.getSpanContext(active);
  if (span === undefined || !isSpanContextValid(span)) return null;
  const carrier: Record<string, string> = {};
  propagation.inject(active, carrier);
  return carrier["traceparent"] ?? null;
}

/** Notes in the active span that another one led here too, e.g. that of a message which joined a running turn. */
export function linkTrace(traceparent: string | null): void {
  const linked = traceparent === null ? undefined : trace.getSpanContext(contextOf(traceparent));
  if (linked !== undefined) trace.getActiveSpan()?.addLink({ context: linked });
}

function contextOf(traceparent: string | null): Context {
  return traceparent === null ? ROOT_CONTEXT : propagation.extract(ROOT_CONTEXT, { traceparent });
}
