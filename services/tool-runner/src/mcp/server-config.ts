// Converts the settings of MCP servers into connection plans, with the values of the named variables. It starts nothing.
import { resolve } from "node:path";
import { unsandboxedProgramProblem, outsideSearchPath, type Environment } from "@parley/chassis";
import { mcpClientOf, type McpServerSettings, type McpSettings, type ToolRisk } from "@parley/contracts";
import { safeVariables } from "../sandbox/program-folder.ts";
import type { IdentityPlan, OAuthPlan } from "./oauth/provider.ts";
import { signingKey, type SigningKey } from "./oauth/signing-key.ts";
import type { SamplingPlan } from "./sampling.ts";

/** A server that this replica runs as a program. */
export interface StdioPlan {
  kind: "stdio";
  command: string;
  args: readonly string[];
  cwd: string;
  /** The complete environment of the program. */
  variables: Readonly<Record<string, string>>;
}

interface HttpPlan {
  kind: "http";
  url: URL;
  headers: Readonly<Record<string, string>>;
  oauth: OAuthPlan | null;
}

export interface McpServerConfig {
  name: string;
  reach: StdioPlan | HttpPlan;
  era: McpServerSettings["era"];
  /** Folders reported to the server as roots. */
  roots: readonly string[];
  /** Whether the agent may use this tool of the server. */
  allows(tool: string): boolean;
  /** Undefined: derived from the tool's annotations. */
  risk: ToolRisk | undefined;
  trustAnnotations: boolean;
  timeoutMs: number;
  /** Total time that questions to a person may delay one call; 0: elicitation is not allowed. */
  asksMs: number;
  /** Limits of sampling; null: not allowed. */
  sampling: SamplingPlan | null;
  startTimeoutMs: number;
}

export interface RestartTimes {
  /** Pause after the first failure; it doubles with each consecutive failure. */
  firstMs: number;
  maxMs: number;
  /** Consecutive failures after which restarts pause for `breakMs`. */
  breakAfter: number;
  breakMs: number;
}

export const restartTimes: RestartTimes = { firstMs: 250, maxMs: 30_000, breakAfter: 6, breakMs: 300_000 };

export interface ServerTimes extends RestartTimes {
  /** Timeout of the liveness check after a call timed out. */
  aliveMs: number;
}

/**
 * The pause before the next start. `failures`: consecutive failures, at least one. `broken`: calls are refused during the pause;
 * otherwise they wait for the next attempt. Pure.
 */
export function restartDelay(failures: number, times: RestartTimes): { ms: number; broken: boolean } {
  if (failures >= times.breakAfter) return { ms: times.breakMs, broken: true };
  return { ms: Math.min(times.maxMs, times.firstMs * 2 ** (failures - 1)), broken: false };
}

/** A configured server that cannot be used. */
interface McpServerOff {
  name: string;
  problem: string;
}

export interface McpConfig {
  plans: readonly McpServerConfig[];
  off: readonly McpServerOff[];
  /** The key that encrypts stored tokens; null: not set. */
  key: string | null;
  /** Values that must not be logged. */
  secrets: readonly string[];
}

/** Where programs run, and the search path for them. */
export interface ProgramPlace {
  workspace: string;
  /** Further folders that the agent can change. */
  folders?: readonly string[];
  /** An empty folder: the default working directory of programs. */
  programFolder: string;
  searchPath: string;
}

/** A server with a missing variable, or with a program that the agent could change, is disabled; the others are not affected. */
export function mcpConfig(settings: McpSettings, env: Environment, place: ProgramPlace): McpConfig {
  const plans: McpServerConfig[] = [];
  const off: McpServerOff[] = [];
  const secrets: string[] = [];
  const key = env["PARLEY_MCP_KEY"] ?? "";
  if (key !== "") secrets.push(key);
  for (const [name, server] of Object.entries(settings.servers)) {
    if (!server.enabled) continue;
    const problem = problemOf(server, env, place);
    if (problem !== undefined) off.push({ name, problem });
    else {
      secrets.push(...namedVariables(server).map((variable) => env[variable] ?? ""));
      plans.push(planOf(name, server, settings.public_url, env, place));
    }
  }
  return { plans, off, key: key === "" ? null : key, secrets };
}

/** Why the server cannot be used; undefined if it can. */
function problemOf(
  server: McpServerSettings,
  env: Environment,
  { workspace, folders = [] }: ProgramPlace,
): string | undefined {
  const { command, args, cwd, oauth } = server;
  const missing = namedVariables(server).filter((variable) => (env[variable] ?? "") === "");
  if (missing.length > 0) return `not set in the tool-runner's environment: ${missing.join(", ")}`;
  const where = cwd === undefined ? null : resolve(workspace, cwd);
  const unsafe =
    command === undefined
      ? undefined
      : [workspace, ...folders]
          .map((folder) => unsandboxedProgramProblem({ command, args, cwd: where }, folder))
          .find((problem) => problem !== undefined);
  if (unsafe !== undefined) return unsafe;
  const signing = keyOf(oauth, env);
  if (typeof signing === "string") return `${oauth?.private_key_env ?? ""} in the tool-runner's environment ${signing}`;
  return oauth?.grant === "authorization_code" && (env["PARLEY_MCP_KEY"] ?? "") === ""
    ? "oauth requires PARLEY_MCP_KEY in the tool-runner's environment to encrypt the tokens"
    : undefined;
}

function planOf(
  name: string,
  server: McpServerSettings,
  publicUrl: string,
  env: Environment,
  { workspace, folders = [], programFolder, searchPath }: ProgramPlace,
): McpServerConfig {
  const value = (variable: string) => env[variable] ?? "";
  const common = {
    name,
    era: server.era,
    roots: server.roots.map((root) => resolve(workspace, root)),
    allows: (tool: string) => server.tools.some((pattern) => matches(pattern, tool)),
    risk: server.risk,
    trustAnnotations: server.trust_annotations,
    timeoutMs: server.timeout_seconds * 1_000,
    asksMs: asksMs(server),
    sampling: samplingOf(server),
    startTimeoutMs: server.start_timeout_seconds * 1_000,
  };
  if (server.url !== undefined) {
    const headers = Object.fromEntries(
      Object.entries(server.headers_env).map(([header, variable]) => [header, value(variable)]),
    );
    if (server.token_env !== undefined) headers["authorization"] = `Bearer ${value(server.token_env)}`;
    const oauth = server.oauth === undefined ? null : oauthPlan(name, server.oauth, publicUrl, env);
    return { ...common, reach: { kind: "http", url: new URL(server.url), headers, oauth } };
  }
  return {
    ...common,
    reach: {
      kind: "stdio",
      command: server.command ?? "",
      args: server.args,
      cwd: server.cwd === undefined ? programFolder : resolve(workspace, server.cwd),
      variables: {
        PATH: [workspace, ...folders].reduce(outsideSearchPath, searchPath),
        LANG: "C.UTF-8",
        ...safeVariables,
        ...Object.fromEntries(server.env.map((variable) => [variable, value(variable)])),
      },
    },
  };
}

/** Node's HTTP client aborts a response that is silent for five minutes, and a server that waits for us may send nothing. */
const maxHttpAsksMs = 285_000;

function asksMs({ url, era, question_seconds: seconds }: McpServerSettings): number {
  return url === undefined || era === "2026" ? seconds * 1_000 : Math.min(seconds * 1_000, maxHttpAsksMs);
}

function samplingOf({ sampling }: McpServerSettings): SamplingPlan | null {
  return sampling?.enabled === true ? { maxRequests: sampling.max_requests, ask: sampling.ask } : null;
}

function oauthPlan(
  name: string,
  oauth: NonNullable<McpServerSettings["oauth"]>,
  publicUrl: string,
  env: Environment,
): OAuthPlan {
  const signing = keyOf(oauth, env);
  return {
    grant: oauth.grant,
    clientId: oauth.client_id,
    clientSecret: oauth.client_secret_env === undefined ? undefined : env[oauth.client_secret_env],
    signingKey: typeof signing === "string" ? undefined : signing,
    identity: identityOf(oauth.identity, env),
    scope: oauth.scopes.length === 0 ? undefined : oauth.scopes.join(" "),
    issuer: oauth.issuer,
    client: mcpClientOf(publicUrl, name, oauth),
  };
}

function identityOf(
  identity: NonNullable<McpServerSettings["oauth"]>["identity"],
  env: Environment,
): IdentityPlan | undefined {
  if (identity === undefined) return undefined;
  const { token_url: tokenUrl, client_id: clientId, client_secret_env: secret, token_file: tokenFile } = identity;
  return { tokenUrl, clientId, clientSecret: secret === undefined ? undefined : env[secret], tokenFile };
}

/** A string describes the problem with the key. Undefined: no key is configured. */
function keyOf(oauth: McpServerSettings["oauth"], env: Environment): SigningKey | string | undefined {
  if (oauth?.private_key_env === undefined) return undefined;
  return signingKey(env[oauth.private_key_env] ?? "", oauth.signing_algorithm);
}

function namedVariables({ env, headers_env: headers, token_env: token, oauth }: McpServerSettings): string[] {
  const { client_secret_env: secret, private_key_env: key, identity } = oauth ?? {};
  const named = [...env, ...Object.values(headers), token, secret, key, identity?.client_secret_env];
  return named.filter((variable) => variable !== undefined);
}

function matches(pattern: string, name: string): boolean {
  const parts = pattern.split("*").map((part) => part.replaceAll(/[.+?^${}()|[\]\\]/g, String.raw`\$&`));
  return new RegExp(`^${parts.join(".*")}$`, "s").test(name);
}
