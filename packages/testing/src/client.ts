// The cluster as its users see it, for tests: send a message, wait for the answer, look at turns.
import { randomUUID } from "node:crypto";
import { setTimeout as delay } from "node:timers/promises";
import { TurnSummarySchema, type TurnSummary } from "@parley/contracts";
import { z } from "zod";
import { pollPauseMs } from "./until.ts";

export interface ApiClient {
  /** Fetches with the token; the path begins with `/`. */
  fetch(path: string, init?: RequestInit): Promise<Response>;
  /** The answer to one message over the OpenAI-compatible API. Throws on every status but 200. */
  ask(text: string, conversation?: string): Promise<string>;
  /** Sends a message; an equal key is the same message. Retries while the cluster restarts. */
  post(text: string, options?: { conversation?: string; key?: string; mode?: string }): Promise<string>;
  /** The state of a message that was sent. */
  messageState(messageId: string): Promise<{ state: string; turn: TurnSummary | null }>;
  /** Resolves when the message's turn has ended. */
  settled(messageId: string, withinMs?: number): Promise<TurnSummary>;
}

const Completion = z.object({ choices: z.array(z.object({ message: z.object({ content: z.string() }) })).min(1) });
const Accepted = z.object({ messageId: z.string(), sessionId: z.string(), duplicate: z.boolean() });
const State = z.object({ state: z.string(), turn: TurnSummarySchema.nullable() });

export function apiClient(urls: readonly string[], token: string): ApiClient {
  let next = 0;
  const request = (path: string, init: RequestInit = {}) => {
    const url = urls[next++ % urls.length] ?? "";
    const headers = {
      authorization: `Bearer ${token}`,
      "content-type": "application/json",
      ...(init.headers as Record<string, string>),
    };
    return fetch(url + path, { ...init, headers });
  };
  /** Retries until a replica answers, because these tests kill gateways. */
  const persist = async (path: string, init: RequestInit, withinMs: number): Promise<Response> => {
    const startMs = performance.now();
    for (;;) {
      const response = await request(path, { ...init, signal: AbortSignal.timeout(5_000) }).catch(() => undefined);
      if (response !== undefined && response.status < 500) return response;
      await response?.body?.cancel();
      const waitedMs = performance.now() - startMs;
      if (waitedMs > withinMs)
        throw new Error(`${path}: no answer within ${withinMs} ms (last: ${response?.status ?? "none"})`);
      await delay(pollPauseMs(waitedMs));
    }
  };
  const messageState = async (messageId: string) => {
    const response = await persist(`/api/messages/${messageId}`, {}, 60_000);
    return State.parse(await response.json());
  };
  return {
    fetch: request,
    async ask(text, conversation = "test") {
      const response = await request("/v1/chat/completions", {
        method: "POST",
        body: JSON.stringify({ model: "parley", user: conversation, messages: [{ role: "user", content: text }] }),
      });
      const body = await response.text();
      if (response.status !== 200) throw new Error(`${response.status}: ${body}`);
      return Completion.parse(JSON.parse(body)).choices[0]?.message.content ?? "";
    },
    async post(text, { conversation = "test", key = randomUUID(), mode } = {}) {
      const init = {
        method: "POST",
        headers: { "idempotency-key": key },
        body: JSON.stringify({ conversation, text, mode }),
      };
      const response = await persist("/api/messages", init, 60_000);
      const body = await response.text();
      if (response.status !== 202) throw new Error(`${response.status}: ${body}`);
      return Accepted.parse(JSON.parse(body)).messageId;
    },
    messageState,
    async settled(messageId, withinMs = 60_000) {
      const startMs = performance.now();
      for (;;) {
        const { turn } = await messageState(messageId);
        if (turn !== null && turn.state !== "running") return turn;
        const waitedMs = performance.now() - startMs;
        if (waitedMs > withinMs) throw new Error(`message ${messageId} is not answered within ${withinMs} ms`);
        await delay(pollPauseMs(waitedMs));
      }
    },
  };
}
