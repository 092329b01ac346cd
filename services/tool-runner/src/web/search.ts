// Queries a search provider, retries while it is overloaded, and normalises its response. Callers do not retry.
// The operator configures the URL, so it may be in the private network; redirects are not followed.
import { setTimeout as delay } from "node:timers/promises";
import { backoffMs, oneLine, parseJson } from "@parley/kit";
import { z } from "zod";

export interface SearchProvider {
  name: "brave" | "tavily" | "searxng";
  /** Empty for a provider without a key. */
  key: string;
  /** Without a trailing slash. */
  url: string;
}

export interface SearchHit {
  title: string;
  url: string;
  snippet: string;
}

/** The provider's public URL; SearXNG has none. */
export const publicSearchUrls = {
  brave: "https://api.search.brave.com",
  tavily: "https://api.tavily.com",
  searxng: undefined,
} as const;

/** A failed search; the message is for the model. */
export class SearchError extends Error {
  override readonly name = "SearchError";
}

const maxAttempts = 3;
const firstDelayMs = 500;
/** A longer `retry-after` ends the search instead of delaying it. */
const maxDelayMs = 5_000;
const attemptTimeoutMs = 15_000;

/** At most `count` hits. Throws SearchError, or the signal's reason. */
export async function searchWeb(
  provider: SearchProvider,
  query: string,
  count: number,
  signal: AbortSignal,
): Promise<SearchHit[]> {
  for (let attempt = 1; ; attempt++) {
    const response = await sendRequest(provider, query, count, signal);
    if (response.status >= 200 && response.status < 300) return parseHits(provider.name, response.body).slice(0, count);
    const isRetryable = response.status === 0 || response.status === 429 || response.status >= 500;
    if (!isRetryable || attempt === maxAttempts) {
      const what = response.status === 0 ? "could not be reached" : `returned status ${response.status}`;
      throw new SearchError(
        `The search provider (${provider.name}) ${what}${isRetryable ? ` in ${maxAttempts} attempts` : ""}.`,
      );
    }
    const delayMs = Math.max(backoffMs(attempt, { firstMs: firstDelayMs, maxMs: maxDelayMs }), response.retryAfterMs);
    if (delayMs > maxDelayMs) {
      throw new SearchError(
        `The search provider (${provider.name}) is limiting requests: retry in ${Math.round(delayMs / 1_000)} s.`,
      );
    }
    await delay(delayMs, undefined, { signal });
  }
}

/** The response; status 0: there was none. */
async function sendRequest(provider: SearchProvider, query: string, count: number, signal: AbortSignal) {
  const { url, init } = buildRequest(provider, query, count);
  try {
    const response = await fetch(url, {
      ...init,
      redirect: "error",
      signal: AbortSignal.any([signal, AbortSignal.timeout(attemptTimeoutMs)]),
    });
    const retryAfterMs = Number(response.headers.get("retry-after") ?? 0) * 1_000;
    // Invalid JSON is not retried: it would be the same response.
    const body = response.ok ? parseJson(await response.text()) : undefined;
    return { status: response.status, body, retryAfterMs: Number.isFinite(retryAfterMs) ? retryAfterMs : 0 };
  } catch {
    signal.throwIfAborted();
    return { status: 0, body: undefined, retryAfterMs: 0 };
  }
}

function buildRequest(
  { name, key, url }: SearchProvider,
  query: string,
  count: number,
): { url: string; init: RequestInit } {
  const json = { accept: "application/json" };
  if (name === "brave") {
    const parameters = new URLSearchParams({ q: query, count: String(count) });
    return {
      url: `${url}/res/v1/web/search?${parameters.toString()}`,
      init: { headers: { ...json, "x-subscription-token": key } },
    };
  }
  if (name === "tavily") {
    const headers = { ...json, "content-type": "application/json", authorization: `Bearer ${key}` };
    const body = JSON.stringify({ query, max_results: count });
    return { url: `${url}/search`, init: { method: "POST", headers, body } };
  }
  const parameters = new URLSearchParams({ q: query, format: "json" });
  const headers = key === "" ? json : { ...json, authorization: `Bearer ${key}` };
  return { url: `${url}/search?${parameters.toString()}`, init: { headers } };
}

const text = z.string().nullish();
const BraveResponse = z.object({
  web: z.object({ results: z.array(z.object({ title: text, url: z.string(), description: text })) }).nullish(),
});
/** Tavily and SearXNG. */
const ContentResponse = z.object({ results: z.array(z.object({ title: text, url: z.string(), content: text })) });

function parseHits(name: SearchProvider["name"], body: unknown): SearchHit[] {
  if (name === "brave") {
    const parsed = BraveResponse.safeParse(body);
    if (!parsed.success) throw invalidResponse(name);
    return (parsed.data.web?.results ?? []).map((hit) => normalizeHit(hit.title, hit.url, hit.description));
  }
  const parsed = ContentResponse.safeParse(body);
  if (!parsed.success) throw invalidResponse(name);
  return parsed.data.results.map((hit) => normalizeHit(hit.title, hit.url, hit.content));
}

function invalidResponse(name: string): SearchError {
  return new SearchError(`The search provider (${name}) returned an invalid response.`);
}

function normalizeHit(title: string | null | undefined, url: string, snippet: string | null | undefined): SearchHit {
  return {
    title: toPlainLine(title ?? "", 200),
    url: toPlainLine(url, 2_000),
    snippet: toPlainLine(snippet ?? "", 600),
  };
}

const entities: Record<string, string> = {
  "&amp;": "&",
  "&lt;": "<",
  "&gt;": ">",
  "&quot;": '"',
  "&#39;": "'",
  "&#x27;": "'",
  "&nbsp;": " ",
};

/** One line without the tags with which providers highlight matches. A longer text is cut after `maxCharacters` and ends with an ellipsis. */
function toPlainLine(source: string, maxCharacters: number): string {
  const plain = source
    .replaceAll(/<\/?[a-z][^>]*>/gi, "")
    .replaceAll(/&(?:amp|lt|gt|quot|nbsp|#39|#x27);/g, (entity) => entities[entity] ?? entity);
  return oneLine(plain, maxCharacters + 1);
}
