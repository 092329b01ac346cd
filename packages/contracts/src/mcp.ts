// Bus messages about MCP servers.
import { z } from "zod";
import { event, hint, request } from "./contract.ts";
import { BlobPart, TextPart } from "./messages.ts";

export const McpServerStatusSchema = z.object({
  /** As the settings name it. */
  server: z.string(),
  /**
   * `consent`: a person has to open a link first. `off`: it cannot be started as configured (`problem` contains the reason), or a person
   * switched it off (`problem` is null).
   */
  state: z.enum(["starting", "ready", "restarting", "broken", "consent", "off"]),
  /** Number of its tools that the agent has. */
  tools: z.number().int(),
  /** The problem in one sentence; null: none. */
  problem: z.string().nullable(),
});
export type McpServerStatus = z.infer<typeof McpServerStatusSchema>;

export const toolsChanged = hint({
  subject: "tool.changed",
  publishers: ["tool-runner"],
  consumers: ["agent-core"],
  doc: "The tools of this tool-runner changed, or an MCP server began or ended its start. `tool.catalog` replies immediately and does not wait for servers.",
  payload: z.object({ runner: z.string() }),
});

export const mcpConsent = request({
  subject: "mcp.consent",
  server: "tool-runner",
  clients: ["channel-gateway"],
  doc: "Get the link that a person opens to allow the agent to use an MCP server. The link is renewed if it is about to expire; it waits for a server that is starting.",
  input: z.object({ server: z.string() }),
  output: z.object({
    /** Null: no consent is required now, or no server has this name. */
    link: z.string().nullable(),
  }),
});

export const mcpAuthorize = request({
  subject: "mcp.authorize",
  server: "tool-runner",
  clients: ["channel-gateway"],
  // An authorization code can be exchanged once.
  idempotent: false,
  doc: "A person returned from the authorization server of an MCP server: exchange the code for tokens. Any replica can do so, not only the one that created the link.",
  input: z.object({
    server: z.string(),
    /** The `state` parameter of the link: a random part, a full stop, and the public key that the code is sealed to. */
    state: z.string().max(512),
    /** The authorization code, which only a tool-runner with the operator's key can read (`sealedCodeContext`); null: none was issued. */
    sealedCode: z.string().max(8_192).nullable(),
    /** The error that the authorization server reported. */
    error: z.string().max(2_000).nullable(),
    /** The issuer, where the authorization server sent one. */
    issuer: z.string().max(2_000).nullable(),
  }),
  output: z.object({
    outcome: z.enum(["done", "refused", "unknown_link", "failed"]),
    /** For the person; contains no secret. */
    message: z.string(),
  }),
});

/** What a sealed authorization code is bound to: it is valid for this link only. */
export function sealedCodeContext({ server, state }: { server: string; state: string }): string {
  return `mcp.authorize ${server} ${state}`;
}

/** The public key in the `state` of a link; undefined: a link without one, whose code nobody may receive. */
export function publicKeyInState(state: string): string | undefined {
  return /^[^.]+\.([A-Za-z0-9_-]{43})$/.exec(state)?.[1];
}

export const mcpAuthorized = event({
  subject: "mcp.authorized",
  publishers: ["tool-runner"],
  consumers: ["tool-runner"],
  doc: "New tokens exist for this MCP server; runners that wait for consent try again.",
  payload: z.object({ server: z.string() }),
});

const McpPromptSchema = z.object({
  server: z.string(),
  /** The server's name for it. */
  prompt: z.string(),
  /** One line; may be empty. */
  about: z.string(),
  arguments: z.array(z.object({ name: z.string(), required: z.boolean() })),
});
export type McpPrompt = z.infer<typeof McpPromptSchema>;

export const mcpPrompts = request({
  subject: "mcp.prompts",
  server: "tool-runner",
  clients: ["channel-gateway"],
  doc: "The prompts that MCP servers offer to people, sorted by server and name.",
  input: z.object({
    /** Omitted: of all servers. */
    server: z.string().optional(),
  }),
  output: z.object({
    prompts: z.array(McpPromptSchema),
    /** Status of the servers. */
    servers: z.array(McpServerStatusSchema),
  }),
});

const McpToolSchema = z.object({
  /** The server's name for it. */
  tool: z.string(),
  /** The agent's name for it. */
  name: z.string(),
  /** One line; omitted by an older version. */
  summary: z.string().optional(),
  /** A person hid it from the agent. */
  hidden: z.boolean(),
});

export const mcpStatus = request({
  subject: "mcp.look",
  server: "tool-runner",
  clients: ["channel-gateway"],
  doc: "Get the status of a tool-runner's MCP servers from its current knowledge, without waiting, and the tools of one server, sorted.",
  input: z.object({
    /** The server whose tools to list; omitted: none. */
    server: z.string().optional(),
  }),
  output: z.object({
    /** The replica's name. */
    runner: z.string(),
    /** Sorted by name. */
    servers: z.array(McpServerStatusSchema),
    /** The tools it listed last that the settings allow, including hidden ones; empty for a server that is off. */
    tools: z.array(McpToolSchema),
  }),
});

export const mcpSwitched = hint({
  subject: "mcp.switched",
  publishers: ["store"],
  consumers: ["tool-runner"],
  doc: "A person changed a switch of this MCP server; tool-runners read the current switches.",
  payload: z.object({ server: z.string() }),
});

export const mcpPrompt = request({
  subject: "mcp.prompt",
  server: "tool-runner",
  clients: ["channel-gateway"],
  doc: "Render one prompt of a server into the parts of a user message. Content other than text is put into the store.",
  input: z.object({
    /** Its name, or its name as typed in a command: lower case, with `_` for characters that commands do not allow. */
    server: z.string(),
    prompt: z.string(),
    /** `name=value` each, or values in the order of the prompt's arguments; the last argument takes the rest. */
    words: z.array(z.string()).max(200),
  }),
  output: z.discriminatedUnion("outcome", [
    z.object({ outcome: z.literal("done"), parts: z.array(z.discriminatedUnion("type", [TextPart, BlobPart])).min(1) }),
    /** For the person: there is no such server or prompt, an argument is missing, or the server failed. */
    z.object({ outcome: z.literal("failed"), message: z.string() }),
  ]),
});
