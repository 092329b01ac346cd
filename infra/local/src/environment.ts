// The environment of each service, which receives no secret of another service; and the model that a start will use.

import { basename } from "node:path";

import type { ExplainedSettings } from "@parley/chassis/settings";
import { defaultModel, type ServiceName } from "@parley/contracts";

import type { WorkspaceFolders } from "./workspace.ts";

/** Variables by name; undefined means not set. */
export type Environment = Readonly<Record<string, string | undefined>>;

/** Addresses and paths of the running cluster. */
export interface ClusterFacts {
  readonly namespace: string;
  /** NATS with the credentials of each service. */
  readonly natsUrls: Readonly<Record<ServiceName, string>>;
  /** PostgreSQL for the role without DDL rights. */
  readonly storeUrl: string;
  readonly redisUrl: string;
  /** SHA-256 of the token, hexadecimal; services do not receive the token itself. */
  readonly tokenSha256: string;
  /** parley.toml, or null. */
  readonly configPath: string | null;
  readonly folders: WorkspaceFolders;
  /** The folder with files of channel secrets, which the gateways read and write. */
  readonly secrets: string;
  /** The bubblewrap binary, or null. */
  readonly bwrap: string | null;
}

export interface ReplicaPlace {
  /** For example `agent-core-1`. */
  readonly name: string;
  /** The HTTP port of a gateway; null for other services. */
  readonly httpPort: number | null;
}

/** Variables of the caller's environment that every service receives. */
const commonVariables = [
  "PATH",
  "HOME",
  "LANG",
  "TZ",
  "NODE_ENV",
  "NODE_COMPILE_CACHE",
  "PARLEY_LOG_LEVEL",
  "PARLEY_DRAIN_MS",
];
/** TLS files for an external server that a URL names: CA, certificate and key. A private server has no TLS. */
function tlsFiles(person: Environment, url: "NATS_URL" | "DATABASE_URL" | "REDIS_URL", prefix: string): string[] {
  return person[url] ? ["CA_FILE", "CERT_FILE", "KEY_FILE"].map((suffix) => `${prefix}_${suffix}`) : [];
}
/** For the two services that connect to the internet directly. */
const outboundVariables = ["NODE_EXTRA_CA_CERTS", "NODE_USE_ENV_PROXY", "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY"];
const modelVariables = [
  "ANTHROPIC_API_KEY",
  "ANTHROPIC_BASE_URL",
  "OPENAI_API_KEY",
  "OPENAI_BASE_URL",
  "PARLEY_MODEL",
  "PARLEY_MODEL_RETRY_BASE_MS",
  "PARLEY_MODEL_FIRST_BYTE_MS",
  "PARLEY_MODEL_IDLE_MS",
];
const storeVariables = [
  "PARLEY_STORE_POOL",
  "PARLEY_OP_RETENTION_HOURS",
  "PARLEY_EVENT_RETENTION_DAYS",
  "PARLEY_AUDIT_RETENTION_DAYS",
];
/** The store's place for large attachments. */
const blobPrefix = "PARLEY_BLOB_";
/** Credentials for the bucket. */
const bucketPrefix = "AWS_";
/** Keys of agent-core's other providers (an embedder, a transcription service); parley.toml names them. */
const agentPrefix = "PARLEY_AGENT_";
const gatewayVariables = ["PARLEY_ALLOWED_ORIGINS", "PARLEY_ALLOWED_HOSTS", "PARLEY_HTTP_RATE_PER_MINUTE"];
/** Settings as variables and flags; each service reads all of them. */
const defaultSettings = ["PARLEY_PRESET", "PARLEY_SET"];
const settingsPrefix = "PARLEY__";
/** OpenTelemetry's variables. One trace needs all four services. */
const tracingPrefix = "OTEL_";
/** Secrets of tools, hooks and MCP servers; parley.toml names them. PARLEY_MCP_KEY seals the tokens of servers. */
const toolPrefixes = ["PARLEY_TOOL_", "PARLEY_HOOK_", "PARLEY_MCP_", "BRAVE_", "TAVILY_"];
/** Channel secrets; parley.toml names them. */
const channelPrefix = "PARLEY_CHANNEL_";

/** The whole environment of one replica. `person`: the caller's environment; only listed variables are passed on. */
export function serviceEnvironment(
  service: ServiceName,
  place: ReplicaPlace,
  facts: ClusterFacts,
  person: Environment,
): Record<string, string> {
  return {
    NODE_ENV: "production",
    ...pick(person, [
      ...commonVariables,
      ...tlsFiles(person, "NATS_URL", "PARLEY_NATS"),
      "PARLEY_TRACE_STORE",
      ...beginningWith(person, tracingPrefix),
    ]),
    ...settingsVariables(person),
    PARLEY_NAMESPACE: facts.namespace,
    PARLEY_NATS_URL: facts.natsUrls[service],
    PARLEY_REPLICA: place.name,
    PARLEY_HEALTH_PORT: "0",
    ...(facts.configPath === null ? {} : { PARLEY_CONFIG: facts.configPath }),
    ...ownPart[service](place, facts, person),
  };
}

/** The settings in the caller's environment: variables of keys, the preset, and flags. */
export function settingsVariables(person: Environment): Record<string, string> {
  return pick(person, [...defaultSettings, ...beginningWith(person, settingsPrefix)]);
}

/** The environment of the migration, the only process with the schema owner's password. */
export function migrationEnvironment(ownerUrl: string, person: Environment): Record<string, string> {
  return {
    NODE_ENV: "production",
    ...pick(person, [...commonVariables, ...tlsFiles(person, "DATABASE_URL", "DATABASE")]),
    DATABASE_URL: ownerUrl,
  };
}

type OwnPart = (place: ReplicaPlace, facts: ClusterFacts, person: Environment) => Record<string, string>;

const ownPart: Readonly<Record<ServiceName, OwnPart>> = {
  store: (_, facts, person) => ({
    DATABASE_URL: facts.storeUrl,
    ...pick(person, [
      ...storeVariables,
      ...tlsFiles(person, "DATABASE_URL", "DATABASE"),
      ...beginningWith(person, blobPrefix),
    ]),
    ...(person["PARLEY_BLOB_BUCKET"] === undefined ? {} : pick(person, beginningWith(person, bucketPrefix))),
  }),
  "agent-core": (_, facts, person) => ({
    REDIS_URL: facts.redisUrl,
    ...pick(person, [
      ...modelVariables,
      ...tlsFiles(person, "REDIS_URL", "REDIS"),
      ...outboundVariables,
      ...beginningWith(person, agentPrefix),
    ]),
  }),
  "tool-runner": (_, facts, person) => ({
    PARLEY_WORKSPACE: facts.folders.workspace,
    PARLEY_STATE: facts.folders.state,
    PARLEY_CHECKPOINTS: facts.folders.checkpoints,
    ...(facts.bwrap === null ? {} : { PARLEY_BWRAP: facts.bwrap }),
    ...pick(person, [
      "PARLEY_EXEC_ISOLATION",
      "PARLEY_EXEC_MIN_ISOLATION",
      "PARLEY_CHECKPOINTS",
      "PARLEY_STATE",
      ...toolPrefixes.flatMap((prefix) => beginningWith(person, prefix)),
    ]),
  }),
  "channel-gateway": (place, facts, person) => ({
    PARLEY_HTTP_HOST: "127.0.0.1",
    PARLEY_HTTP_PORT: String(place.httpPort ?? 0),
    PARLEY_TOKEN_SHA256: facts.tokenSha256,
    PARLEY_SECRETS_DIR: facts.secrets,
    ...pick(person, [...gatewayVariables, ...outboundVariables, ...beginningWith(person, channelPrefix)]),
  }),
};

function beginningWith(person: Environment, prefix: string): string[] {
  return Object.keys(person).filter((name) => name.startsWith(prefix));
}

function pick(person: Environment, names: readonly string[]): Record<string, string> {
  return Object.fromEntries(
    names
      .map((name) => [name, person[name]])
      .filter((entry): entry is [string, string] => entry[1] !== undefined && entry[1] !== ""),
  );
}

/** True if the settings choose a model or Claude's key is set. A server with OpenAI's API alone is no choice: it has many models. */
export function isModelConfigured(environment: Environment, { agent }: ExplainedSettings["settings"]): boolean {
  return agent.model !== undefined || isSet(environment["ANTHROPIC_API_KEY"]);
}

/** For example `rehearsal: a built-in scripted model, no key set`. */
export function describeModel(environment: Environment, { settings, originOf }: ExplainedSettings): string {
  const { ANTHROPIC_API_KEY, ANTHROPIC_BASE_URL, OPENAI_API_KEY, OPENAI_BASE_URL } = environment;
  const at = (model: string) => {
    const url = model.startsWith("openai:") ? OPENAI_BASE_URL : ANTHROPIC_BASE_URL;
    return isSet(url) ? ` at ${url}` : "";
  };
  const { model } = settings.agent;
  if (model !== undefined) {
    const origin = basename(originOf(["agent", "model"]));
    if (model === "rehearsal") return `rehearsal: a built-in scripted model, chosen by ${origin}`;
    return `${model}${at(model)}${origin === "PARLEY_MODEL" ? "" : ` (${origin})`}`;
  }
  if (isSet(ANTHROPIC_API_KEY)) return `${defaultModel}, the default model${at("")}`;
  if (isSet(OPENAI_API_KEY) || isSet(OPENAI_BASE_URL))
    return "rehearsal: a built-in scripted model; choose a real one with PARLEY_MODEL=openai:<model>";
  return "rehearsal: a built-in scripted model, no key set";
}

export function isSet(value: string | undefined): value is string {
  return value !== undefined && value !== "";
}
