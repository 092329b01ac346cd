// Callers that wait for the answer to one input, one for each interface of a cluster, for tests that check who gets which answer.
import { randomUUID } from "node:crypto";
import { setTimeout as delay } from "node:timers/promises";
import { errorMessage, TurnSummarySchema } from "@parley/contracts";
import type { Cluster } from "@parley/local";
import { Client } from "pg";
import { z } from "zod";

export interface Call {
  /** The base URL of the gateway that receives the call. */
  url: string;
  token: string;
  text: string;
  /** The conversation. Without it the call has a session of its own. */
  conversation?: string | undefined;
  /** Idempotency key. Without it a call cannot be repeated. */
  key?: string | undefined;
  /** Ends the waiting; the call itself is still processed. */
  signal?: AbortSignal | undefined;
}

/** Resolves with the answer as the caller reads it. Rejects when the gateway refuses the call or the turn did not end normally. */
export type Caller = (call: Call) => Promise<string>;

const Completion = z.object({ choices: z.array(z.object({ message: z.object({ content: z.string() }) })).length(1) });
const Kept = z.object({ messageId: z.string() });
const State = z.object({ state: z.string(), turn: TurnSummarySchema.nullable() });

function post({ url, token, key, signal }: Call, path: string, body: object): Promise<Response> {
  const headers = {
    authorization: `Bearer ${token}`,
    "content-type": "application/json",
    ...(key === undefined ? {} : { "idempotency-key": key }),
  };
  return fetch(`${url}${path}`, { method: "POST", headers, body: JSON.stringify(body), signal: signal ?? null });
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
async function simpleChat(call: Call): Promise<string> {
  const body = await bodyOf(await post(call, "/v1/chat", { message: call.text, session_id: call.conversation }), 200);
  const events = body.split("\n\n").flatMap((frame) => {
    const match = /^event: (\w+)\ndata: (.*)$/.exec(frame);
    return match === null ? [] : [{ type: match[1], data: JSON.parse(match[2] ?? "null") as unknown }];
  });
  if (events.at(-1)?.type !== "done") throw new Error(`/v1/chat did not end with done: ${body.slice(-300)}`);
  return events.flatMap(({ type, data }) => (type === "token" ? [String(data)] : [])).join("");
}

/** POST /api/messages with `exclusive`, then GET /api/messages/:id until the turn has ended; again when the store was too slow (503). */
async function message(call: Call): Promise<string> {
  const { url, token, text, conversation, signal } = call;
  const reading = { headers: { authorization: `Bearer ${token}` }, signal: signal ?? null };
  const body = await bodyOf(await post(call, "/api/messages", { text, conversation, exclusive: true }), 202);
  const { messageId } = Kept.parse(JSON.parse(body));
  for (;;) {
    const response = await fetch(`${url}/api/messages/${messageId}`, reading);
    if (response.status === 503) await response.body?.cancel();
    else {
      const { turn } = State.parse(JSON.parse(await bodyOf(response, 200)));
      if (turn !== null && turn.state !== "running") return turn.text ?? "";
    }
    await delay(100);
  }
}

export const callers: readonly Caller[] = [completion, simpleChat, message];

/** A load of concurrent callers, and its result. */
export interface LoadAccount {
  /** Callers that got anything but the answer to their own input, with the text that they got. */
  wrong: string[];
  leadersKilled: number;
}

export interface LoadOptions {
  cluster: Cluster;
  /** Number of callers, spread over the interfaces, the gateways and both kinds of conversations. */
  callers: number;
  /** Number of asynchronous messages in the same conversations meanwhile. */
  others: number;
}

/** Number of shared conversations, whose callers wait for each other's turns. */
const sharedConversations = 6;
const tags = /tag-[0-9a-f]{8}/g;

/**
 * Starts all calls at once, kills the leader when a third of the answers have arrived, and resolves when every caller has its
 * answer. Each input makes the model answer a unique tag, so an answer with another caller's tag is wrong.
 */
export async function load({ cluster, callers: count, others }: LoadOptions): Promise<LoadAccount> {
  const { token, httpUrls } = cluster;
  let leadersKilled = 0;
  let answered = 0;
  const kill = async () => {
    leadersKilled += (await killLeader(cluster)) ? 1 : 0;
  };
  let killing: Promise<void> | undefined;
  const urlOf = (index: number) => httpUrls[index % httpUrls.length] ?? "";
  const one = async (index: number): Promise<string[]> => {
    const tag = `tag-${randomUUID().slice(0, 8)}`;
    const call = callers[index % callers.length] ?? completion;
    // Half of the callers name a conversation; half of these share a few conversations.
    const conversation = [undefined, `shared-${index % sharedConversations}`, undefined, `caller-${index}`][
      Math.floor(index / callers.length) % 4
    ];
    const answer = await call({ url: urlOf(index), token, text: `say: ${tag}`, conversation }).catch(
      (error: unknown) => `failed: ${errorMessage(error)}`,
    );
    answered += 1;
    if (answered >= count / 3) killing ??= kill();
    const found = new Set(answer.match(tags));
    return found.size === 1 && found.has(tag)
      ? []
      : [`caller ${index} (${conversation ?? "-"}): ${answer.slice(0, 200)}`];
  };
  const noise = async (index: number): Promise<void> => {
    const conversation = `shared-${index % sharedConversations}`;
    // The mode `reject` may refuse these.
    const body = { text: `say: nobody waits for ${index}`, conversation };
    const response = await post({ url: urlOf(index), token, text: "" }, "/api/messages", body);
    await response.body?.cancel();
  };
  const every = Math.max(1, Math.floor(count / Math.max(1, others)));
  const results = await Promise.all(
    Array.from({ length: count }, async (_, index) => {
      if (others > 0 && index % every === 0) await noise(index / every);
      return one(index);
    }),
  );
  await killing;
  return { wrong: results.flat(), leadersKilled };
}

/** Kills the leading agent-core. Returns false when none leads at the moment. */
async function killLeader(cluster: Cluster): Promise<boolean> {
  const client = new Client({ connectionString: cluster.databaseUrl });
  await client.connect();
  try {
    const { rows } = await client.query<{ holder: string | null }>(
      "SELECT holder FROM parley.leadership WHERE name = 'agent-core'",
    );
    const number = /^agent-core-(\d+)\//.exec(rows[0]?.holder ?? "")?.[1];
    if (number === undefined) return false;
    await cluster.kill("agent-core", Number(number), "SIGKILL");
    return true;
  } finally {
    await client.end();
  }
}
