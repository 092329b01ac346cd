// One call that shows whether a model answers, and the search for model servers on this machine.

import { redactSecrets } from "@parley/chassis/settings";
import { defaultModel } from "@parley/contracts";
import { parseJson } from "@parley/kit";
import { z } from "zod";

import { reasonOf } from "../cluster/gateway.ts";
import { oneLine } from "../tables/format.ts";
import type { LocalServer, ModelAnswer } from "./models.ts";

/** `key_refused` and `unknown_model` can be corrected by another answer; `failed` may be temporary. */
export interface ModelTest {
  readonly outcome: "works" | "key_refused" | "unknown_model" | "failed";
  /** One sentence for people; empty for `works`. Never contains the key. */
  readonly text: string;
}

const works: ModelTest = { outcome: "works", text: "" };
const prompt = "Answer with one word: ready";
/** A local server may load the model first. */
const timeoutMs = 120_000;
const searchTimeoutMs = 1_500;
const maxDetailLength = 200;

/** Sends one short request to the model. Never rejects. */
export async function testModel(answer: ModelAnswer): Promise<ModelTest> {
  if (answer.provider === "rehearsal") return works;
  const { url, headers, body } = requestOf(answer);
  try {
    const response = await fetch(url, {
      method: "POST",
      headers: { "content-type": "application/json", ...headers },
      body: JSON.stringify(body),
      signal: AbortSignal.timeout(timeoutMs),
    });
    return judge(response.status, await response.text(), answer.key ?? "");
  } catch (error) {
    return { outcome: "failed", text: `${new URL(url).origin} cannot be reached: ${reasonOf(error)}.` };
  }
}

function requestOf(answer: Exclude<ModelAnswer, { provider: "rehearsal" }>) {
  const messages = [{ role: "user", content: prompt }];
  if (answer.provider === "anthropic") {
    return {
      url: `${answer.baseUrl}/v1/messages`,
      headers: { "x-api-key": answer.key, "anthropic-version": "2023-06-01" },
      body: { model: defaultModel, max_tokens: 16, messages },
    };
  }
  const { baseUrl, model } = answer;
  const isLocal = answer.provider === "local";
  const { key } = answer;
  return {
    url: `${baseUrl}/chat/completions`,
    headers: key === undefined ? {} : { authorization: `Bearer ${key}` },
    body: { model, messages, [isLocal ? "max_tokens" : "max_completion_tokens"]: 16 },
  };
}

const Failure = z.object({ error: z.union([z.string(), z.object({ message: z.string() })]) });

/** What an answer of a model's API means. `key` is removed from texts. */
export function judge(status: number, body: string, key: string): ModelTest {
  if (status >= 200 && status < 300) return works;
  const error = Failure.safeParse(parseJson(body)).data?.error;
  const full = typeof error === "string" ? error : (error?.message ?? body);
  const text = key === "" ? full : full.replaceAll(key, "[key]");
  const detail = oneLine(redactSecrets(text), maxDetailLength);
  const because = `${status}${detail === "" ? "" : `: ${detail}`}`;
  if (status === 401 || status === 403) {
    const what = key === "" ? "The server requires a key" : "The key was refused";
    return { outcome: "key_refused", text: `${what} (${because}).` };
  }
  if (status === 404) return { outcome: "unknown_model", text: `The server does not know this model (${because}).` };
  if (status === 429) return { outcome: "failed", text: `The account's limit or credit is used up (${because}).` };
  return { outcome: "failed", text: `The model did not answer (${because}).` };
}

const Models = z.object({ data: z.array(z.object({ id: z.string() })) });

export interface FoundServer extends LocalServer {
  readonly models: readonly string[];
}

/** The models of a server; null if it does not answer like a model server. */
export async function modelsAt(server: LocalServer): Promise<FoundServer | null> {
  try {
    const response = await fetch(`${server.baseUrl}/models`, { signal: AbortSignal.timeout(searchTimeoutMs) });
    const { data } = Models.parse(await response.json());
    return { ...server, models: data.map(({ id }) => id) };
  } catch {
    return null;
  }
}

/** Those of the servers that answer, in their order. */
export async function findServers(servers: readonly LocalServer[]): Promise<FoundServer[]> {
  return (await Promise.all(servers.map(modelsAt))).filter((server) => server !== null);
}
