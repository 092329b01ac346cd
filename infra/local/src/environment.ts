// The environment of each service: only the variables that it needs, so that no service receives the secrets of another one.

import type { ServiceName } from "@parley/contracts";

import type { WorkspaceFolders } from "./workspace.ts";

/** Variables by name; undefined means not set. */
export type Environment = Readonly<Record<string, string | undefined>>;

/** Addresses, paths and credentials of the cluster, from which the environments are made. */
export interface ClusterContext {
  readonly namespace: string;
  /** The URL of NATS with the credentials of each service. */
  readonly natsUrls: Readonly<Record<ServiceName, string>>;
  /** The URL of PostgreSQL for the role without DDL rights. */
  readonly storeUrl: string;
  readonly redisUrl: string;
  /** SHA-256 of the token, hexadecimal; services do not receive the token itself. */
  readonly tokenSha256: string;
  /** The path of parley.toml; null if there is none. */
  readonly configPath: string | null;
  readonly folders: WorkspaceFolders;
  /** The folder with the files of channel secrets, which the gateways read and write. */
  readonly secretsDir: string;
  /** The path of the bubblewrap binary; null if there is none. */
  readonly bwrapPath: string | null;
}

export interface ReplicaIdentity {
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

/** Names of the variables with the TLS files of an external server: CA, certificate and key. A server that Parley starts has no TLS. */
function tlsFileVariables(
  callerEnv: Environment,
  url: "NATS_URL" | "DATABASE_URL" | "REDIS_URL",
  prefix: string,
): string[] {
  return callerEnv[url] ? ["CA_FILE", "CERT_FILE", "KEY_FILE"].map((suffix) => `${prefix}_${suffix}`) : [];
}
/** Proxies and CAs for connections to the internet; only agent-core and the gateway use them. */
const proxyVariables = ["NODE_EXTRA_CA_CERTS", "NODE_USE_ENV_PROXY", "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY"];
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
/** Where the store keeps large attachments: a folder or a bucket. */
const blobPrefix = "PARLEY_BLOB_";
/** Credentials for the bucket. */
const bucketPrefix = "AWS_";
/** API keys of further providers, for example of an embedder; parley.toml contains the names of the variables. */
const agentPrefix = "PARLEY_AGENT_";
const gatewayVariables = ["PARLEY_ALLOWED_ORIGINS", "PARLEY_ALLOWED_HOSTS", "PARLEY_HTTP_RATE_PER_MINUTE"];
/** The preset, and the settings given as flags; each service reads all settings. */
const presetVariables = ["PARLEY_PRESET", "PARLEY_SET"];
const settingsPrefix = "PARLEY__";
/** OpenTelemetry's variables; all four services write spans. */
const tracingPrefix = "OTEL_";
/**
 * Secrets of tools, hooks and MCP servers; parley.toml contains the names of the variables. PARLEY_MCP_KEY encrypts the stored OAuth tokens
 * of MCP servers.
 */
const toolPrefixes = ["PARLEY_TOOL_", "PARLEY_HOOK_", "PARLEY_MCP_", "BRAVE_", "TAVILY_"];
/** Channel secrets; parley.toml contains the names of the variables. */
const channelPrefix = "PARLEY_CHANNEL_";

/** The complete environment of one replica. Of the caller's environment only listed variables are passed on. */
export function serviceEnvironment(
  service: ServiceName,
  replica: ReplicaIdentity,
  cluster: ClusterContext,
  callerEnv: Environment,
): Record<string, string> {
  return {
    NODE_ENV: "production",
    ...pick(callerEnv, [
      ...commonVariables,
      ...tlsFileVariables(callerEnv, "NATS_URL", "PARLEY_NATS"),
      // Also create spans for requests to the store.
      "PARLEY_TRACE_STORE",
      ...namesWithPrefix(callerEnv, tracingPrefix),
    ]),
    ...settingsVariables(callerEnv),
    PARLEY_NAMESPACE: cluster.namespace,
    PARLEY_NATS_URL: cluster.natsUrls[service],
    PARLEY_REPLICA: replica.name,
    PARLEY_HEALTH_PORT: "0",
    ...(cluster.configPath === null ? {} : { PARLEY_CONFIG: cluster.configPath }),
    ...serviceVariables[service](replica, cluster, callerEnv),
  };
}

/** The settings in the caller's environment: variables of keys, the preset, and flags. */
export function settingsVariables(callerEnv: Environment): Record<string, string> {
  return pick(callerEnv, [...presetVariables, ...namesWithPrefix(callerEnv, settingsPrefix)]);
}

/** The environment of the migration, the only process with the schema owner's password. */
export function migrationEnvironment(ownerUrl: string, callerEnv: Environment): Record<string, string> {
  return {
    NODE_ENV: "production",
    ...pick(callerEnv, [...commonVariables, ...tlsFileVariables(callerEnv, "DATABASE_URL", "DATABASE")]),
    DATABASE_URL: ownerUrl,
  };
}

type ServiceVariables = (
  replica: ReplicaIdentity,
  cluster: ClusterContext,
  callerEnv: Environment,
) => Record<string, string>;

const serviceVariables: Readonly<Record<ServiceName, ServiceVariables>> = {
  store: (_, cluster, callerEnv) => ({
    DATABASE_URL: cluster.storeUrl,
    ...pick(callerEnv, [
      ...storeVariables,
      ...tlsFileVariables(callerEnv, "DATABASE_URL", "DATABASE"),
      ...namesWithPrefix(callerEnv, blobPrefix),
    ]),
    ...(callerEnv["PARLEY_BLOB_BUCKET"] === undefined ? {} : pick(callerEnv, namesWithPrefix(callerEnv, bucketPrefix))),
  }),
  "agent-core": (_, cluster, callerEnv) => ({
    REDIS_URL: cluster.redisUrl,
    ...pick(callerEnv, [
      ...modelVariables,
      ...tlsFileVariables(callerEnv, "REDIS_URL", "REDIS"),
      ...proxyVariables,
      ...namesWithPrefix(callerEnv, agentPrefix),
    ]),
  }),
  "tool-runner": (_, cluster, callerEnv) => ({
    PARLEY_WORKSPACE: cluster.folders.workspace,
    PARLEY_STATE: cluster.folders.state,
    PARLEY_CHECKPOINTS: cluster.folders.checkpoints,
    ...(cluster.bwrapPath === null ? {} : { PARLEY_BWRAP: cluster.bwrapPath }),
    ...pick(callerEnv, [
      "PARLEY_EXEC_ISOLATION",
      "PARLEY_EXEC_MIN_ISOLATION",
      // The caller's folders take precedence over those of the cluster above.
      "PARLEY_CHECKPOINTS",
      "PARLEY_STATE",
      ...toolPrefixes.flatMap((prefix) => namesWithPrefix(callerEnv, prefix)),
    ]),
  }),
  "channel-gateway": (replica, cluster, callerEnv) => ({
    PARLEY_HTTP_HOST: "127.0.0.1",
    PARLEY_HTTP_PORT: String(replica.httpPort ?? 0),
    PARLEY_TOKEN_SHA256: cluster.tokenSha256,
    PARLEY_SECRETS_DIR: cluster.secretsDir,
    ...pick(callerEnv, [...gatewayVariables, ...proxyVariables, ...namesWithPrefix(callerEnv, channelPrefix)]),
  }),
};

function namesWithPrefix(callerEnv: Environment, prefix: string): string[] {
  return Object.keys(callerEnv).filter((name) => name.startsWith(prefix));
}

function pick(callerEnv: Environment, names: readonly string[]): Record<string, string> {
  return Object.fromEntries(
    names
      .map((name) => [name, callerEnv[name]])
      .filter((entry): entry is [string, string] => entry[1] !== undefined && entry[1] !== ""),
  );
}

/** Whether a variable has a value; an empty one counts as not set. */
export function isSet(value: string | undefined): value is string {
  return value !== undefined && value !== "";
}
