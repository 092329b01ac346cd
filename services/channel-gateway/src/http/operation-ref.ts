// What names one request of a caller: the same Idempotency-Key is the same operation.
import { randomUUID } from "node:crypto";
import type { FastifyRequest } from "fastify";

export const keyHeader = { "Idempotency-Key": "The same key again is the same operation, and answers the same." };

export function operationRef({ headers, method, url }: FastifyRequest): string {
  const key = headers["idempotency-key"];
  return `http:${method} ${url}:${key === undefined ? randomUUID() : String(key)}`;
}
