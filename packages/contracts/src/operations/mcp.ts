// Operations on MCP servers at run time. Only the settings decide which servers exist.
import { z } from "zod";
import { mcpConsent, mcpStatus } from "../mcp.ts";
import { mcpSwitch } from "../store/mcp.ts";
import { promptCommand } from "./commands.ts";
import { sameOperation } from "./fields.ts";
import { operation, slashOperation } from "./operation.ts";

const server = z.string().min(1).max(64);
const Switched = mcpSwitch.output.shape.switch;
const ServerView = mcpStatus.output.shape.servers.element.extend({
  /** Run-time switches of the server; null: never switched. */
  switched: Switched.nullable(),
});

export const mcpList = operation({
  name: "mcp.list",
  summary: "The MCP servers and their states, as reported by a tool-runner",
  role: "owner",
  input: z.strictObject({}),
  output: z.object({ servers: z.array(ServerView) }),
  http: { method: "GET", path: "/api/mcp", answers: { 200: "Sorted by name" } },
  slash: [{ form: "/mcp" }],
});

export const mcpGet = operation({
  name: "mcp.get",
  summary: "One MCP server and its tools",
  role: "owner",
  input: z.strictObject({ server }),
  output: z.object({ server: ServerView, tools: mcpStatus.output.shape.tools }),
  http: {
    method: "GET",
    path: "/api/mcp/:server",
    answers: {
      200: "The server and its last listed tools, including hidden ones",
      409: "conflict: the server is off in the settings",
    },
  },
  slash: [{ form: "/mcp tools", arguments: [{ field: "server" }] }],
});

const target = [{ field: "server" }, { field: "tool", optional: true }] as const;

export const mcpSwitchServer = operation({
  name: "mcp.switch",
  summary: "Switch an MCP server on or off, restart it, or hide one of its tools",
  role: "owner",
  audit: ["server", "tool", "action"],
  input: z.strictObject({
    server,
    action: z.enum(["on", "off", "restart"]),
    /** The tool's name at the server or in the catalog; omitted: the whole server. */
    tool: z.string().min(1).max(256).optional(),
  }),
  output: z.object({
    server: z.string(),
    tool: z.string().nullable(),
    outcome: z.enum(["done", "same"]),
    switch: Switched,
  }),
  http: {
    method: "POST",
    path: "/api/mcp/:server",
    description:
      "Applies to every tool-runner until it is changed back. A conversation keeps its initial tool list; a call of a tool that is gone returns the reason.",
    key: sameOperation,
    answers: {
      200: "The current state; `same`: nothing changed",
      409: "conflict: the server is off in the settings, or a restart was requested while it is off",
    },
  },
  slash: [
    { form: "/mcp on", arguments: target, set: { action: "on" } },
    { form: "/mcp off", arguments: target, set: { action: "off" } },
    { form: "/mcp restart", arguments: target, set: { action: "restart" } },
  ],
});

export const mcpConsentLink = operation({
  name: "mcp.consent",
  summary: "Get the link that a person opens to allow the agent to use an MCP server",
  role: "owner",
  audit: ["server"],
  input: z.strictObject({ server }),
  output: mcpConsent.output,
  http: {
    method: "POST",
    path: "/api/mcp/:server/consent",
    emptyBody: true,
    answers: { 200: "The link of the authorization server; null: no consent is required now" },
  },
});

export const mcpPromptsList = slashOperation({
  name: "mcp.prompts",
  role: "owner",
  input: z.strictObject({ server: server.optional() }),
  slash: [{ form: "/mcp prompts", arguments: [{ field: "server", optional: true }] }],
});

export const mcpPromptSend = slashOperation({
  name: "mcp.prompt",
  role: "owner",
  /** `command`: the name with server and prompt, `values`: the arguments of the prompt. */
  input: z.strictObject({ command: z.string(), values: z.string().default("") }),
  slash: [{ form: promptCommand, arguments: [{ field: "values", rest: true, optional: true }] }],
});
