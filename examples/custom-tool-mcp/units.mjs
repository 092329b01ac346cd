// An MCP server with one tool, over standard input and output.
/* oxlint-disable typescript/no-unsafe-return -- the libraries are installed next to a copy of this file */
import { McpServer } from "@modelcontextprotocol/server";
import { serveStdio } from "@modelcontextprotocol/server/stdio";
import { z } from "zod";

serveStdio(() => {
  const server = new McpServer({ name: "units", version: "1.0.0" });
  server.registerTool(
    "convert",
    {
      description: "Convert miles to kilometres.",
      inputSchema: z.object({ miles: z.number().describe("The distance in miles.") }),
      annotations: { readOnlyHint: true, idempotentHint: true, openWorldHint: false },
    },
    ({ miles }) => ({ content: [{ type: "text", text: `${(miles * 1.609344).toFixed(1)} km` }] }),
  );
  return server;
});
