// An OpenTelemetry collector for tests: receives OTLP over HTTP as JSON and stores the spans.
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import { once } from "node:events";
import type { AddressInfo } from "node:net";
import { text } from "node:stream/consumers";
import { z } from "zod";

const Attribute = z.object({
  key: z.string(),
  value: z.object({
    stringValue: z.string().optional(),
    intValue: z.union([z.string(), z.number()]).optional(),
    boolValue: z.boolean().optional(),
    arrayValue: z.object({ values: z.array(z.object({ stringValue: z.string().optional() })) }).optional(),
  }),
});

const Request = z.object({
  resourceSpans: z.array(
    z.object({
      resource: z.object({ attributes: z.array(Attribute) }),
      scopeSpans: z.array(
        z.object({
          scope: z.object({ name: z.string() }),
          spans: z.array(
            z.object({
              traceId: z.string(),
              spanId: z.string(),
              parentSpanId: z.string().optional(),
              name: z.string(),
              kind: z.number(),
              attributes: z.array(Attribute).default([]),
              links: z.array(z.object({ traceId: z.string(), spanId: z.string() })).default([]),
              status: z.object({ code: z.number().default(0) }).default({ code: 0 }),
            }),
          ),
        }),
      ),
    }),
  ),
});

const kinds = ["unspecified", "internal", "server", "client", "producer", "consumer"];

export interface CollectedSpan {
  traceId: string;
  spanId: string;
  /** Undefined for the first span of a trace. */
  parentSpanId: string | undefined;
  name: string;
  kind: string;
  /** The instrumentation library of the span. */
  scope: string;
  failed: boolean;
  attributes: Record<string, string | number | boolean | string[] | undefined>;
  links: { traceId: string; spanId: string }[];
  /** `service.name`. */
  service: string;
}

export interface OtlpCollector extends AsyncDisposable {
  /** For OTEL_EXPORTER_OTLP_ENDPOINT. */
  url: string;
  spans: readonly CollectedSpan[];
  /** Everything that was received, as text. */
  bodies: readonly string[];
  /** Resolves with the first span that satisfies the condition, as soon as it arrives. */
  span(is: (span: CollectedSpan) => boolean): Promise<CollectedSpan>;
  close(): Promise<void>;
}

export async function startOtlpCollector(): Promise<OtlpCollector> {
  const spans: CollectedSpan[] = [];
  const bodies: string[] = [];
  let arrived = Promise.withResolvers<void>();
  const answer = async (request: IncomingMessage, response: ServerResponse) => {
    const body = await take(request);
    bodies.push(body);
    spans.push(...spansIn(body));
    response.writeHead(200, { "content-type": "application/json" }).end("{}");
    arrived.resolve();
    arrived = Promise.withResolvers();
  };
  const server = createServer((request, response) => {
    answer(request, response).catch((error: unknown) => response.writeHead(400).end(String(error)));
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  const close = async () => {
    server.close();
    server.closeAllConnections();
    await once(server, "close");
  };
  return {
    url: `http://127.0.0.1:${port}`,
    spans,
    bodies,
    async span(is) {
      for (;;) {
        const found = spans.find(is);
        if (found !== undefined) return found;
        await arrived.promise;
      }
    },
    close,
    [Symbol.asyncDispose]: close,
  };
}

async function take(request: IncomingMessage): Promise<string> {
  if (request.method !== "POST" || request.url !== "/v1/traces") throw new Error(`${request.method} ${request.url}`);
  return text(request);
}

function spansIn(body: string): CollectedSpan[] {
  return Request.parse(JSON.parse(body)).resourceSpans.flatMap(({ resource, scopeSpans }) => {
    const service = String(attributesOf(resource.attributes)["service.name"]);
    return scopeSpans.flatMap(({ scope, spans }) =>
      spans.map(({ kind, status, attributes, parentSpanId, ...span }) => ({
        ...span,
        parentSpanId: parentSpanId === "" ? undefined : parentSpanId,
        kind: kinds[kind] ?? String(kind),
        failed: status.code === 2,
        attributes: attributesOf(attributes),
        scope: scope.name,
        service,
      })),
    );
  });
}

function attributesOf(attributes: z.infer<typeof Attribute>[]): CollectedSpan["attributes"] {
  return Object.fromEntries(
    attributes.map(({ key, value }) => [
      key,
      value.stringValue ??
        value.boolValue ??
        (value.intValue === undefined ? undefined : Number(value.intValue)) ??
        value.arrayValue?.values.map((each) => each.stringValue ?? ""),
    ]),
  );
}
