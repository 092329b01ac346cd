// A model server with OpenAI's Responses API that stores nothing, as strict as OpenAI about the items of its own that come back: reasoning
// must be unchanged and before the call it led to. Each answer is the next one in a list.
import { once } from "node:events";
import { createServer, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { z } from "zod";

const Item = z.looseObject({ type: z.string(), call_id: z.string().optional() });
const Request = z.strictObject({
  model: z.string().min(1),
  instructions: z.string().optional(),
  input: z.array(Item).min(1),
  tools: z
    .array(
      z.strictObject({
        type: z.literal("function"),
        name: z.string().regex(/^[A-Za-z0-9_-]{1,64}$/),
        description: z.string(),
        parameters: z.looseObject({ type: z.literal("object"), properties: z.looseObject({}) }),
        strict: z.literal(false),
      }),
    )
    .min(1)
    .optional(),
  stream: z.literal(true),
  store: z.literal(false),
  include: z.tuple([z.literal("reasoning.encrypted_content")]).optional(),
  reasoning: z.strictObject({ effort: z.string().optional(), summary: z.literal("auto").optional() }).optional(),
  max_output_tokens: z.number().int().min(16),
});

export type ResponsesItem = z.infer<typeof Item>;
type ResponsesBody = z.infer<typeof Request>;

/** The output items of an answer, or a refusal with status 400. */
type ResponsesAnswer = readonly ResponsesItem[] | { refusal: string };

export interface ResponsesServer {
  /** Including `/v1`. */
  url: string;
  /** The accepted requests. */
  readonly requests: readonly ResponsesBody[];
  /** The texts of refusals. */
  readonly refusals: readonly string[];
  answer(...answers: ResponsesAnswer[]): void;
  stop(): void;
}

/** Reasoning as the server returns it; `id` and `content` are any texts. */
export function reasoningItem(id: string, content: string, summary = ""): ResponsesItem {
  return {
    id,
    type: "reasoning",
    summary: summary === "" ? [] : [{ type: "summary_text", text: summary }],
    encrypted_content: content,
  };
}

export function callItem(callId: string, name: string, args: object): ResponsesItem {
  return {
    id: `fc_${callId}`,
    type: "function_call",
    status: "completed",
    call_id: callId,
    name,
    arguments: JSON.stringify(args),
  };
}

export function messageItem(text: string): ResponsesItem {
  const content = [{ type: "output_text", text, annotations: [] }];
  return { id: "msg_1", type: "message", status: "completed", role: "assistant", content };
}

export async function startResponsesServer(): Promise<ResponsesServer> {
  const requests: ResponsesBody[] = [];
  const refusals: string[] = [];
  const answers: ResponsesAnswer[] = [];
  /** Reasoning items of earlier answers, as JSON. */
  const issued = new Set<string>();
  const refuse = (response: ServerResponse, message: string) => {
    refusals.push(message);
    response.writeHead(400, { "content-type": "application/json" });
    response.end(JSON.stringify({ error: { message, type: "invalid_request_error", param: null, code: null } }));
  };
  const serve = (body: string, response: ServerResponse) => {
    // The schema only checks: parsed data would have another order of keys.
    const parsedBody = JSON.parse(body) as ResponsesBody;
    const { error } = Request.safeParse(parsedBody);
    if (error !== undefined) return refuse(response, z.prettifyError(error));
    const problem = problemOf(parsedBody.input, issued);
    if (problem !== undefined) return refuse(response, problem);
    const next = answers.shift() ?? [messageItem("nothing more")];
    if ("refusal" in next) return refuse(response, next.refusal);
    requests.push(parsedBody);
    for (const item of next) if (item.type === "reasoning") issued.add(JSON.stringify(item));
    response.writeHead(200, { "content-type": "text/event-stream" });
    const output = parsedBody.include === undefined ? next.map(withoutEncrypted) : next;
    response.end(eventsOf(output, parsedBody.model).map(toSse).join(""));
  };
  const server = createServer((request, response) => {
    if (request.method !== "POST" || request.url !== "/v1/responses") {
      response.writeHead(404).end();
      return;
    }
    const chunks: Buffer[] = [];
    request.on("data", (chunk: Buffer) => chunks.push(chunk));
    request.on("end", () => serve(Buffer.concat(chunks).toString("utf8"), response));
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`,
    requests,
    refusals,
    answer: (...next) => void answers.push(...next),
    stop: () => {
      server.closeAllConnections();
      server.close();
    },
  };
}

/** Why the items of the model that came back are refused; undefined: they are not. */
function problemOf(input: readonly ResponsesItem[], issued: ReadonlySet<string>): string | undefined {
  for (const [index, item] of input.entries()) {
    const { type, call_id: callId = "" } = item;
    if (type === "reasoning" && !issued.has(JSON.stringify(item))) {
      return "The encrypted content could not be verified. Reason: Encrypted content could not be decrypted or parsed.";
    }
    const next = input[index + 1]?.type;
    if (type === "reasoning" && (next === undefined || next === "function_call_output")) {
      return "Item of type 'reasoning' was provided without its required following item.";
    }
    if (
      type === "function_call_output" &&
      !input.some((each) => each.type === "function_call" && each.call_id === callId)
    ) {
      return `No tool call found for function call output with call_id ${callId}.`;
    }
    if (
      type === "function_call" &&
      !input.some((each) => each.type === "function_call_output" && each.call_id === callId)
    ) {
      return `No tool output found for function call ${callId}.`;
    }
  }
  return undefined;
}

function withoutEncrypted(item: ResponsesItem): ResponsesItem {
  return item.type === "reasoning" ? { ...item, encrypted_content: null } : item;
}

/** The events of a stream; texts and arguments come in pieces of four characters. */
function eventsOf(output: readonly ResponsesItem[], model: string): Record<string, unknown>[] {
  const response = { id: "resp_1", object: "response", model, store: false };
  const usage = {
    input_tokens: 120,
    input_tokens_details: { cached_tokens: 100 },
    output_tokens: 30,
    output_tokens_details: { reasoning_tokens: 20 },
    total_tokens: 150,
  };
  return [
    { type: "response.created", response: { ...response, status: "in_progress", output: [] } },
    ...output.flatMap((item, index) => itemEvents(item, index)),
    { type: "response.completed", response: { ...response, status: "completed", output, usage } },
  ];
}

function itemEvents(item: ResponsesItem, index: number): Record<string, unknown>[] {
  const at = { item_id: item["id"], output_index: index };
  const begun = { ...item, status: "in_progress", content: [], summary: [], arguments: "", encrypted_content: null };
  const deltas = (type: string, text: unknown) =>
    ((typeof text === "string" ? text : "").match(/[^]{1,4}/g) ?? []).map((delta) => ({ type, ...at, delta }));
  const first = (parts: unknown) => (Array.isArray(parts) ? (parts as { text?: string }[])[0]?.text : undefined);
  return [
    { type: "response.output_item.added", output_index: index, item: begun },
    ...deltas("response.reasoning_summary_text.delta", first(item["summary"])),
    ...deltas("response.output_text.delta", first(item["content"])),
    ...deltas("response.function_call_arguments.delta", item["arguments"]),
    { type: "response.output_item.done", output_index: index, item },
  ];
}

function toSse(event: Record<string, unknown>): string {
  return `event: ${String(event["type"])}\ndata: ${JSON.stringify(event)}\n\n`;
}
