// Metadata of a server of OpenAI's format: whether key, address and model are valid, and the model's context window.
import { z } from "zod";
import type { Probe } from "./window.ts";

export interface Server {
  /** Including `/v1`. */
  baseUrl: string;
  headers: { authorization?: string };
  model: string;
}

export function serverOf(options: { baseUrl: string; apiKey?: string | undefined; model: string }): Server {
  const { baseUrl, apiKey, model } = options;
  return { baseUrl, model, headers: apiKey === undefined ? {} : { authorization: `Bearer ${apiKey}` } };
}

const prepareTimeoutMs = 5_000;

const ModelList = z.object({ data: z.array(z.object({ id: z.string() })) });

/** The problem with the key, the address or the model's name, or null. */
export async function askNote(server: Server): Promise<string | null> {
  const { baseUrl, headers, model } = server;
  const { host } = new URL(baseUrl);
  try {
    const signal = AbortSignal.timeout(prepareTimeoutMs);
    const response = await fetch(endpoint(baseUrl, "models"), { headers, signal });
    const body = await response.text();
    if (response.status === 401 || response.status === 403) {
      return headers.authorization === undefined
        ? `${host} requires a key; set OPENAI_API_KEY`
        : `${host} rejected OPENAI_API_KEY; check the key`;
    }
    if (response.status === 404) return `${host} returned 404; is /v1 missing in OPENAI_BASE_URL?`;
    const list = ModelList.safeParse(JSON.parse(body));
    const ids = list.success ? list.data.data.map((model) => model.id) : [];
    // Ollama accepts a model without its tag, too.
    if (ids.length === 0 || ids.includes(model) || ids.includes(`${model}:latest`)) return null;
    const some = ids.slice(0, 5).join(", ");
    return `${host} does not list ${model}; it lists ${some}${ids.length > 5 ? ", …" : ""}`;
  } catch (error) {
    // The server responds but does not list models: the first call will show whether it works.
    if (error instanceof SyntaxError) return null;
    return `${host} does not respond; is the server running?`;
  }
}

/**
 * `base` resolves paths below the server's base address, `root` at its root, where some servers have their own
 * endpoints.
 */
export function askJson(server: Server, signal: AbortSignal): { base: Probe; root: Probe } {
  const ask = async (url: URL, body: unknown): Promise<unknown> => {
    const posted = { method: "POST", body: JSON.stringify(body) };
    const headers = { ...server.headers, "content-type": "application/json" };
    const response = await fetch(url, { headers, signal, ...(body === undefined ? {} : posted) });
    const text = await response.text();
    if (!response.ok) return undefined;
    try {
      return JSON.parse(text);
    } catch {
      return undefined;
    }
  };
  const root = new URL(server.baseUrl);
  root.pathname = root.pathname.replace(/\/v1\/*$/, "");
  return {
    base: (path, body) => ask(endpoint(server.baseUrl, path), body),
    root: (path, body) => ask(endpoint(root.href, path), body),
  };
}

export function endpoint(baseUrl: string, path: string): URL {
  const url = new URL(baseUrl);
  url.pathname = `${url.pathname.replace(/\/+$/, "")}/${path}`;
  return url;
}
