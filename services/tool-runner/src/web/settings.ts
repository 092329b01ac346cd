// Converts the web settings into options of the web tools. Pure.
import type { SearchSettings, WebSettings } from "@parley/contracts";
import type { Resolver } from "../network/target.ts";
import { publicSearchUrls, type SearchProvider } from "./search.ts";

export interface WebFetchOptions {
  /** Hosts, addresses or ranges of the private network that may be fetched from. */
  allowPrivate: readonly string[];
  ports: readonly number[];
  maxBytes: number;
  timeoutSeconds: number;
  resolve: Resolver;
}

export function fetchOptions(web: WebSettings): Omit<WebFetchOptions, "resolve"> {
  return {
    allowPrivate: web.allow_private,
    ports: web.ports,
    maxBytes: web.max_bytes,
    timeoutSeconds: web.timeout_seconds,
  };
}

const keyNames = { brave: "BRAVE_API_KEY", tavily: "TAVILY_API_KEY", searxng: undefined } as const;

/** The usable provider, or the reason why there is none. */
export function searchProvider(
  settings: SearchSettings | undefined,
  env: Readonly<Record<string, string | undefined>>,
): { provider: SearchProvider } | { provider: null; reason: string } {
  if (settings === undefined) return { provider: null, reason: "no provider is configured under [tools.web.search]" };
  const { provider: name } = settings;
  const keyName = settings.key_env ?? keyNames[name];
  const key = keyName === undefined ? "" : (env[keyName] ?? "");
  if (keyName !== undefined && key === "") return { provider: null, reason: `${keyName} is not set` };
  const url = settings.url ?? publicSearchUrls[name];
  if (url === undefined) return { provider: null, reason: `${name} needs a url under [tools.web.search]` };
  return { provider: { name, key, url: url.replace(/\/+$/, "") } };
}
