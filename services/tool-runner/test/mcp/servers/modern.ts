// A modern MCP server (2026-07-28) over standard input and output.
import { inputRequired, McpServer } from "@modelcontextprotocol/server";
import { serveStdio } from "@modelcontextprotocol/server/stdio";
import { z } from "zod";

serveStdio(({ era }) => {
  const server = new McpServer({ name: "modern", version: "1.0.0" });
  server.registerTool("era", { description: "The era of this connection.", inputSchema: z.object({}) }, () => ({
    content: [{ type: "text", text: `${era}, process ${process.pid}` }],
  }));
  server.registerTool(
    "add",
    {
      inputSchema: z.object({ a: z.number(), b: z.number() }),
      outputSchema: z.object({ sum: z.number() }),
      annotations: { readOnlyHint: true, idempotentHint: true },
    },
    ({ a, b }) => ({ content: [], structuredContent: { sum: a + b } }),
  );
  server.registerTool("greet", { inputSchema: z.object({}) }, (_args, { mcpReq }) => {
    const requestedSchema = {
      type: "object" as const,
      properties: { name: { type: "string" as const, minLength: 2 } },
      required: ["name"],
    };
    const answer = mcpReq.inputResponses?.["who"];
    if (answer === undefined) {
      const who = inputRequired.elicit({ message: "Whom should I greet?", requestedSchema });
      return inputRequired({ inputRequests: { who } });
    }
    const { content } = z.object({ content: z.object({ name: z.string() }).optional() }).parse(answer);
    return { content: [{ type: "text", text: content === undefined ? "nobody" : `hello, ${content.name}` }] };
  });
  server.registerResource("greeting", "modern://greeting", { mimeType: "text/plain" }, (uri) => ({
    contents: [{ uri: uri.href, mimeType: "text/plain", text: "good evening" }],
  }));
  return server;
});
