// Generates docs/reference/http.md from the OpenAPI document that a gateway serves.
import { z } from "zod";

const Named = z.object({
  name: z.string(),
  in: z.string(),
  required: z.boolean().optional(),
  description: z.string().optional(),
});
const Body = z.looseObject({
  properties: z.record(z.string(), z.unknown()).optional(),
  required: z.array(z.string()).optional(),
});
const Route = z.object({
  summary: z.string(),
  description: z.string().optional(),
  security: z.array(z.unknown()).optional(),
  parameters: z.array(Named).default([]),
  requestBody: z.object({ content: z.record(z.string(), z.object({ schema: Body.optional() })) }).optional(),
  responses: z.record(z.string(), z.object({ description: z.string() })),
});
const OpenApi = z.object({ paths: z.record(z.string(), z.record(z.string(), Route)) });

/** The whole page. `openapi`: the parsed body of `/openapi.json`. */
export function httpDocument(openapi: unknown): string {
  const { paths } = OpenApi.parse(openapi);
  const routes = Object.entries(paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, route]) => ({ name: `${method.toUpperCase()} ${path}`, path, route })),
  );
  const groups = Map.groupBy(routes, ({ path }) => groupOf(path));
  return `${[
    "# HTTP API",
    "Generated from the routes of channel-gateway; `PARLEY_RECORD_SURFACE=1 npm test -- services/channel-gateway/test/surface.test.ts` writes it, and that test fails when it is stale.",
    '`/openapi.json` of a running gateway contains all schemas. Every route needs `Authorization: Bearer <token>` unless it is marked as open. Errors have the form `{"error": {"code", "message"}}`. A POST with an `Idempotency-Key` may be repeated. [Events](../events.md) describes the streams, [WebSocket frames and events](websocket.md) their content, [OpenAI clients](../openai.md) the routes below `/v1`.',
    ...[...groups].map(([group, own]) => [`## ${group}`, ...own.map(section)].join("\n\n")),
  ].join("\n\n")}\n`;
}

function groupOf(path: string): string {
  const [first = "", second = ""] = path.split("/").slice(1);
  return first === "api" ? `/api/${second}` : `/${first}`;
}

function section({ name, route }: { name: string; route: z.output<typeof Route> }): string {
  const { summary, description, security, parameters, requestBody, responses } = route;
  const given = parameters.map(
    (each) =>
      `- \`${each.name}\` (${each.in}${each.required === true ? ", required" : ""})${each.description === undefined ? "" : `: ${each.description}`}`,
  );
  const bodies = Object.entries(requestBody?.content ?? {}).map(([type, { schema }]) => {
    const required = new Set(schema?.required);
    const fields = Object.keys(schema?.properties ?? {}).map(
      (field) => `\`${field}\`${required.has(field) ? " (required)" : ""}`,
    );
    return `- body, \`${type}\`${fields.length === 0 ? "" : `: ${fields.join(", ")}`}`;
  });
  const answers = Object.entries(responses)
    .filter(([status]) => status !== "default")
    .map(([status, answer]) => `- ${status}: ${answer.description}`);
  const open = security?.length === 0 ? " Open: needs no token." : "";
  return [
    `### ${name}`,
    `${summary}.${open}${description === undefined ? "" : `\n\n${description}`}`,
    [...given, ...bodies, ...answers].join("\n"),
  ].join("\n\n");
}
