// Checks from this machine that the configured model's server answers and accepts the key. Costs nothing: it only lists models.

import { ConfigError, loadSettings } from "@parley/chassis/settings";
import type { ParleySettings } from "@parley/contracts";
import { withSecrets } from "@parley/local";

import { reasonOf } from "../cluster/gateway.ts";
import { judge } from "../onboard/model-test.ts";
import { addressOf, keyVariable } from "../onboard/models.ts";
import { type Check, type DoctorContext, error, type Finding, ok } from "./finding.ts";

const timeoutMs = 5_000;

type Env = Readonly<Record<string, string | undefined>>;

export interface ModelServer {
  readonly title: string;
  /** Lists the models. */
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  /** Undefined: none is known here. */
  readonly key: string | undefined;
  readonly keyVariable: string | null;
}

/** The server of the agent's own model; null for the rehearsal model. Pure. */
export function modelServer({ agent, llm }: Pick<ParleySettings, "agent" | "llm">, env: Env): ModelServer | null {
  const name = agent.model ?? (env["ANTHROPIC_API_KEY"] ? "anthropic:" : "rehearsal");
  if (name === "rehearsal") return null;
  const [prefix = ""] = name.split(":");
  const named = llm[name] ?? (name.includes(":") ? llm[prefix] : undefined);
  const own = prefix === "openai" && name.includes(":") ? "openai" : "anthropic";
  const api = named === undefined ? own : named.api === "anthropic" ? "anthropic" : "openai";
  const base = (named?.base_url ?? addressOf(api, env)).replace(/\/+$/, "");
  const variable = named === undefined ? keyVariable(api) : (named.key_env ?? null);
  const key = variable === null ? undefined : env[variable] || undefined;
  const headers: Record<string, string> = api === "anthropic" ? { "anthropic-version": "2023-06-01" } : {};
  if (key !== undefined && api === "anthropic") headers["x-api-key"] = key;
  if (key !== undefined && api === "openai") headers["authorization"] = `Bearer ${key}`;
  return {
    title: new URL(base).origin,
    url: api === "anthropic" ? `${base}/v1/models` : `${base}/models`,
    headers,
    key,
    keyVariable: variable,
  };
}

/** What an answer of the server means. Without a key, every answer shows that it is reachable. */
export function modelServerFinding(server: ModelServer, status: number, body: string): Finding {
  const { outcome, text } = judge(status, body, server.key ?? "");
  if (outcome === "key_refused" && server.key !== undefined) {
    return error("model-server", `${server.title}: ${text}`, "parley onboard   (asks for another key and tests it)");
  }
  return ok(
    "model-server",
    `${server.title} answers${outcome === "works" && server.key !== undefined ? " and accepts the key" : ""}`,
  );
}

async function check({ settingsFile, io, home, explicitUrl }: DoctorContext): Promise<Finding[]> {
  if (explicitUrl) return [];
  const env = { ...home.state?.settings, ...withSecrets(home.path, io.env) };
  let server: ModelServer | null;
  try {
    server = modelServer(loadSettings(settingsFile ?? undefined, env), env);
  } catch (failure) {
    if (failure instanceof ConfigError) return []; // the check `settings` reports it
    throw failure;
  }
  if (server === null) return [];
  try {
    const response = await fetch(server.url, { headers: server.headers, signal: AbortSignal.timeout(timeoutMs) });
    return [modelServerFinding(server, response.status, await response.text())];
  } catch (failure) {
    const fix = `start the server, or choose another model: parley onboard   (curl ${server.url} tries it)`;
    return [error("model-server", `${server.title} cannot be reached: ${reasonOf(failure)}`, fix)];
  }
}

export const modelChecks: readonly Check[] = [{ id: "model-server", run: check }];
