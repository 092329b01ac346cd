// MCP servers the agent may use, and how far each one is trusted.
import { z } from "zod";

const variable = z.string().regex(/^[A-Za-z_][A-Za-z0-9_]*$/, "must be the name of an environment variable");

/** Signature algorithms of a client, by their names in RFC 7518 and RFC 8037. */
const signingAlgorithms = [
  "ES256",
  "ES384",
  "ES512",
  "RS256",
  "RS384",
  "RS512",
  "PS256",
  "PS384",
  "PS512",
  "EdDSA",
] as const;
export type SigningAlgorithm = (typeof signingAlgorithms)[number];

/** An identity provider that asserts a person's identity to other authorization servers. */
const IdentitySettings = z.strictObject({
  /** Its token endpoint, which exchanges the person's ID token for an assertion to the other authorization server. */
  token_url: z.url({ protocol: /^https?$/ }),
  /** Parley's client id there. */
  client_id: z.string().min(1),
  /** Variable of the tool-runner's environment with that client's secret; omitted: none. */
  client_secret_env: variable.optional(),
  /** File with the person's ID token, read again for each use; an external process must keep it fresh. */
  token_file: z.string().startsWith("/", "must be an absolute path"),
});

const OAuthSettings = z
  .strictObject({
    /**
     * `authorization_code`: a person opens a link once. `client_credentials`: the deployment has its own account. `cross_app_access`: an
     * identity provider asserts a person's identity, without interaction.
     */
    grant: z.enum(["authorization_code", "client_credentials", "cross_app_access"]).default("authorization_code"),
    /** The id of a registered client; omitted: Parley uses its metadata document or registers itself. */
    client_id: z.string().min(1).optional(),
    /**
     * URL of Parley's client metadata document, for authorization servers that read it instead of a registration. Omitted:
     * `/oauth/mcp/<server>/client.json` of the gateway if `public_url` is https. `none`: no document, Parley registers itself.
     */
    metadata_url: z.union([z.literal("none"), z.url({ protocol: /^https$/ })]).optional(),
    /** Variable of the tool-runner's environment with the client's secret. */
    client_secret_env: variable.optional(),
    /**
     * Variable of the tool-runner's environment with the client's private key, PEM or JWK. It signs token requests (private_key_jwt)
     * in place of a secret. For `client_credentials`.
     */
    private_key_env: variable.optional(),
    /** Signature algorithm; omitted: the algorithm of the key, RS256 for RSA. */
    signing_algorithm: z.enum(signingAlgorithms).optional(),
    /** The identity provider, for `cross_app_access`. */
    identity: IdentitySettings.optional(),
    scopes: z.array(z.string().regex(/^\S+$/, "must be one word")).default([]),
    /** Issuer of the authorization server to which the client's secret may be sent. */
    issuer: z.url().optional(),
  })
  .refine(
    (oauth) =>
      oauth.grant !== "client_credentials" ||
      (oauth.client_id !== undefined && (oauth.client_secret_env ?? oauth.private_key_env) !== undefined),
    "client_credentials needs `client_id`, and `client_secret_env` or `private_key_env`",
  )
  .refine(
    (oauth) =>
      oauth.private_key_env === undefined ||
      (oauth.grant === "client_credentials" && oauth.client_secret_env === undefined),
    "`private_key_env` requires client_credentials and excludes `client_secret_env`",
  )
  .refine(
    (oauth) =>
      (oauth.grant === "cross_app_access") === (oauth.identity !== undefined) &&
      (oauth.identity === undefined || (oauth.client_id !== undefined && oauth.client_secret_env !== undefined)),
    "cross_app_access needs `identity`, `client_id` and `client_secret_env`; only cross_app_access may have `identity`",
  )
  .refine(
    (oauth) => oauth.signing_algorithm === undefined || oauth.private_key_env !== undefined,
    "`signing_algorithm` requires `private_key_env`",
  );

/** Limits of a server's sampling requests. */
const SamplingSettings = z.strictObject({
  enabled: z.boolean(),
  /** The answering model (`anthropic:x`, `openai:x`); omitted: the agent's model. */
  model: z.string().min(1).optional(),
  /** Maximum answers for one tool call. */
  max_requests: z.number().int().min(1).max(100).default(5),
  /** Maximum tokens of one answer. */
  max_tokens: z.number().int().min(1).max(64_000).default(1_000),
  /** Require consent of the turn's person, or of an owner where a job delivers, before the first request of a call. If no person can answer, the request is declined. */
  ask: z.boolean().default(true),
});

const McpServerSettings = z
  .strictObject({
    enabled: z.boolean().default(true),
    /** A program that speaks MCP on its standard input and output; each tool-runner replica runs its own. */
    command: z.string().min(1).optional(),
    args: z.array(z.string()).default([]),
    /** Variables of the tool-runner's environment that the program gets, in addition to PATH and LANG. */
    env: z.array(variable).default([]),
    /**
     * Working directory of the program, relative to the workspace; omitted: an empty folder of the tool-runner. In a folder of the
     * workspace only a program with an absolute path elsewhere may run, and none that loads code from its working directory (docs/mcp.md).
     */
    cwd: z.string().min(1).optional(),
    /** Root folders announced to the server, relative to the workspace; empty: none are announced. */
    roots: z.array(z.string().min(1)).default(["."]),
    /** URL of a streamable HTTP server. */
    url: z.url({ protocol: /^https?$/ }).optional(),
    /** Headers of every request, each with the variable of the tool-runner's environment that contains its value. */
    headers_env: z.record(z.string().regex(/^[A-Za-z0-9-]+$/, "must be the name of a header"), variable).default({}),
    /** Variable of the tool-runner's environment whose value is sent as a bearer token. */
    token_env: variable.optional(),
    /** OAuth for servers that do not accept a static token. */
    oauth: OAuthSettings.optional(),
    /** Protocol version: `legacy` begins with `initialize` (up to 2025-11-25), `2026` is 2026-07-28, `auto` detects it. */
    era: z.enum(["auto", "legacy", "2026"]).default("auto"),
    /** The server's tools that the agent has, by the server's names; `*` matches any text. */
    tools: z.array(z.string().min(1)).default(["*"]),
    /** Risk of its tools for permissions. Omitted: high, and critical for a tool with `destructiveHint`. */
    risk: z.enum(["none", "low", "medium", "high", "critical"]).optional(),
    /** Trust the annotations of its tools that they only read or may be repeated. */
    trust_annotations: z.boolean().default(false),
    /** Maximum wall-clock time of one call. */
    timeout_seconds: z.number().int().min(1).max(3_600).default(60),
    /** How long a call may wait for people's answers to elicitations, in addition to its timeout; 0: elicitation is not allowed. */
    question_seconds: z.number().int().min(0).max(3_600).default(600),
    /** The server may request model answers during its calls, at the agent's cost. Omitted: not allowed. */
    sampling: SamplingSettings.optional(),
    /** Maximum wall-clock time of its start, including listing its tools. */
    start_timeout_seconds: z.number().int().min(1).max(600).default(30),
  })
  .refine((server) => (server.command === undefined) !== (server.url === undefined), "set either `command` or `url`")
  .refine(
    (server) => server.command === undefined || (server.token_env ?? server.oauth) === undefined,
    "`token_env` and `oauth` require `url`",
  )
  .refine(
    (server) => server.url === undefined || (server.env.length === 0 && server.args.length === 0),
    "`args` and `env` require `command`",
  )
  .refine(
    (server) => server.token_env === undefined || server.oauth === undefined,
    "set either `token_env` or `oauth`, not both",
  );
export type McpServerSettings = z.infer<typeof McpServerSettings>;

/** Part of the tools' names: `mcp__<server>__<tool>`. */
const serverName = z
  .string()
  .regex(/^[A-Za-z0-9](?:[A-Za-z0-9-]|_(?!_))*$/, "must be letters, digits, `-` and single `_`")
  .regex(/[^_]$/, "must not end in `_`")
  .max(32);

export const McpSettings = z
  .strictObject({
    /** The gateway's URL for browsers: authorization servers redirect to `/oauth/mcp/<server>/callback` there. */
    public_url: z.url({ protocol: /^https?$/ }).default("http://127.0.0.1:8787"),
    /** By server name, which is part of the tools' names. */
    servers: z.record(serverName, McpServerSettings).default({}),
  })
  .prefault({});
export type McpSettings = z.infer<typeof McpSettings>;
