// Parley's tools for MCP clients: send messages, read sessions, decide approvals. Callers are the owner, within the scopes of their token.
import { randomUUID } from "node:crypto";
import { McpServer, type CallToolResult } from "@modelcontextprotocol/server";
import { z } from "zod";
import type { ApiAccess } from "../../operations/operation.ts";
import { parseInput } from "../../operations/parse-input.ts";
import { version } from "@parley/chassis";
import { callOperation, operations } from "../../operations/registry.ts";
import { ownerCaller, ownerInput } from "../owner-input.ts";
import type { HttpDeps } from "../deps.ts";
import { toHttpError } from "../errors.ts";

/** The default request timeout of MCP clients is 60 s. */
const waitSeconds = 50;

/** Creates a server for one request. `signal` aborts when the caller disconnects or this replica drains. */
export function parleyServer(deps: HttpDeps, access: ApiAccess, signal: AbortSignal): McpServer {
  const server = new McpServer(
    { name: "parley", version },
    {
      instructions:
        "Parley is an always-on agent. send_message sends it a message; list_sessions and read_session return its conversations; approvals_list and approval_decide list and decide tool calls that wait for approval.",
    },
  );
  sendMessage(server, deps, access, signal);
  projected(server, deps, access);
  return server;
}

function sendMessage(server: McpServer, deps: HttpDeps, access: ApiAccess, signal: AbortSignal): void {
  server.registerTool(
    "send_message",
    {
      title: "Send a message to Parley",
      description:
        "Send a message to the agent as its owner. With `wait` the message gets its own turn and the tool returns the answer. On a timeout the message stays stored, and read_session returns the answer later. A command (/help lists them) is executed immediately.",
      inputSchema: z.strictObject({
        text: z.string().min(1).describe("The text of the message."),
        conversation: z.string().min(1).max(512).default("mcp").describe("The name of the conversation."),
        wait: z.boolean().default(true).describe("Wait for the answer."),
        wait_seconds: z
          .number()
          .int()
          .min(1)
          .max(600)
          .default(waitSeconds)
          .describe("Maximum time to wait for the answer, in seconds."),
        key: z.string().min(1).max(256).optional().describe("Idempotency key: a repeated key is the same message."),
      }),
      annotations: { destructiveHint: true, idempotentHint: false, openWorldHint: true },
    },
    ({ text, conversation, wait, wait_seconds: seconds, key }) =>
      answer(deps, async () => {
        const { inbound, events } = deps;
        const input = ownerInput(access, conversation, text, key);
        const parsed = parseInput(text);
        if (parsed.kind === "command") {
          events.inbound(input.channel, "command");
          return {
            command: parsed.command.name,
            text: await inbound.runCommand(parsed.command, inbound.speakerOf(input)),
          };
        }
        const message = { ...input, text: parsed.text, mode: parsed.mode, exclusive: wait };
        if (!wait) {
          const { inboxId, sessionId, duplicate } = await inbound.store(message);
          return { message: inboxId, session: sessionId, duplicate };
        }
        const late = AbortSignal.timeout(seconds * 1_000);
        const { kept, end } = await inbound.storeAndFollow(message, AbortSignal.any([signal, late]));
        const ids = { message: kept.inboxId, session: kept.sessionId, duplicate: kept.duplicate };
        try {
          const { state, exitReason, text: answered } = await end;
          return { ...ids, state, exit_reason: exitReason, text: answered };
        } catch (error) {
          if (!late.aborted) throw error;
          return {
            ...ids,
            state: "running",
            text: `No answer within ${seconds} seconds; the turn is still running.`,
          };
        }
      }),
  );
}

/** The tools that are projections of operations. */
function projected(server: McpServer, deps: HttpDeps, access: ApiAccess): void {
  for (const operation of operations) {
    const { definition } = operation;
    const { mcp } = definition;
    if (mcp === undefined) continue;
    const { name, title, description, input: inputSchema = definition.input, annotations } = mcp;
    server.registerTool(name, { title, description, inputSchema, annotations }, (input) =>
      answer(deps, () =>
        callOperation(deps.inbound.operations, operation, input, ownerCaller(access, "mcp", `mcp:${randomUUID()}`)),
      ),
    );
  }
}

/** Returns the value as text and as structured content; an error becomes its code and message, without internal details. */
async function answer({ log }: Pick<HttpDeps, "log">, act: () => Promise<unknown>): Promise<CallToolResult> {
  try {
    const value = await act();
    return {
      content: [{ type: "text", text: JSON.stringify(value, null, 2) }],
      structuredContent: { ...(value as object) },
    };
  } catch (error) {
    const { code, message } = toHttpError(error);
    if (code === "internal") log.error({ err: error }, "MCP call failed");
    return { content: [{ type: "text", text: `${code}: ${message}` }], isError: true };
  }
}
