// MCP servers that the program names by a command or an address. This process starts or reaches them, with the rights and the environment
// of the program: the cluster only gets their tools. Each server is connected once, for the run.

import { errorMessage } from "@parley/contracts";
import type { Client } from "@modelcontextprotocol/client";
import type * as Mcp from "@modelcontextprotocol/client";
import { z } from "zod";

/** Of the SDK; per-server policies of its tools are refused, because the rules of the cluster apply. */
const common = { timeout: z.number().positive().optional(), alwaysLoad: z.boolean().optional() };
const Stdio = z.strictObject({
  ...common,
  type: z.literal("stdio").optional(),
  command: z.string().min(1),
  args: z.array(z.string()).default([]),
  env: z.record(z.string(), z.string()).default({}),
});
const Remote = z.strictObject({
  ...common,
  type: z.enum(["http", "sse"]),
  url: z.url({ protocol: /^https?$/ }),
  headers: z.record(z.string(), z.string()).default({}),
});
const ExternalServerSchema = z.union([Stdio, Remote]);
export type ExternalServer = z.infer<typeof ExternalServerSchema>;

/** How long a server may take to start and to list its tools. */
const startTimeoutMs = 30_000;
/** How long a call of a tool may take unless its server has a `timeout`. */
const callTimeoutMs = 24 * 60 * 60 * 1_000;

/** Throws Error with the name of the server for a configuration that cannot be used. */
export function readExternalServer(name: string, config: unknown): ExternalServer {
  const parsed = ExternalServerSchema.safeParse(config);
  if (parsed.success) return parsed.data;
  throw new Error(
    `mcpServers: "${name}" is not a server of type stdio (command, args, env), http or sse (url, headers)`,
  );
}

export class ExternalServers {
  readonly #environment: Readonly<Record<string, string | undefined>>;
  readonly #configs = new Map<string, ExternalServer>();
  readonly #clients = new Map<string, Promise<Client>>();

  /** `environment`: what programs of servers inherit. */
  constructor(environment: Readonly<Record<string, string | undefined>>) {
    this.#environment = environment;
  }

  add(servers: Readonly<Record<string, ExternalServer>>): void {
    for (const [name, config] of Object.entries(servers)) this.#configs.set(name, config);
  }

  has(name: string): boolean {
    return this.#configs.has(name);
  }

  /** The tools of a server, as it lists them. Throws Error with its name when it cannot be reached. */
  async list(name: string): Promise<unknown> {
    try {
      const client = await this.#client(name);
      return await client.listTools({}, { timeout: startTimeoutMs });
    } catch (error) {
      throw new Error(`mcpServers: "${name}" cannot be used: ${errorMessage(error)}`, { cause: error });
    }
  }

  async call(name: string, tool: string, input: Record<string, unknown>, signal: AbortSignal): Promise<unknown> {
    const client = await this.#client(name);
    const timeout = this.#configs.get(name)?.timeout ?? callTimeoutMs;
    return client.callTool({ name: tool, arguments: input }, { signal, timeout });
  }

  /** Ends the connections and the programs. Never rejects. */
  async close(): Promise<void> {
    const clients = [...this.#clients.values()];
    this.#clients.clear();
    await Promise.all(clients.map((client) => client.then((each) => each.close()).catch(() => undefined)));
  }

  /** The connection; after a failure the next request connects again. */
  #client(name: string): Promise<Client> {
    const known = this.#clients.get(name);
    if (known !== undefined) return known;
    const config = this.#configs.get(name);
    if (config === undefined) throw new Error(`there is no server "${name}"`);
    const connected = connect(config, this.#environment, () => this.#clients.delete(name));
    this.#clients.set(name, connected);
    connected.catch(() => this.#clients.delete(name));
    return connected;
  }
}

/** The library is loaded by runs that have such servers only. */
async function connect(
  config: ExternalServer,
  environment: Readonly<Record<string, string | undefined>>,
  onClose: () => void,
): Promise<Client> {
  const mcp = await import("@modelcontextprotocol/client");
  const client = new mcp.Client({ name: "parley", version: "1" }, { capabilities: {} });
  client.onclose = onClose;
  const transport = "command" in config ? await programOf(config, environment) : remoteOf(mcp, config);
  await client.connect(transport, { timeout: startTimeoutMs });
  return client;
}

async function programOf(
  { command, args, env }: z.infer<typeof Stdio>,
  environment: Readonly<Record<string, string | undefined>>,
) {
  const { StdioClientTransport } = await import("@modelcontextprotocol/client/stdio");
  const inherited = Object.entries(environment).flatMap(([name, value]) =>
    value === undefined ? [] : [[name, value]],
  );
  const variables = { ...(Object.fromEntries(inherited) as Record<string, string>), ...env };
  return new StdioClientTransport({ command, args, env: variables, stderr: "inherit" });
}

function remoteOf(
  { StreamableHTTPClientTransport, SSEClientTransport }: typeof Mcp,
  { type, url, headers }: z.infer<typeof Remote>,
) {
  const requestInit = { headers };
  return type === "sse"
    ? new SSEClientTransport(new URL(url), { requestInit })
    : new StreamableHTTPClientTransport(new URL(url), { requestInit });
}
