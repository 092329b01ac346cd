// A minimal server with Anthropic's streaming format, so that the model's own time is close to zero and known:
// the same run also measures a bare call to it. `rounds: N` in the last text requests N tool calls before the answer;
// `stream: N` answers with N tokens, 100 a second.
import { createServer, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";

export interface FakeModel {
  url: string;
  /** Resolves with the time (performance.now) at which a client disconnects from the next endless stream. */
  nextCut(): Promise<number>;
  /** The body of the last request. */
  readonly lastBody: string;
  close(): void;
}

interface WireMessage {
  role: string;
  content: { type: string; text?: string }[];
}

const event = (data: { type: string }) => `event: ${data.type}\ndata: ${JSON.stringify(data)}\n\n`;

export async function startFakeModel(): Promise<FakeModel> {
  const cuts: ((at: number) => void)[] = [];
  let lastBody = "";
  const server = createServer((incoming, response) => {
    if (incoming.method === "GET") {
      response.writeHead(404, { "content-type": "application/json" }).end("{}");
      return;
    }
    const chunks: Buffer[] = [];
    incoming.on("data", (chunk: Buffer) => chunks.push(chunk));
    incoming.on("end", () => {
      lastBody = Buffer.concat(chunks).toString();
      const { messages } = JSON.parse(lastBody) as { messages: WireMessage[] };
      response.writeHead(200, { "content-type": "text/event-stream" });
      answer(messages, response, cuts);
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    nextCut: () => new Promise((resolve) => cuts.push(resolve)),
    get lastBody() {
      return lastBody;
    },
    close: () => {
      server.close();
      server.closeAllConnections();
    },
  };
}

function answer(messages: WireMessage[], response: ServerResponse, cuts: ((at: number) => void)[]): void {
  const start = messages.findLastIndex(
    (message) => message.role === "user" && message.content.some((block) => block.type === "text"),
  );
  const text = messages[start]?.content.findLast((block) => block.type === "text")?.text ?? "";
  const done = messages.slice(start + 1).filter((message) => message.role === "assistant").length;
  response.write(
    event({
      type: "message_start",
      message: {
        id: "m",
        type: "message",
        role: "assistant",
        model: "bench",
        content: [],
        stop_reason: null,
        stop_sequence: null,
        usage: { input_tokens: 1, output_tokens: 1 },
      },
    } as never),
  );
  if (text === "endless") {
    response.write(block({ type: "text", text: "" }, { type: "text_delta", text: "…" }));
    response.on("close", () => cuts.shift()?.(performance.now()));
    return;
  }
  const tokens = Number(/^stream: (\d+)/.exec(text)?.[1] ?? 0);
  if (tokens > 0) return streamTokens(tokens, response);
  const rounds = Number(/^rounds: (\d+)/.exec(text)?.[1] ?? 0);
  const tool = done < rounds;
  const body = tool
    ? block(
        { type: "tool_use", id: `t${messages.length}`, name: "ls", input: {} },
        // Uses a different path each time, because the loop's guard ends a turn that repeats the same call.
        { type: "input_json_delta", partial_json: JSON.stringify({ path: `.${"/.".repeat(done)}` }) },
      )
    : block({ type: "text", text: "" }, { type: "text_delta", text: "An answer of a few words." });
  response.end(
    body +
      event({ type: "content_block_stop", index: 0 } as never) +
      event({
        type: "message_delta",
        delta: { stop_reason: tool ? "tool_use" : "end_turn", stop_sequence: null },
        usage: { output_tokens: 5 },
      } as never) +
      event({ type: "message_stop" }),
  );
}

const tokenEveryMs = 10;

/** Sends a token when its time has come, so that the rate does not depend on the timer's precision. */
function streamTokens(tokens: number, response: ServerResponse): void {
  const begin = performance.now();
  let sent = 0;
  response.write(event({ type: "content_block_start", index: 0, content_block: { type: "text", text: "" } } as never));
  const timer = setInterval(() => {
    const due = Math.min(tokens, Math.floor((performance.now() - begin) / tokenEveryMs));
    while (sent < due) {
      sent += 1;
      const text = sent % 40 === 0 ? `token${sent}.\n\n` : `token${sent} `;
      response.write(event({ type: "content_block_delta", index: 0, delta: { type: "text_delta", text } } as never));
    }
    if (sent < tokens) return;
    clearInterval(timer);
    response.end(
      event({ type: "content_block_stop", index: 0 } as never) +
        event({
          type: "message_delta",
          delta: { stop_reason: "end_turn", stop_sequence: null },
          usage: { output_tokens: tokens },
        } as never) +
        event({ type: "message_stop" }),
    );
  }, tokenEveryMs);
  response.on("close", () => clearInterval(timer));
}

function block(content: object, delta: object): string {
  return (
    event({ type: "content_block_start", index: 0, content_block: content } as never) +
    event({ type: "content_block_delta", index: 0, delta } as never)
  );
}
