// What is said on the bus about MCP servers.
import { z } from "zod";
import { event, hint, request } from "./contract.ts";
import { BlobPart, TextPart } from "./messages.ts";

export const McpServerStatusSchema = z.object({
  /** As the settings name it. */
  server: z.string(),
  /**
   * `consent`: a person has to open a link first. `off`: it cannot be started as it is configured (`problem` says why), or a person has
   * switched it off (`problem` is null).
   */
  state: z.enum(["starting", "ready", "restarting", "broken", "consent", "off"]),
  /** How many of its tools the agent has. */
  tools: z.number().int(),
  /** What is wrong, in a sentence; null: nothing. */
  problem: z.string().nullable(),
});
export type McpServerStatus = z.infer<typeof McpServerStatusSchema>;

export const toolsChanged = hint({
  subject: "tool.changed",
  publishers: ["tool-runner"],
  consumers: ["agent-core"],
  doc: "The tools of this tool-runner are others than before, or an MCP server began or ended its start: `tool.catalog` answers at once and waits for no server.",
  payload: z.object({ runner: z.string() }),
});

export const mcpAuthorize = request({
  subject: "mcp.authorize",
  server: "tool-runner",
  clients: ["channel-gateway"],
  // A code is good for one exchange.
  idempotent: false,
  doc: "A person has come back from the authorization server of an MCP server: exchange the code for tokens. Any replica can, whoever made the link.",
  input: z.object({
    server: z.string(),
    /** As the link carried it. */
    state: z.string().max(512),
    code: z.string().max(4_096).nullable(),
    /** What the authorization server says went wrong. */
    error: z.string().max(2_000).nullable(),
    /** Who answers, where the authorization server says so. */
    issuer: z.string().max(2_000).nullable(),
  }),
  output: z.object({
    outcome: z.enum(["done", "refused", "unknown_link", "failed"]),
    /** For the person; holds no secret. */
    message: z.string(),
  }),
});

export const mcpAuthorized = event({
  subject: "mcp.authorized",
  publishers: ["tool-runner"],
  consumers: ["tool-runner"],
  doc: "There are new tokens for this MCP server; whoever waits for consent tries again.",
  payload: z.object({ server: z.string() }),
});

const McpPromptSchema = z.object({
  server: z.string(),
  /** As the server calls it. */
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
    /** Left out: of all servers. */
    server: z.string().optional(),
  }),
  output: z.object({
    prompts: z.array(McpPromptSchema),
    /** How the servers are. */
    servers: z.array(McpServerStatusSchema),
  }),
});

const McpToolSchema = z.object({
  /** As the server calls it. */
  tool: z.string(),
  /** As the agent calls it. */
  name: z.string(),
  /** A person has taken it from the agent. */
  hidden: z.boolean(),
});

export const mcpLook = request({
  subject: "mcp.look",
  server: "tool-runner",
  clients: ["channel-gateway"],
  doc: "How the MCP servers of a tool-runner are, answered at once with what it knows; and the tools of one server, sorted.",
  input: z.object({
    /** Whose tools are wanted; left out: nobody's. */
    server: z.string().optional(),
  }),
  output: z.object({
    /** The replica's name. */
    runner: z.string(),
    /** Sorted by name. */
    servers: z.array(McpServerStatusSchema),
    /** Those it has listed last and the settings allow, hidden ones included; none of a server that is off. */
    tools: z.array(McpToolSchema),
  }),
});

export const mcpSwitched = hint({
  subject: "mcp.switched",
  publishers: ["store"],
  consumers: ["tool-runner"],
  doc: "A person has switched something of this MCP server; tool-runners read what holds now.",
  payload: z.object({ server: z.string() }),
});

export const mcpPrompt = request({
  subject: "mcp.prompt",
  server: "tool-runner",
  clients: ["channel-gateway"],
  doc: "What a server makes of one of its prompts: the parts of a message that a person says with it. What is not text is kept by the store.",
  input: z.object({
    /** As it is called, or as it is typed in a command: in lower case, `_` for what a command may not hold. */
    server: z.string(),
    prompt: z.string(),
    /** `name=value` each, or values in the order in which the prompt names its arguments; the last one takes the rest. */
    words: z.array(z.string()).max(200),
  }),
  output: z.discriminatedUnion("outcome", [
    z.object({ outcome: z.literal("done"), parts: z.array(z.discriminatedUnion("type", [TextPart, BlobPart])).min(1) }),
    /** There is no such server or prompt, an argument is missing, or the server failed; for the person. */
    z.object({ outcome: z.literal("failed"), message: z.string() }),
  ]),
});
