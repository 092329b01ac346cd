// What the deployment files must match: the code, read as text, so that a test needs neither a build nor a server.

import { readFileSync } from "node:fs";
import { join, resolve } from "node:path";

import { services, type ServiceName } from "@parley/contracts";
import { z } from "zod";

export const root = resolve(import.meta.dirname, "../../..");

export function read(path: string): string {
  return readFileSync(join(root, path), "utf8");
}

export const version = z.object({ version: z.string() }).parse(JSON.parse(read("package.json"))).version;

/** The paths that every service's health listener serves. */
export const healthPaths = [...read("packages/chassis/src/health.ts").matchAll(/case "(\/[a-z]+)"/g)].map(
  (match) => match[1] ?? "",
);

export function isService(name: string): name is ServiceName {
  return (services as readonly string[]).includes(name);
}

/** The variables that a service reads, and those that its image sets. */
export function variablesOf(service: ServiceName): string[] {
  const own = [
    ...variablesIn("packages/chassis/src/config.ts"),
    ...taken("packages/chassis/src/secrets-folder.ts"),
    ...variablesIn(`services/${service}/src/config.ts`),
  ];
  return service === "tool-runner" ? [...own, ...taken("services/tool-runner/src/mcp/server-config.ts")] : own;
}

function variablesIn(path: string): string[] {
  return [...read(path).matchAll(/^ {2}([A-Z][A-Z0-9_]+): z?/gm)].map((match) => match[1] ?? "");
}

/** Variables whose names the code computes. */
function taken(path: string): string[] {
  return [...read(path).matchAll(/\benv\["([A-Z][A-Z0-9_]+)"\]/g)].map((match) => match[1] ?? "");
}

/** The services that may receive each secret, by the variable of the secret: each backing service has one owner. */
export const secretVariables: Readonly<Record<string, readonly string[]>> = {
  DATABASE_URL: ["store", "migrate"],
  REDIS_URL: ["agent-core"],
  ANTHROPIC_API_KEY: ["agent-core"],
  OPENAI_API_KEY: ["agent-core"],
  PARLEY_TOKEN_SHA256: ["channel-gateway"],
  PARLEY_MCP_KEY: ["tool-runner"],
  PARLEY_BLOB_BUCKET: ["store"],
  PARLEY_BLOB_ENDPOINT: ["store"],
  PARLEY_BLOB_REGION: ["store"],
  AWS_ACCESS_KEY_ID: ["store"],
  AWS_SECRET_ACCESS_KEY: ["store"],
  PARLEY_NATS_URL: services,
  PARLEY_NATS_SEED: services,
  PARLEY_NATS_SEED_FILE: services,
};
