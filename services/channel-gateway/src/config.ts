// The only reader of the gateway's environment variables. It exposes API tokens only as hashes, and channel secrets under the names
// that parley.toml uses.
import { ConfigError, explainSettings, parseEnvironment, type BaseConfig, type Environment } from "@parley/chassis";
import { ineffectiveVoiceSettings, unmatchedHooks } from "@parley/contracts";
import { z } from "zod";
import { sha256Hex } from "./channels/digest.ts";

export interface HttpConfig {
  host: string;
  /** 0 = any free port. */
  port: number;
  /** SHA-256 of each accepted bearer token, hex. */
  tokenHashes: readonly string[];
  /** Additional origins that browsers may call from, e.g. `https://console.example.org`. */
  allowedOrigins: readonly string[];
  /** Accepted host names in addition to loopback and `host`; `*` = any. */
  allowedHosts: readonly string[];
  /** Requests per minute and token; 0 = no limits at all, not even for unauthenticated requests. */
  ratePerMinute: number;
}

export interface GatewayConfig extends BaseConfig {
  http: HttpConfig;
  /** Every variable that begins with PARLEY_CHANNEL_, by name. */
  channelSecrets: ReadonlyMap<string, string>;
  /** The folder with files of secrets, each with the name of a variable; undefined: secrets are only in variables. */
  secretsDir?: string | undefined;
  /** The source of the setting at a path. */
  originOf: (path: readonly string[]) => string;
  /** What `parley config check` finds in the settings as they are stored now: mistakes, and values without effect. */
  checkSettings: () => string[];
}

const secretPrefix = "PARLEY_CHANNEL_";

const list = z.string().transform((text) =>
  text
    .split(",")
    .map((each) => each.trim())
    .filter((each) => each !== ""),
);

const HttpEnv = z.object({
  PARLEY_HTTP_HOST: z.string().default("127.0.0.1"),
  PARLEY_HTTP_PORT: z.coerce.number().int().min(0).max(65_535).default(8787),
  PARLEY_TOKEN_SHA256: list
    .pipe(z.array(z.string().regex(/^[0-9a-fA-F]{64}$/, "must be SHA-256 hashes in hex, separated by commas")))
    .optional(),
  PARLEY_TOKEN: z.string().min(16, "must have at least 16 characters").optional(),
  PARLEY_ALLOWED_ORIGINS: list.default([]),
  PARLEY_ALLOWED_HOSTS: list.default([]),
  PARLEY_SECRETS_DIR: z.string().optional(),
  PARLEY_HTTP_RATE_PER_MINUTE: z.coerce.number().int().min(0).default(60_000),
});

/** Throws ConfigError. */
export function readConfig(env: Environment, base: BaseConfig): GatewayConfig {
  const http = parseEnvironment(HttpEnv, env);
  const tokenHashes = (http.PARLEY_TOKEN_SHA256 ?? []).map((hash) => hash.toLowerCase());
  if (http.PARLEY_TOKEN !== undefined) tokenHashes.push(sha256Hex(http.PARLEY_TOKEN));
  if (tokenHashes.length === 0) {
    throw new ConfigError(
      "no token: set PARLEY_TOKEN_SHA256 to the SHA-256 of the bearer token (hex), or PARLEY_TOKEN to the token itself",
    );
  }
  return {
    ...base,
    http: {
      host: http.PARLEY_HTTP_HOST,
      port: http.PARLEY_HTTP_PORT,
      tokenHashes,
      allowedOrigins: http.PARLEY_ALLOWED_ORIGINS,
      allowedHosts: http.PARLEY_ALLOWED_HOSTS,
      ratePerMinute: http.PARLEY_HTTP_RATE_PER_MINUTE,
    },
    channelSecrets: channelSecrets(env),
    secretsDir: http.PARLEY_SECRETS_DIR || undefined,
    originOf: explainSettings(env["PARLEY_CONFIG"] || undefined, env).originOf,
    checkSettings: () => settingProblems(env),
  };
}

function settingProblems(env: Environment): string[] {
  try {
    const { settings } = explainSettings(env["PARLEY_CONFIG"] || undefined, env);
    return [...unmatchedHooks(settings.hooks), ...ineffectiveVoiceSettings(settings.voice)];
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    // The first line names the file, if there are further lines.
    const lines = error.message.split("\n").map((line) => line.trim());
    return lines.length > 1 ? lines.slice(1) : lines;
  }
}

function channelSecrets(env: Environment): Map<string, string> {
  const secrets = new Map<string, string>();
  for (const [name, value] of Object.entries(env)) {
    if (name.startsWith(secretPrefix) && value !== undefined && value !== "") secrets.set(name, value);
  }
  return secrets;
}
