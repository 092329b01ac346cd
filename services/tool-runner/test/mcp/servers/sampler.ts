// An MCP server that requests sampling during calls, in either era, over standard input and output.
import { inputRequired, McpServer } from "@modelcontextprotocol/server";
import { serveStdio } from "@modelcontextprotocol/server/stdio";
import { z } from "zod";

const Answer = z.object({ content: z.object({ text: z.string() }), stopReason: z.string().optional() });
/** A picture of one pixel. */
const picture = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";

serveStdio(({ era }) => {
  const server = new McpServer({ name: "sampler", version: "1.0.0" });
  const params = (prompt: string, more: object = {}) => ({
    messages: [{ role: "user" as const, content: { type: "text" as const, text: prompt } }],
    maxTokens: 64_000,
    ...more,
  });
  server.registerTool(
    "ask",
    {
      description: "Asks the model so many times, all at once or one after the other.",
      inputSchema: z.object({ prompt: z.string(), times: z.number().default(1), atOnce: z.boolean().default(false) }),
    },
    async ({ prompt, times, atOnce }, { mcpReq }) => {
      const once = async () => {
        try {
          const { content, stopReason } = Answer.parse(await mcpReq.requestSampling(params(prompt)));
          return `${content.text} (${stopReason})`;
        } catch (error) {
          return `error: ${error instanceof Error ? error.message : String(error)}`;
        }
      };
      const said: string[] = [];
      if (era === "modern") {
        const given = mcpReq.inputResponses?.["it"];
        if (given === undefined)
          return inputRequired({ inputRequests: { it: inputRequired.createMessage(params(prompt)) } });
        said.push(Answer.parse(given).content.text);
      } else if (atOnce) said.push(...(await Promise.all(Array.from({ length: times }, once))));
      else for (let n = 0; n < times; n++) said.push(await once());
      return { content: [{ type: "text", text: said.map((text, n) => `${n + 1}. ${text}`).join("\n") }] };
    },
  );
  server.registerTool("look", { inputSchema: z.object({}) }, async (_args, { mcpReq }) => {
    const messages = [
      { role: "user" as const, content: { type: "image" as const, data: picture, mimeType: "image/png" } },
      { role: "assistant" as const, content: { type: "text" as const, text: "A pixel." } },
      { role: "user" as const, content: { type: "text" as const, text: "Which?\nsay: a red one" } },
    ];
    const { content } = Answer.parse(
      await mcpReq.requestSampling({ messages, maxTokens: 10, includeContext: "allServers" }),
    );
    return { content: [{ type: "text", text: content.text }] };
  });
  server.registerResource("asking", "sampler://asking", { mimeType: "text/plain" }, async (uri, { mcpReq }) => {
    const text = await mcpReq.requestSampling(params("go\nsay: never")).then(JSON.stringify, String);
    return { contents: [{ uri: uri.href, mimeType: "text/plain", text }] };
  });
  return server;
});
