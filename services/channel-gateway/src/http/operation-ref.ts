// What names one request of a caller: the same Idempotency-Key is the same operation.
import { randomUUID } from "node:crypto";
import type { FastifyRequest } from "fastify";
import { uuidOf } from "../digest.ts";

export const keyHeader = { "Idempotency-Key": "The same key again is the same operation, and answers the same." };

export function operationRef({ headers, method, url }: FastifyRequest): string {
  const key = headers["idempotency-key"];
  return `http:${method} ${url}:${key === undefined ? randomUUID() : String(key)}`;
}

/** The id of an operation of the store; `what`: the verb and all that the caller's key is good for. */
export function operationId({ headers }: Pick<FastifyRequest, "headers">, what: string): string {
  const key = headers["idempotency-key"];
  return key === undefined ? randomUUID() : uuidOf(`${what}:${String(key)}`);
}
