// The tools `mcp_resources`, `mcp_read` and `mcp_authorize`: resources of MCP servers, and links for a person's consent.
import type { Client } from "@modelcontextprotocol/client";
import { z } from "zod";
import { defineTool, failure, success, type Tool, type ToolOutput } from "../tool/tool.ts";
import { wrapUntrusted } from "../tool/untrusted-block.ts";
import { readOutput } from "./result-text.ts";
import type { McpServer } from "./server.ts";
import type { McpServers } from "./servers.ts";

const timeoutMs = 60_000;
/** Maximum number of resources shown per server. */
const maxShown = 200;

const serverArgument = z.string().min(1).describe("Name of the MCP server.");

/** Empty when no server is configured. */
export function resourceTools(servers: McpServers): Tool[] {
  if (servers.all.length === 0) return [];
  const consenting = servers.all.filter(
    ({ plan: { reach } }) => reach.kind === "http" && reach.oauth?.grant === "authorization_code",
  );
  return [
    listTool(servers),
    readTool(servers),
    ...(consenting.length === 0 ? [] : [authorizeTool(servers, consenting)]),
  ];
}

function listTool(servers: McpServers): Tool {
  return defineTool({
    name: "mcp_resources",
    aliases: ["ListMcpResources"],
    summary: "List the resources of MCP servers.",
    description:
      "List the resources of one MCP server or of all servers: URIs, names, types and URI templates. Read one with mcp_read.",
    args: z.strictObject({ server: serverArgument.optional().describe("Name of the MCP server. Default: all.") }),
    class: "pure",
    readOnly: true,
    risk: "low",
    effects: ["reads_untrusted"],
    timeoutMs,
    limits: [`Shows at most ${maxShown} resources per server.`],
    run: async ({ server: name }, { signal }) => {
      const wanted = servers.all.filter((server) => (name === undefined ? server.on : server.plan.name === name));
      if (wanted.length === 0) {
        return failure(name === undefined ? "All MCP servers are switched off." : noServer(servers, name));
      }
      const answers = await Promise.all(wanted.map((server) => server.use((client) => list(server, client), signal)));
      return {
        content: answers.map(({ content }) => content).join("\n\n"),
        isError: answers.every(({ isError }) => isError),
      };
    },
  });
}

async function list({ plan }: McpServer, client: Client): Promise<ToolOutput> {
  if (client.getServerCapabilities()?.resources === undefined) {
    return success(`The MCP server ${plan.name} has no resources.`);
  }
  const [{ resources }, templates] = await Promise.all([
    client.listResources(),
    client.listResourceTemplates().then(
      ({ resourceTemplates }) => resourceTemplates,
      // Templates are optional, and some servers without them return an error.
      () => [],
    ),
  ]);
  const lines = [
    ...resources
      .slice(0, maxShown)
      .map(({ uri, name, mimeType, description }) => line(uri, name, mimeType, description)),
    ...(resources.length > maxShown ? [`[${resources.length - maxShown} more are not shown]`] : []),
    ...templates
      .slice(0, maxShown)
      .map(({ uriTemplate, name, mimeType, description }) =>
        line(`template ${uriTemplate}`, name, mimeType, description),
      ),
  ];
  return success(
    wrapUntrusted(`resources of the MCP server ${plan.name}`, lines.length === 0 ? "(none)" : lines.join("\n")),
  );
}

function line(address: string, ...about: (string | undefined)[]): string {
  const details = about
    .filter((part) => part !== undefined && part !== "")
    .map((part) => part?.replaceAll(/\s+/g, " ").slice(0, 200));
  return details.length === 0 ? `- ${address}` : `- ${address}: ${details.join("; ")}`;
}

function readTool(servers: McpServers): Tool {
  return defineTool({
    name: "mcp_read",
    aliases: ["ReadMcpResource"],
    summary: "Read a resource of an MCP server.",
    description: "Read one resource of an MCP server by its URI, as shown by mcp_resources or a tool's result.",
    args: z.strictObject({ server: serverArgument, uri: z.string().min(1).describe("URI of the resource.") }),
    class: "pure",
    readOnly: true,
    risk: "low",
    effects: ["reads_untrusted", "sends_out"],
    timeoutMs,
    limits: [
      "Pictures and documents are shown, other content becomes an attachment: at most 8, each up to 20 MiB unless configured otherwise.",
    ],
    run: async ({ server: name, uri }, { signal, attachmentStore: contents }) => {
      const server = servers.server(name);
      if (server === undefined) return failure(noServer(servers, name));
      return server.use(
        async (client) => readOutput(name, uri, await client.readResource({ uri }, { signal }), contents),
        signal,
      );
    },
  });
}

function authorizeTool(servers: McpServers, consenting: readonly McpServer[]): Tool {
  const names = consenting.map(({ plan }) => plan.name).sort();
  return defineTool({
    name: "mcp_authorize",
    summary: "Get the link with which a person allows the agent to use an MCP server.",
    description: `Some MCP servers require a person's consent in a browser. Returns the link to show to the user; the server's tools are available in later conversations. Servers that may require consent: ${names.join(", ")}.`,
    args: z.strictObject({ server: serverArgument }),
    class: "pure",
    readOnly: true,
    risk: "low",
    effects: [],
    timeoutMs,
    run: async ({ server: name }, { signal }) => {
      const server = servers.server(name);
      if (server === undefined) return failure(noServer(servers, name));
      const link = await server.consentLink(signal);
      if (link !== null)
        return success(`Show this link to the user and explain that it allows you to use ${name}: ${link}`);
      const { state, problem } = server.status;
      return success(`No consent is required now: the server is ${state}${problem === null ? "" : ` (${problem})`}.`);
    },
  });
}

function noServer(servers: McpServers, name: string): string {
  return `There is no MCP server "${name}". The servers are: ${servers.all.map(({ plan }) => plan.name).join(", ")}.`;
}
