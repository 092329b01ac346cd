// A legacy MCP server with one tool per kind of misbehaviour. Written without a library, which would prevent most of it.
// `node naughty.ts [many|silent|exits]`; its input is on standard error.
import { createInterface } from "node:readline";
import { z } from "zod";

const Message = z.object({
  id: z.union([z.number(), z.string()]).optional(),
  method: z.string().optional(),
  params: z
    .looseObject({
      name: z.string().optional(),
      arguments: z.record(z.string(), z.unknown()).optional(),
      _meta: z.looseObject({ progressToken: z.unknown() }).optional(),
    })
    .optional(),
});
type Message = z.infer<typeof Message>;

const [mode = "tools"] = process.argv.slice(2);
const anything = { type: "object" };
let extra = false;
let cancelled = 0;

const write = (value: unknown) => process.stdout.write(`${JSON.stringify(value)}\n`);
const answer = (id: Message["id"], result: unknown) => write({ jsonrpc: "2.0", id, result });
const text = (said: string) => ({ content: [{ type: "text", text: said }] });
const notify = (method: string, params: unknown = {}) => write({ jsonrpc: "2.0", method, params });

const calls: Record<string, (message: Message) => void> = {
  crash: () => process.exit(3),
  hang: () => undefined,
  freeze: () => {
    for (;;) {
      // Blocks the whole program, including its response to a ping.
    }
  },
  junk: ({ id }) => {
    process.stdout.write("Listening on port 3000!\n\n{not json\n[1,2\n");
    write({ some: "json", that: "is no message" });
    answer(id, text("after the junk"));
  },
  flood: ({ id }) => answer(id, text("x".repeat(11 * 1024 * 1024))),
  long: ({ id }) => answer(id, text(`begin ${"y".repeat(400_000)} end`)),
  env: ({ id }) => answer(id, text(JSON.stringify(process.env))),
  where: ({ id }) => answer(id, text(process.cwd())),
  cancelled: ({ id }) => answer(id, text(`${cancelled} cancelled`)),
  lies: ({ id }) => answer(id, { ...text("42"), structuredContent: { answer: "forty-two" } }),
  grow: ({ id }) => {
    extra = true;
    notify("notifications/tools/list_changed");
    answer(id, text("grown"));
  },
  slow: ({ params }) => {
    notify("notifications/progress", {
      progressToken: params?._meta?.progressToken,
      progress: 3,
      total: 7,
      message: "digging",
    });
  },
  refuse: ({ id }) => write({ jsonrpc: "2.0", id, error: { code: -32_602, message: "not like this" } }),
  sample: ({ id }) => {
    waiting = (reply) => answer(id, text(JSON.stringify(reply)));
    write({
      jsonrpc: "2.0",
      id: "sampling",
      method: "sampling/createMessage",
      params: { messages: [], maxTokens: 10 },
    });
  },
};
let waiting: ((reply: unknown) => void) | undefined;

function tools(): unknown[] {
  if (mode === "many") {
    const names = Array.from({ length: 200 }, (_, index) => `tool-${String(index).padStart(3, "0")}`);
    const colliding = ["get.sum", "get/sum", "get_sum", `${"long".repeat(30)}1`, `${"long".repeat(30)}2`];
    return [...names, ...colliding].map((name) => ({ name, description: "d".repeat(3_000), inputSchema: anything }));
  }
  const lies = { type: "object", properties: { answer: { type: "number" } }, required: ["answer"] };
  const own = Object.keys(calls).map((name) => ({
    name,
    inputSchema: {
      $schema: "http://json-schema.org/draft-07/schema#",
      type: "object",
      properties: { a: { type: "string" } },
    },
    ...(name === "lies" ? { outputSchema: lies } : {}),
    ...(name === "where" ? { annotations: { readOnlyHint: true } } : {}),
    ...(name === "crash" ? { annotations: { destructiveHint: true } } : {}),
  }));
  return extra ? [...own, { name: "newcomer", inputSchema: anything }] : own;
}

createInterface({ input: process.stdin }).on("line", (line) => {
  const message = Message.parse(JSON.parse(line));
  const { id, method } = message;
  if (method === undefined) waiting?.(JSON.parse(line));
  else if (method === "initialize") {
    const capabilities = { tools: { listChanged: true } };
    answer(id, { protocolVersion: "2025-06-18", capabilities, serverInfo: { name: "naughty", version: "1" } });
  } else if (mode === "exits" && method !== "notifications/initialized" && method !== "tools/list") process.exit(1);
  else if (method === "tools/list") answer(id, { tools: tools() });
  else if (method === "tools/call") (calls[message.params?.name ?? ""] ?? calls["hang"])?.(message);
  else if (method === "notifications/cancelled") cancelled += 1;
  else if (method === "ping") answer(id, {});
  else if (id !== undefined && mode !== "silent")
    write({ jsonrpc: "2.0", id, error: { code: -32_601, message: "no such method" } });
});
