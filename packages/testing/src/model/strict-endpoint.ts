// A proxy in front of the fake model. It refuses what the real API refuses (a mock accepts everything), keeps a journal of
// every request, and forwards accepted requests.
import { createServer, request as forward, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { pipeline } from "node:stream/promises";
import { z } from "zod";

const CacheControl = z.strictObject({ type: z.literal("ephemeral"), ttl: z.enum(["5m", "1h"]).optional() }).optional();
const Text = z.strictObject({ type: z.literal("text"), text: z.string().regex(/\S/), cache_control: CacheControl });
const ToolUse = z.strictObject({
  type: z.literal("tool_use"),
  id: z.string().regex(/^[a-zA-Z0-9_-]+$/),
  name: z.string().min(1),
  input: z.record(z.string(), z.unknown()),
  cache_control: CacheControl,
});
/** Base64 of limited length, whose first bytes match the media type. */
const content = (magic: Readonly<Record<string, string>>, maxCharacters: number) =>
  z
    .strictObject({ type: z.literal("base64"), media_type: z.string(), data: z.base64().min(1).max(maxCharacters) })
    .refine(({ media_type: type, data }) => {
      const begins = magic[type];
      return begins !== undefined && Buffer.from(data.slice(0, 64), "base64").toString("hex").startsWith(begins);
    }, "the content is not what its media_type says");
const pictures = { "image/png": "89504e47", "image/jpeg": "ffd8ff", "image/gif": "47494638", "image/webp": "52494646" };
const Image = z.strictObject({
  type: z.literal("image"),
  source: content(pictures, 5 * 1024 * 1024),
  cache_control: CacheControl,
});
const Document = z.strictObject({
  type: z.literal("document"),
  source: content({ "application/pdf": "255044462d" }, 32 * 1024 * 1024),
  cache_control: CacheControl,
});
const ToolResult = z.strictObject({
  type: z.literal("tool_result"),
  tool_use_id: z.string(),
  content: z.union([z.string().min(1), z.array(z.union([Text, Image, Document])).min(1)]),
  is_error: z.boolean().optional(),
  cache_control: CacheControl,
});
const Thinking = z.strictObject({ type: z.literal("thinking"), thinking: z.string(), signature: z.string().min(1) });
const Redacted = z.strictObject({ type: z.literal("redacted_thinking"), data: z.string() });

const RequestSchema = z.strictObject({
  model: z.string(),
  max_tokens: z.number().int().min(1).max(128_000),
  stream: z.literal(true),
  system: z.array(Text),
  tools: z.array(
    z.strictObject({
      name: z.string().regex(/^[a-zA-Z0-9_-]{1,64}$/),
      description: z.string(),
      input_schema: z.looseObject({ type: z.literal("object") }),
      input_examples: z.array(z.record(z.string(), z.unknown())).min(1).optional(),
      cache_control: CacheControl,
    }),
  ),
  thinking: z
    .discriminatedUnion("type", [
      z.strictObject({
        type: z.literal("adaptive"),
        display: z.enum(["updates", "summarized", "omitted"]).optional(),
      }),
      z.strictObject({ type: z.literal("disabled") }),
      z.strictObject({ type: z.literal("between_tools") }),
    ])
    .optional(),
  output_config: z.strictObject({ effort: z.enum(["low", "medium", "high", "xhigh", "max"]) }).optional(),
  stop_sequences: z.array(z.string().regex(/\S/)).min(1).optional(),
  messages: z
    .array(
      z.discriminatedUnion("role", [
        z.strictObject({
          role: z.literal("user"),
          content: z.array(z.union([Text, ToolResult, Image, Document])).min(1),
        }),
        z.strictObject({
          role: z.literal("assistant"),
          content: z.array(z.union([Text, ToolUse, Thinking, Redacted])).min(1),
        }),
      ]),
    )
    .min(1),
});
type Request = z.infer<typeof RequestSchema>;

type Held = "goes on" | "breaks" | undefined;

export interface StrictEndpoint {
  url: string;
  /** Every accepted request, in order. */
  readonly requests: readonly Request[];
  /** Requests that the real API would have refused. A test asserts that the list is empty. */
  readonly refusals: readonly string[];
  /** The next answer stops after its first piece of text, until the returned function is called: the stream then goes on, or breaks. */
  holdNext(): (then?: "goes on" | "breaks") => void;
  stop(): Promise<void>;
}

/** Starts the proxy for a model at `upstream`. */
export async function startStrictEndpoint(upstream: string): Promise<StrictEndpoint> {
  const requests: Request[] = [];
  const refusals: string[] = [];
  const holds: Promise<Held>[] = [];
  const server = createServer((incoming, response) => {
    void (async () => {
      const body = await read(incoming);
      if (incoming.method === "GET") return describeModel(incoming.url ?? "", response);
      if (new URL(incoming.url ?? "/", upstream).pathname.endsWith("/count_tokens")) return countTokens(body, response);
      const problem = check(body, incoming.headers["anthropic-beta"] ?? "", requests);
      if (problem === undefined) return pass(upstream, incoming, body, response, holds.shift());
      refusals.push(problem);
      response
        .writeHead(400, { "content-type": "application/json" })
        .end(JSON.stringify({ type: "error", error: { type: "invalid_request_error", message: problem } }));
    })();
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    requests,
    refusals,
    holdNext: () => {
      const { promise, resolve } = Promise.withResolvers<Held>();
      holds.push(promise);
      return resolve;
    },
    stop: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}

function check(body: string, betas: string | string[], requests: Request[]): string | undefined {
  const parsed = RequestSchema.safeParse(JSON.parse(body));
  if (!parsed.success) {
    const issue = parsed.error.issues[0];
    return `${issue?.path.join(".") ?? ""}: ${issue?.message ?? "invalid"}`;
  }
  const problem = checkOrder(parsed.data) ?? checkExtras(parsed.data, String(betas));
  if (problem === undefined) requests.push(parsed.data);
  return problem;
}

/** Roles alternate and begin with user; the next message answers every tool_use once, before any text. */
export function checkOrder({ messages }: Pick<Request, "messages">): string | undefined {
  let open: string[] = [];
  for (const [index, message] of messages.entries()) {
    const expected = index % 2 === 0 ? "user" : "assistant";
    if (message.role !== expected) return `messages.${index}: role must be ${expected}`;
    if (message.role === "assistant") {
      open = message.content.flatMap((block) => (block.type === "tool_use" ? [block.id] : []));
      if (new Set(open).size !== open.length) return `messages.${index}: tool_use ids must be unique`;
      const last = message.content.at(-1)?.type;
      if (last === "thinking" || last === "redacted_thinking")
        return `messages.${index}: the final block cannot be thinking`;
      continue;
    }
    const kinds = message.content.map((block) => block.type);
    const results = message.content.flatMap((block) => (block.type === "tool_result" ? [block.tool_use_id] : []));
    if (kinds.lastIndexOf("tool_result") >= results.length)
      return `messages.${index}: tool_result blocks must come first`;
    if ([...results].sort().join() !== [...open].sort().join()) {
      return `messages.${index}: tool_use ids [${open.join()}] need exactly one tool_result each, found [${results.join()}]`;
    }
    open = [];
  }
  return messages.length % 2 === 0 ? "messages: the last message must be of the user" : undefined;
}

/** At most four cache breakpoints are allowed, and a beta feature needs its header. */
function checkExtras(request: Request, betas: string): string | undefined {
  const breakpoints = JSON.stringify(request).split('"cache_control":').length - 1;
  if (breakpoints > 4) return `a maximum of 4 blocks with cache_control may be provided, found ${breakpoints}`;
  const updates = request.thinking?.type === "adaptive" && request.thinking.display === "updates";
  if (updates && !betas.includes("thinking-display-updates-")) return "thinking.display: updates needs its beta";
  return undefined;
}

function describeModel(url: string, response: ServerResponse): void {
  const id = url.split("/").at(-1) ?? "";
  const supported = { supported: true };
  const model = {
    id,
    type: "model",
    display_name: id,
    lifecycle: "active",
    max_tokens: 64_000,
    max_input_tokens: 1_000_000,
    capabilities: {
      effort: { supported: true, low: supported, medium: supported, high: supported, xhigh: supported, max: supported },
      image_input: supported,
      pdf_input: supported,
      thinking: {
        supported: true,
        types: { adaptive: supported, enabled: supported, disabled: supported, between_tools: { supported: false } },
      },
    },
  };
  response.writeHead(200, { "content-type": "application/json" }).end(JSON.stringify(model));
}

/** An estimate close to the real count. */
function countTokens(body: string, response: ServerResponse): void {
  const answer = { input_tokens: Math.ceil(body.length / 4) };
  response.writeHead(200, { "content-type": "application/json" }).end(JSON.stringify(answer));
}

/** Forwards a request and its answer; with `held` the answer goes on after its first piece of text when that resolves. */
function pass(
  upstream: string,
  incoming: IncomingMessage,
  body: string,
  response: ServerResponse,
  held: Promise<Held> | undefined,
): void {
  const target = new URL(incoming.url ?? "/", upstream);
  const headers = { ...incoming.headers, host: target.host, "content-length": String(Buffer.byteLength(body)) };
  const onward = forward(target, { method: incoming.method ?? "POST", headers }, (reply) => {
    response.writeHead(reply.statusCode ?? 502, reply.headers);
    if (held === undefined) reply.pipe(response);
    else void pipeline(reply, (stream) => heldAfterText(stream, held), response).catch(() => undefined);
    // A stream that upstream cuts is cut here too, not ended normally.
    reply.on("aborted", () => response.destroy());
    reply.on("error", () => response.destroy());
  });
  onward.on("error", () => response.destroy());
  response.on("close", () => onward.destroy());
  onward.end(body);
}

/** Waits for `held` behind the first event with text. */
async function* heldAfterText(stream: AsyncIterable<Buffer>, held: Promise<Held>): AsyncGenerator<Buffer> {
  let begun = "";
  let hasText = false;
  for await (const chunk of stream) {
    if (!hasText) begun += chunk.toString("latin1");
    const first = hasText ? null : /"text_delta"[^]*?\n\n/.exec(begun);
    if (first === null) {
      yield chunk;
      continue;
    }
    hasText = true;
    const end = chunk.length - (begun.length - first.index - first[0].length);
    yield chunk.subarray(0, end);
    if ((await held) === "breaks") throw new Error("the stream breaks");
    yield chunk.subarray(end);
  }
}

async function read(incoming: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = [];
  for await (const chunk of incoming) chunks.push(chunk as Buffer);
  return Buffer.concat(chunks).toString("utf8");
}
