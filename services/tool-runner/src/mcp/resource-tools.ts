// `mcp_resources`, `mcp_read` and `mcp_authorize`: what MCP servers have besides tools, and the way to be let in.
import type { Client } from "@modelcontextprotocol/client";
import { z } from "zod";
import { defineTool, failure, success, type Tool, type ToolOutput } from "../tool.ts";
import { untrusted } from "../web/untrusted.ts";
import { readOutput } from "./result-text.ts";
import type { McpServer } from "./server.ts";
import type { McpServers } from "./servers.ts";

const timeoutMs = 60_000;
/** Resources shown of one server. */
const maxShown = 200;

const serverArgument = z.string().min(1).describe("Name of the MCP server.");

/** None where no server is configured. */
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
    summary: "List what MCP servers offer to be read.",
    description:
      "List the resources of one MCP server or of all: their addresses, names and types, and templates of addresses. mcp_read reads one.",
    args: z.strictObject({ server: serverArgument.optional().describe("Name of the MCP server; left out: all.") }),
    class: "pure",
    readOnly: true,
    risk: "low",
    effects: ["reads_untrusted"],
    timeoutMs,
    limits: [`Shows ${maxShown} resources of a server.`],
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
      // A server need not have them, and some say so with an error.
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
    untrusted(`resources of the MCP server ${plan.name}`, lines.length === 0 ? "(none)" : lines.join("\n")),
  );
}

function line(address: string, ...about: (string | undefined)[]): string {
  const said = about
    .filter((part) => part !== undefined && part !== "")
    .map((part) => part?.replaceAll(/\s+/g, " ").slice(0, 200));
  return said.length === 0 ? `- ${address}` : `- ${address}: ${said.join("; ")}`;
}

function readTool(servers: McpServers): Tool {
  return defineTool({
    name: "mcp_read",
    aliases: ["ReadMcpResource"],
    summary: "Read a resource of an MCP server.",
    description: "Read one resource of an MCP server, by the address that mcp_resources or a tool's result has shown.",
    args: z.strictObject({ server: serverArgument, uri: z.string().min(1).describe("Address of the resource.") }),
    class: "pure",
    readOnly: true,
    risk: "low",
    effects: ["reads_untrusted", "sends_out"],
    timeoutMs,
    limits: [
      "Pictures and documents are shown, other content becomes an attachment: at most 8, of 20 MiB unless the settings say otherwise.",
    ],
    run: async ({ server: name, uri }, { signal, contents }) => {
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
    summary: "Get the link by which a person lets the agent use an MCP server.",
    description: `Some MCP servers can be used only after a person has allowed it in a browser. This gives the link to be shown to the user; the server's tools are there in later conversations. Servers that may need it: ${names.join(", ")}.`,
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
      if (link !== null) return success(`Show the user this link, and say that it lets you use ${name}: ${link}`);
      const { state, problem } = server.status;
      return success(`No consent is needed now: the server is ${state}${problem === null ? "" : ` (${problem})`}.`);
    },
  });
}

function noServer(servers: McpServers, name: string): string {
  return `There is no MCP server "${name}". The servers are: ${servers.all.map(({ plan }) => plan.name).join(", ")}.`;
}
