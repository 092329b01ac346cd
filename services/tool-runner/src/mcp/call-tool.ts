// A call of a server's tool: how far it has come is shown, and what the server may ask meanwhile is tied to the call.
import type { Tool as ServerTool } from "@modelcontextprotocol/client";
import type { ToolContext, ToolOutput } from "../tool.ts";
import { toolOutput } from "./result-text.ts";
import { Sampling } from "./sampling/sampling.ts";
import type { McpServer } from "./server.ts";

const maxMessageChars = 500;

/** What it needs of the call it is for. */
export type CallContext = Pick<ToolContext, "signal" | "contents" | "person" | "sampler" | "progress">;

export async function callTool(
  server: Pick<McpServer, "plan" | "aliveMs" | "use">,
  tool: ServerTool,
  args: Record<string, unknown>,
  context: CallContext,
): Promise<ToolOutput> {
  const { signal, person } = context;
  const { plan } = server;
  let far = "";
  // The caller's own deadline comes first, and stands still while a person is asked.
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
            far = `It was at ${done}${total === undefined ? "" : ` of ${total}`}${message === "" ? "" : ` (${message})`}.`;
          },
        },
      );
      return toolOutput(plan.name, result, notes, context.contents);
    },
    signal,
    { person, sampling, soFar: () => far },
  );
}
