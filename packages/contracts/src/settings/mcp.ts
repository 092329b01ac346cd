// MCP servers the agent may use, and how far each is trusted.
import { z } from "zod";

const variable = z.string().regex(/^[A-Za-z_][A-Za-z0-9_]*$/, "must be the name of an environment variable");

/** How a client signs, by the names of RFC 7518 and RFC 8037. */
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

/** An identity provider that vouches for a person at other authorization servers. */
const IdentitySettings = z.strictObject({
  /** Its token endpoint, which exchanges the person's ID token for a word to the other authorization server. */
  token_url: z.url({ protocol: /^https?$/ }),
  /** Who Parley is there. */
  client_id: z.string().min(1),
  /** Variable of the tool-runner's environment with the secret of that client; left out: it has none. */
  client_secret_env: variable.optional(),
  /** Holds the person's ID token, read anew each time: whoever logs the person in keeps it fresh. */
  token_file: z.string().startsWith("/", "must be a path from the root"),
});

const OAuthSettings = z
  .strictObject({
    /**
     * `authorization_code`: a person opens a link once. `client_credentials`: the deployment has an account of its own. `cross_app_access`: an
     * identity provider vouches for a person, and nobody is asked.
     */
    grant: z.enum(["authorization_code", "client_credentials", "cross_app_access"]).default("authorization_code"),
    /** Known to the authorization server already; left out: Parley names its metadata document, or registers itself there. */
    client_id: z.string().min(1).optional(),
    /**
     * Address of the document that says who Parley is, for authorization servers that read it in place of a registration. Left out:
     * `/oauth/mcp/<server>/client.json` of the gateway where `public_url` is https. `none`: there is none, Parley registers itself.
     */
    metadata_url: z.union([z.literal("none"), z.url({ protocol: /^https$/ })]).optional(),
    /** Variable of the tool-runner's environment with the client's secret. */
    client_secret_env: variable.optional(),
    /**
     * Variable of the tool-runner's environment with the client's private key, PEM or JWK: requests for tokens are signed with it
     * (private_key_jwt), and there is no secret. For `client_credentials`.
     */
    private_key_env: variable.optional(),
    /** What is signed with; left out: what the key is made for, RS256 for RSA. */
    signing_algorithm: z.enum(signingAlgorithms).optional(),
    /** Who vouches, for `cross_app_access`. */
    identity: IdentitySettings.optional(),
    scopes: z.array(z.string().regex(/^\S+$/, "must be one word")).default([]),
    /** The authorization server that a client's secret may be sent to, as it names itself. */
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
    "`private_key_env` is for client_credentials, and takes the place of `client_secret_env`",
  )
  .refine(
    (oauth) =>
      (oauth.grant === "cross_app_access") === (oauth.identity !== undefined) &&
      (oauth.identity === undefined || (oauth.client_id !== undefined && oauth.client_secret_env !== undefined)),
    "cross_app_access needs `identity`, `client_id` and `client_secret_env`, and nothing else has an `identity`",
  )
  .refine(
    (oauth) => oauth.signing_algorithm === undefined || oauth.private_key_env !== undefined,
    "`signing_algorithm` is for a `private_key_env`",
  );

/** What a server may have of a model. */
const SamplingSettings = z.strictObject({
  enabled: z.boolean(),
  /** Which model answers (`anthropic:x`, `openai:x`); left out: the agent's own. */
  model: z.string().min(1).optional(),
  /** Answers for one call of a tool. */
  max_requests: z.number().int().min(1).max(100).default(5),
  /** Tokens of one answer. */
  max_tokens: z.number().int().min(1).max(64_000).default(1_000),
  /** Asks the person of the turn, or an owner where a job delivers, before the first request of a call. Without a person it is declined then. */
  ask: z.boolean().default(true),
});

const McpServerSettings = z
  .strictObject({
    enabled: z.boolean().default(true),
    /** A program that speaks MCP on its standard input and output; each tool-runner replica runs one of its own. */
    command: z.string().min(1).optional(),
    args: z.array(z.string()).default([]),
    /** Variables of the tool-runner's environment that the program sees, besides PATH and LANG. */
    env: z.array(variable).default([]),
    /**
     * Where the program runs, relative to the workspace; left out: an empty folder of the tool-runner. In a folder of the workspace
     * only a program with an absolute path elsewhere may run, and none that loads code from where it runs (docs/mcp.md).
     */
    cwd: z.string().min(1).optional(),
    /** Folders the server is told that it is meant to work in, relative to the workspace; none: it is told nothing, and goes by its arguments. */
    roots: z.array(z.string().min(1)).default(["."]),
    /** Address of a server that speaks streamable HTTP. */
    url: z.url({ protocol: /^https?$/ }).optional(),
    /** Headers of every request, each with the variable of the tool-runner's environment that holds its value. */
    headers_env: z.record(z.string().regex(/^[A-Za-z0-9-]+$/, "must be the name of a header"), variable).default({}),
    /** Variable of the tool-runner's environment whose value is sent as a bearer token. */
    token_env: variable.optional(),
    /** How the server lets Parley in, where a token is not enough. */
    oauth: OAuthSettings.optional(),
    /** Which protocol is spoken: `legacy` begins with `initialize` (up to 2025-11-25), `2026` is 2026-07-28, `auto` asks. */
    era: z.enum(["auto", "legacy", "2026"]).default("auto"),
    /** Names of the server's tools that the agent has, as the server calls them; `*` stands for anything. */
    tools: z.array(z.string().min(1)).default(["*"]),
    /** What permissions take its tools for. Left out: high, and critical for a tool that says it destroys. */
    risk: z.enum(["none", "low", "medium", "high", "critical"]).optional(),
    /** Believe what its tools say about themselves: that they only read, that they may be repeated. */
    trust_annotations: z.boolean().default(false),
    /** Wall time of one call. */
    timeout_seconds: z.number().int().min(1).max(3_600).default(60),
    /** How long a call may wait, beside its wall time, for a person to answer what the server asks; 0: it may not ask. */
    question_seconds: z.number().int().min(0).max(3_600).default(600),
    /** The server may have a model answer something while a call of it runs, at the agent's cost (sampling). Left out: it may not. */
    sampling: SamplingSettings.optional(),
    /** Wall time of its start, the list of its tools included. */
    start_timeout_seconds: z.number().int().min(1).max(600).default(30),
  })
  .refine(
    (server) => (server.command === undefined) !== (server.url === undefined),
    "give `command` or `url`, one of them",
  )
  .refine(
    (server) => server.command === undefined || (server.token_env ?? server.oauth) === undefined,
    "`token_env` and `oauth` are for a `url`",
  )
  .refine(
    (server) => server.url === undefined || (server.env.length === 0 && server.args.length === 0),
    "`args` and `env` are for a `command`",
  )
  .refine(
    (server) => server.token_env === undefined || server.oauth === undefined,
    "give `token_env` or `oauth`, one of them",
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
    /** Where people's browsers reach the gateway: consent for a server comes back to `/oauth/mcp/<server>/callback` there. */
    public_url: z.url({ protocol: /^https?$/ }).default("http://127.0.0.1:8787"),
    /** By the name that stands in the names of their tools. */
    servers: z.record(serverName, McpServerSettings).default({}),
  })
  .prefault({});
export type McpSettings = z.infer<typeof McpSettings>;
