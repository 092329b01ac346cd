// What is said on the bus about MCP servers.
import { z } from "zod";
import { event, hint, request } from "./contract.ts";

export const McpServerStatusSchema = z.object({
  /** As the settings name it. */
  server: z.string(),
  /** `consent`: a person has to open a link first. `off`: it cannot be started as it is configured. */
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
  doc: "The tools of this tool-runner are others than before: an MCP server came up or changed its list.",
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
