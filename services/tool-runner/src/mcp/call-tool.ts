// Calls a tool of an MCP server: reports progress, and ties the server's elicitation and sampling requests to the call.
import type { Tool as ServerTool } from "@modelcontextprotocol/client";
import type { ToolContext, ToolOutput } from "../tool/tool.ts";
import { toolOutput } from "./result-text.ts";
import { Sampling } from "./sampling.ts";
import type { McpServer } from "./server.ts";

const maxMessageChars = 500;

/** The parts of the call's context that are used here. */
export type CallContext = Pick<ToolContext, "signal" | "attachmentStore" | "askPerson" | "sampler" | "progress">;

export async function callTool(
  server: Pick<McpServer, "plan" | "aliveMs" | "use">,
  tool: ServerTool,
  args: Record<string, unknown>,
  context: CallContext,
): Promise<ToolOutput> {
  const { signal, askPerson: person } = context;
  const { plan } = server;
  let far = "";
  // The caller's own deadline is shorter, and pauses while a person is asked.
  const timeout = plan.timeoutMs + plan.asksMs + server.aliveMs;
  const sampling = plan.sampling === null ? undefined : new Sampling(plan.name, plan.sampling, context);
  return server.use(
    async (client, notes) => {
      const result = await client.callTool(
        { name: tool.name, arguments: args },
        {
          signal,
          timeout,
          toolDefinition: tool,
          onprogress: ({ progress: done, total, message = "" }) => {
            context.progress?.({
              done,
              total: total ?? null,
              message: message.slice(0, maxMessageChars).toWellFormed(),
            });
            far = `Last progress: ${done}${total === undefined ? "" : ` of ${total}`}${message === "" ? "" : ` (${message})`}.`;
          },
        },
      );
      return toolOutput(plan.name, result, notes, context.attachmentStore);
    },
    signal,
    { askPerson: person, sampling, soFar: () => far },
  );
}
