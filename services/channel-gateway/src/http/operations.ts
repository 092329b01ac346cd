// The operations as HTTP routes, with their entries in /openapi.json. Every holder of the API token is the owner.
import { randomUUID } from "node:crypto";
import { type HttpProjection, type OperationDefinition } from "@parley/contracts";
import type { FastifyRequest } from "fastify";
import { z } from "zod";
import type { Operation } from "../operations/operation.ts";
import { callOperation, operations } from "../operations/registry.ts";
import { accessOf } from "./api-access.ts";
import type { HttpDeps } from "./deps.ts";
import type { EndpointDoc, Endpoints } from "./endpoint.ts";
import { ownerCaller } from "./owner-input.ts";

/** Registers the route of every operation that has one. */
export function operationRoutes(endpoints: Endpoints, deps: HttpDeps): void {
  for (const operation of operations) {
    const { http } = operation.definition;
    if (http !== undefined) addRoute(endpoints, deps, operation, http);
  }
}

function addRoute(endpoints: Endpoints, deps: HttpDeps, operation: Operation, http: HttpProjection): void {
  const spec = { ...routeOf(operation.definition, http), scope: operation.scope };
  const [status] = statusesOf(http);
  endpoints.add(spec, async ({ params, query, body, request, reply }) => {
    const input = { ...asObject(body), ...asObject(query), ...asObject(params) };
    const { ref, key } = identityOf(request);
    const caller = ownerCaller(accessOf(request), "API", ref, key);
    const output = await callOperation(deps.inbound.operations, operation, input, caller);
    reply.code(status);
    const { output: schema } = operation.definition;
    return schema instanceof z.ZodObject ? chosen(output, Object.keys(schema.shape)) : output;
  });
}

/** Splits the input into the parameters of the path and the query or body. */
function routeOf({ name, summary = name, input, output }: OperationDefinition, http: HttpProjection): EndpointDoc {
  const { method, path, description, answers, key, emptyBody } = http;
  const [success] = statusesOf(http);
  const shape: Record<string, z.ZodType> = input instanceof z.ZodObject ? input.shape : {};
  const inPath = new Set([...path.matchAll(/:(\w+)/g)].map(([, name]) => name ?? ""));
  const part = (ofPath: boolean) => Object.entries(shape).filter(([name]) => inPath.has(name) === ofPath);
  const others = part(false);
  const rest = input instanceof z.ZodObject ? z.strictObject(Object.fromEntries(others)) : input;
  const hasRest = others.length > 0 || !(input instanceof z.ZodObject) || emptyBody === true;
  return {
    method,
    url: path,
    summary,
    ...(description === undefined ? {} : { description }),
    ...(key === undefined ? {} : { headers: { "Idempotency-Key": key } }),
    ...(inPath.size === 0 ? {} : { params: z.object(Object.fromEntries(part(true))) }),
    ...(hasRest ? { [method === "GET" ? "query" : "body"]: rest } : {}),
    answers: Object.fromEntries(
      Object.entries(answers).map(([status, text]) => [
        status,
        { description: text, ...(Number(status) === success ? { schema: output } : {}) },
      ]),
    ),
  };
}

/** The fields of an output that an answer has; undefined: all of them. */
export function chosen(output: unknown, fields: readonly string[] | undefined): object {
  const all = Object.entries(asObject(output));
  return Object.fromEntries(fields === undefined ? all : all.filter(([name]) => fields.includes(name)));
}

function statusesOf({ answers }: HttpProjection): [number] {
  return [Math.min(...Object.keys(answers).map(Number))];
}

function asObject(value: unknown): Record<string, unknown> {
  return typeof value === "object" && value !== null ? { ...value } : {};
}

/** Identifies the request: a repeated Idempotency-Key is the same operation. The query does not count. */
function identityOf({ headers, method, url }: FastifyRequest): { ref: string; key: string } {
  const given = headers["idempotency-key"];
  const key = given === undefined ? randomUUID() : String(given);
  return { ref: `http:${method} ${url.replace(/\?.*$/s, "")}:${key}`, key };
}
