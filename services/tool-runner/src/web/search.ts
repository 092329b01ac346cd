// Queries a search provider, retries while it is overloaded, and normalises its response. This is the only layer that retries.
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

const tries = 3;
const firstPauseMs = 500;
/** A longer `retry-after` ends the search instead of delaying it. */
const longestPauseMs = 5_000;
const attemptMs = 15_000;

/** Throws SearchError, or the signal's reason. */
export async function searchWeb(
  provider: SearchProvider,
  query: string,
  count: number,
  signal: AbortSignal,
): Promise<SearchHit[]> {
  for (let attempt = 1; ; attempt++) {
    const answer = await ask(provider, query, count, signal);
    if (answer.status >= 200 && answer.status < 300) return hitsOf(provider.name, answer.body).slice(0, count);
    const again = answer.status === 0 || answer.status === 429 || answer.status >= 500;
    if (!again || attempt === tries) {
      const what = answer.status === 0 ? "could not be reached" : `returned status ${answer.status}`;
      throw new SearchError(`The search provider (${provider.name}) ${what}${again ? ` in ${tries} attempts` : ""}.`);
    }
    const pauseMs = Math.max(backoffMs(attempt, { firstMs: firstPauseMs, maxMs: longestPauseMs }), answer.retryAfterMs);
    if (pauseMs > longestPauseMs) {
      throw new SearchError(
        `The search provider (${provider.name}) is limiting requests: retry in ${Math.round(pauseMs / 1_000)} s.`,
      );
    }
    await delay(pauseMs, undefined, { signal });
  }
}

/** Status 0: no response. */
async function ask(provider: SearchProvider, query: string, count: number, signal: AbortSignal) {
  const { url, init } = requestOf(provider, query, count);
  try {
    const response = await fetch(url, {
      ...init,
      redirect: "error",
      signal: AbortSignal.any([signal, AbortSignal.timeout(attemptMs)]),
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

function requestOf(
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
const BraveAnswer = z.object({
  web: z.object({ results: z.array(z.object({ title: text, url: z.string(), description: text })) }).nullish(),
});
const ContentAnswer = z.object({ results: z.array(z.object({ title: text, url: z.string(), content: text })) });

function hitsOf(name: SearchProvider["name"], body: unknown): SearchHit[] {
  if (name === "brave") {
    const parsed = BraveAnswer.safeParse(body);
    if (!parsed.success) throw unreadable(name);
    return (parsed.data.web?.results ?? []).map((hit) => clean(hit.title, hit.url, hit.description));
  }
  const parsed = ContentAnswer.safeParse(body);
  if (!parsed.success) throw unreadable(name);
  return parsed.data.results.map((hit) => clean(hit.title, hit.url, hit.content));
}

function unreadable(name: string): SearchError {
  return new SearchError(`The search provider (${name}) returned an invalid response.`);
}

function clean(title: string | null | undefined, url: string, snippet: string | null | undefined): SearchHit {
  return { title: plainLine(title ?? "", 200), url: plainLine(url, 2_000), snippet: plainLine(snippet ?? "", 600) };
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

/** At most `maxCharacters` and an ellipsis. Removes the tags with which providers highlight matches. */
function plainLine(source: string, maxCharacters: number): string {
  const plain = source
    .replaceAll(/<\/?[a-z][^>]*>/gi, "")
    .replaceAll(/&(?:amp|lt|gt|quot|nbsp|#39|#x27);/g, (entity) => entities[entity] ?? entity);
  return oneLine(plain, maxCharacters + 1);
}
