// Generates the OpenAPI document from the route definitions.
import { z } from "zod";
import { version } from "@parley/chassis";
import type { AnswerDoc, EndpointDoc } from "./endpoint.ts";

type Json = Record<string, unknown>;

export function openapiDocument(endpoints: readonly EndpointDoc[]): Json {
  const paths: Record<string, Json> = {};
  for (const endpoint of endpoints) {
    const path = endpoint.url.replace(/:(\w+)/g, "{$1}");
    paths[path] = { ...paths[path], [endpoint.method.toLowerCase()]: operation(endpoint) };
  }
  return {
    openapi: "3.1.0",
    info: {
      title: "Parley",
      version,
      description:
        "The HTTP API of one always-on agent. The native API is below /api, the OpenAI-compatible API below /v1.",
    },
    components: { securitySchemes: { token: { type: "http", scheme: "bearer" } } },
    security: [{ token: [] }],
    paths,
  };
}

function operation(endpoint: EndpointDoc): Json {
  const body = endpoint.body ?? endpoint.bodyDoc;
  const parameters = [
    ...properties(endpoint.params, "path"),
    ...properties(endpoint.query, "query"),
    ...Object.entries(endpoint.headers ?? {}).map(([name, description]) => ({
      name,
      in: "header",
      description,
      required: false,
      schema: { type: "string" },
    })),
  ];
  return {
    summary: endpoint.summary,
    ...(endpoint.description === undefined ? {} : { description: endpoint.description }),
    ...(endpoint.open === true ? { security: [] } : {}),
    ...(parameters.length === 0 ? {} : { parameters }),
    ...(body === undefined
      ? {}
      : { requestBody: { required: true, content: { "application/json": { schema: jsonSchema(body, "input") } } } }),
    responses: {
      ...Object.fromEntries(Object.entries(endpoint.answers).map(([status, answer]) => [status, response(answer)])),
      default: { description: "An error", content: { "application/json": { schema: errorSchema } } },
    },
  };
}

const errorSchema = {
  type: "object",
  properties: {
    error: {
      type: "object",
      properties: { code: { type: "string" }, message: { type: "string" } },
      required: ["code", "message"],
    },
  },
  required: ["error"],
};

function response({ description, schema, contentType }: AnswerDoc): Json {
  if (schema === undefined && contentType === undefined) return { description };
  const media = schema === undefined ? {} : { schema: jsonSchema(schema, "output") };
  return { description, content: { [contentType ?? "application/json"]: media } };
}

function properties(schema: z.ZodType | undefined, place: "path" | "query"): Json[] {
  if (schema === undefined) return [];
  const { properties: each = {}, required = [] } = jsonSchema(schema, "input") as {
    properties?: Record<string, Json>;
    required?: string[];
  };
  return Object.entries(each).map(([name, property]) => ({
    name,
    in: place,
    required: place === "path" || required.includes(name),
    schema: property,
  }));
}

function jsonSchema(schema: z.ZodType, io: "input" | "output"): Json {
  const { $schema: _, ...rest } = z.toJSONSchema(schema, { io, unrepresentable: "any" });
  return rest;
}
