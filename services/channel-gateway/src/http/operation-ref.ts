// Derives operation ids from requests: a repeated Idempotency-Key is the same operation.
import { nameUuid } from "@parley/kit";
import { randomUUID } from "node:crypto";
import type { FastifyRequest } from "fastify";

export const keyHeader = { "Idempotency-Key": "A repeated key is the same operation and returns the same result." };

export function operationRef({ headers, method, url }: FastifyRequest): string {
  const key = headers["idempotency-key"];
  return `http:${method} ${url}:${key === undefined ? randomUUID() : String(key)}`;
}

/** The id of a store operation; `what`: the operation and its target, which scope the caller's key. */
export function operationId({ headers }: Pick<FastifyRequest, "headers">, what: string): string {
  const key = headers["idempotency-key"];
  return key === undefined ? randomUUID() : nameUuid(`${what}:${String(key)}`);
}
