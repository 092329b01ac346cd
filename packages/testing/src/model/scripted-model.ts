// A model with Anthropic's wire format for tests: aimock answers as the last user message instructs, line by line, in the
// language of the rehearsal model (`tool:`, `then`, `say:`, `think:`), and fails where a `fail:` line says so.
import type { ChatCompletionRequest, ChatMessage, FixtureResponse } from "@copilotkit/aimock";

export interface ScriptedModel {
  url: string;
  /** The next calls fail: `status` before the stream, `cutAfterChunks` (at least 1) in the middle of it, `stallMs` by saying nothing. */
  failNext(fault: ModelFault): void;
  stop(): Promise<void>;
}

export type ModelFault = { status: keyof typeof errorTypes } | { cutAfterChunks: number } | { stallMs: number };

export interface ScriptedModelOptions {
  /** Milliseconds between two chunks of a stream. Default 0. */
  latencyMs?: number;
  /** Scripts by the text of a message, for messages that are to be read by people. Default: the message is the script. */
  scripts?: Readonly<Record<string, string>>;
}

const everything = { predicate: () => true, endpoint: "chat" as const };

export async function startScriptedModel(options: ScriptedModelOptions = {}): Promise<ScriptedModel> {
  // Most test processes need no model, and the library takes 0.15 s of CPU time to load.
  const { LLMock } = await import("@copilotkit/aimock");
  const mock = new LLMock({
    port: 0,
    chunkSize: 12,
    ...(options.latencyMs === undefined ? {} : { latency: options.latencyMs }),
  });
  const { scripts = {} } = options;
  const answer = (request: ChatCompletionRequest) => follow(request, scripts);
  const faults: ModelFault[] = [];
  const taken = new WeakMap<ChatCompletionRequest, ModelFault | undefined>();
  const faultOf = (request: ChatCompletionRequest) => {
    if (!taken.has(request)) taken.set(request, faults.shift());
    return taken.get(request);
  };
  const faulty = (matches: (fault: ModelFault) => boolean) => ({
    endpoint: "chat" as const,
    predicate: (request: ChatCompletionRequest) => {
      const fault = faultOf(request);
      return fault !== undefined && matches(fault);
    },
  });
  mock.addFixture({
    match: faulty((fault) => "status" in fault),
    response: (request) => {
      const fault = taken.get(request);
      const status = fault !== undefined && "status" in fault ? fault.status : 500;
      return { error: { message: `scripted ${status}`, type: errorTypes[status] }, status };
    },
  });
  mock.addFixture({ match: faulty((fault) => "stallMs" in fault), response: answer, latency: 600_000 });
  mock.addFixture({ match: everything, response: answer });
  await mock.start();
  return {
    url: mock.url,
    failNext: (fault) => {
      // The number of chunks is a property of the fixture.
      if ("cutAfterChunks" in fault) {
        const match = faulty((each) => each === fault);
        mock.prependFixture({ match, response: answer, truncateAfterChunks: fault.cutAfterChunks, chunkSize: 4 });
      }
      faults.push(fault);
    },
    stop: () => mock.stop(),
  };
}

const errorTypes = {
  400: "invalid_request_error",
  401: "authentication_error",
  413: "request_too_large",
  429: "rate_limit_error",
  500: "api_error",
  529: "overloaded_error",
} as const;

let callCounter = 0;

function follow(request: ChatCompletionRequest, scripts: Readonly<Record<string, string>>): FixtureResponse {
  const start = request.messages.findLastIndex((message) => message.role === "user" && textOf(message) !== "");
  const text = textOf(request.messages[start]);
  const lines = (scripts[text.trim()] ?? text).split("\n");
  const done = request.messages.slice(start + 1).filter((message) => message.role === "assistant").length;
  const rounds: string[][] = [[]];
  for (const line of lines) {
    if (line.trim() === "then") rounds.push([]);
    else rounds.at(-1)?.push(line);
  }
  const round = rounds[done] ?? [];
  const values = (verb: string) =>
    round.flatMap((line) => (line.startsWith(`${verb}:`) ? [line.slice(verb.length + 1).trim()] : []));
  const toolCalls = values("tool").map((call) => {
    const space = call.indexOf(" ");
    callCounter += 1;
    return {
      id: `toolu_${callCounter}`,
      name: space < 0 ? call : call.slice(0, space),
      arguments: space < 0 ? "{}" : call.slice(space + 1),
    };
  });
  const reasoning = values("think")[0];
  const content = values("say").join("\n");
  const thought =
    reasoning === undefined ? {} : { reasoning, reasoningSignature: Buffer.from(reasoning).toString("base64") };
  const usage = { usage: { input_tokens: 100, output_tokens: 10 } };
  if (toolCalls.length > 0) return { toolCalls, ...(content === "" ? {} : { content }), ...thought, ...usage };
  return { content: content === "" ? `answer to: ${lines[0] ?? ""}` : content, ...thought, ...usage };
}

function textOf(message: ChatMessage | undefined): string {
  if (message === undefined || message.content === null) return "";
  const text =
    typeof message.content === "string"
      ? message.content
      : message.content.flatMap((part) => (part.type === "text" ? [part.text ?? ""] : [])).join("");
  // The newest text of a person: the loop merges consecutive inputs into one message, each below a line with its time.
  const [words = ""] = (text.split(headingLine).at(-1) ?? "").split(loopNote);
  return words;
}

const headingLine = /\[[A-Z][a-z]{2} \d{4}-\d{2}-\d{2} [^\]\n]*\]\n/;
/** The notes that the loop appends after an answer. */
const loopNote = /\[(?:Cut off:|Nothing was said:|Your last answer was empty:|A hook wants|The same call|Memory:)/;
