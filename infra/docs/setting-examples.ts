// An example of each setting: written here where its schema does not show one, else made of the schema.

export interface Schema {
  type?: string | string[];
  const?: unknown;
  enum?: unknown[];
  default?: unknown;
  properties?: Record<string, Schema>;
  additionalProperties?: Schema | boolean;
  items?: Schema;
  anyOf?: Schema[];
  oneOf?: Schema[];
  allOf?: Schema[];
  minimum?: number;
  maximum?: number;
  exclusiveMinimum?: number;
  pattern?: string;
  format?: string;
  minItems?: number;
}

/** By the whole path: what the schema accepts, but not the settings. */
const byPath: Readonly<Record<string, string>> = {
  "agent.tools": '["read", "exec"]',
  "profiles.<name>.tools": '["read", "grep"]',
  "tools.disabled": '["web_fetch"]',
  "attachments.transcription.command": '["whisper", "{file}"]',
  "tools.secrets.exec.<name>.env": '"PARLEY_TOOL_DEPLOY_KEY"',
  "tools.web.search.key_env": '"BRAVE_API_KEY"',
  "tools.exec.allow_hosts": '["pypi.org", "*.github.com"]',
  "tools.exec.allow_private_hosts": '["10.0.0.7:8080"]',
  "workspace.folders.<name>": '"/srv/projects/site"',
  "workspace.mounts.<name>": '"/srv/reference"',
  "mcp.servers.<name>.oauth.identity.token_file": '"/run/secrets/identity-token"',
};

/** By the name of the key. */
const byKey: Readonly<Record<string, string>> = {
  address: '"parley@example.com"',
  aliases: '["help@example.com"]',
  homeserver: '"https://chat.example.org"',
  language: '"en"',
  name: '"check-paths"',
  nick: '"parley"',
  number: '"+4915112345678"',
  phone_number_id: '"106540352242922"',
  scopes: '["tools:read"]',
  stop_sequences: '["END"]',
  template: '"new_message"',
};

/** What the names of variables with secrets begin with, by table. */
const variables: Readonly<Record<string, string>> = {
  channels: "PARLEY_CHANNEL_MAIN",
  webhooks: "PARLEY_CHANNEL_HOOK",
  observers: "PARLEY_CHANNEL_OBSERVER",
  hooks: "PARLEY_HOOK_CHECK",
  mcp: "PARLEY_MCP_FILES",
  tools: "PARLEY_TOOL_DEPLOY",
};

/** TOML. Throws for a key that needs an example above. */
export function exampleFor(path: readonly string[], schema: Schema, fallback: string | null): string {
  const name = path.join(".");
  const own = path.findLast((part) => part !== "<name>" && part !== "[]") ?? "";
  if (own === "profile") return '"reader"'; // the profile that Parley has
  const example = byPath[name] ?? exampleOf(schema, fallback) ?? byKey[own] ?? variableOf(path, own) ?? addressOf(own);
  if (example === null) throw new Error(`${name} needs an example in infra/docs/setting-examples.ts`);
  return example;
}

/** The name of a variable for a key such as `token_env`, or a list of names for `env`. */
function variableOf([table = ""]: readonly string[], own: string): string | null {
  const prefix = variables[table] ?? "PARLEY_AGENT";
  if (own === "env") return `["${prefix}_KEY"]`;
  return own.endsWith("_env")
    ? `"${prefix}_${own.replace(/_env$/, "").replace("headers", "token").toUpperCase()}"`
    : null;
}

function addressOf(own: string): string | null {
  return /url$|^issuer$/.test(own) ? '"https://server.example.com/v1"' : null;
}

/** A value that the schema accepts and that is easy to read; null if the schema does not show one. */
function exampleOf(schema: Schema, fallback: string | null): string | null {
  const [first] = schema.anyOf ?? schema.oneOf ?? [];
  if (first !== undefined) return exampleOf(first, fallback);
  if (schema.const !== undefined) return JSON.stringify(schema.const);
  if (schema.enum !== undefined) {
    return JSON.stringify(schema.enum.find((each) => JSON.stringify(each) !== fallback) ?? schema.enum[0]);
  }
  if (fallback !== null && fallback !== "[]")
    return schema.type === "boolean" ? String(fallback === "false") : fallback;
  if (schema.type === "boolean") return "true";
  if (schema.type === "integer" || schema.type === "number") return String(schema.minimum ?? schema.maximum ?? 1);
  if (schema.items !== undefined) {
    const item = exampleOf(schema.items, null);
    return item === null ? null : `[${item}]`;
  }
  if (schema.pattern !== undefined || schema.format !== undefined) return null;
  return '"text"';
}
