// Callers that wait for the answer to one input, one for each way into a cluster, for tests that check who gets which answer.
import { setTimeout as delay } from "node:timers/promises";
import { TurnSummarySchema } from "@parley/contracts";
import { z } from "zod";

export interface Call {
  /** The base URL of the gateway that takes the call. */
  url: string;
  token: string;
  text: string;
  /** Names the conversation; without it the call is in a session of its own. */
  conversation?: string | undefined;
  /** Idempotency key. Without it a call cannot be repeated. */
  key?: string | undefined;
}

/** Resolves with the answer as the caller reads it. Rejects when the gateway refuses the call or the turn did not end well. */
export type Caller = (call: Call) => Promise<string>;

const Completion = z.object({ choices: z.array(z.object({ message: z.object({ content: z.string() }) })).length(1) });
const Kept = z.object({ messageId: z.string() });
const State = z.object({ state: z.string(), turn: TurnSummarySchema.nullable() });

function post({ url, token, key }: Call, path: string, body: object): Promise<Response> {
  const headers = {
    authorization: `Bearer ${token}`,
    "content-type": "application/json",
    ...(key === undefined ? {} : { "idempotency-key": key }),
  };
  return fetch(`${url}${path}`, { method: "POST", headers, body: JSON.stringify(body) });
}

async function bodyOf(response: Response, status: number): Promise<string> {
  const body = await response.text();
  if (response.status !== status) throw new Error(`${response.url}: ${response.status}: ${body}`);
  return body;
}

/** POST /v1/chat/completions. */
export async function completion(call: Call): Promise<string> {
  const messages = [{ role: "user", content: call.text }];
  const body = await bodyOf(await post(call, "/v1/chat/completions", { messages, user: call.conversation }), 200);
  return Completion.parse(JSON.parse(body)).choices[0]?.message.content ?? "";
}

/** POST /v1/chat: the texts of its `token` events. */
export async function simpleChat(call: Call): Promise<string> {
  const body = await bodyOf(await post(call, "/v1/chat", { message: call.text, session_id: call.conversation }), 200);
  const events = body.split("\n\n").flatMap((frame) => {
    const match = /^event: (\w+)\ndata: (.*)$/.exec(frame);
    return match === null ? [] : [{ type: match[1], data: JSON.parse(match[2] ?? "null") as unknown }];
  });
  if (events.at(-1)?.type !== "done") throw new Error(`/v1/chat did not end with done: ${body.slice(-300)}`);
  return events.flatMap(({ type, data }) => (type === "token" ? [String(data)] : [])).join("");
}

/** POST /api/messages with `exclusive`, then GET /api/messages/:id until the turn has ended. */
export async function message(call: Call): Promise<string> {
  const { url, token, text, conversation } = call;
  const body = await bodyOf(await post(call, "/api/messages", { text, conversation, exclusive: true }), 202);
  const { messageId } = Kept.parse(JSON.parse(body));
  for (;;) {
    const response = await fetch(`${url}/api/messages/${messageId}`, { headers: { authorization: `Bearer ${token}` } });
    const { turn } = State.parse(JSON.parse(await bodyOf(response, 200)));
    if (turn !== null && turn.state !== "running") return turn.text ?? "";
    await delay(100);
  }
}

export const callers: readonly Caller[] = [completion, simpleChat, message];
