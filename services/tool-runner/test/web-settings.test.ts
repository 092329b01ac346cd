// The web tools of a deployment by its settings.
import assert from "node:assert/strict";
import { test } from "node:test";
import { ParleySettingsSchema } from "@parley/contracts";
import { fetchOptions, searchProvider } from "../src/web/settings.ts";

const web = (settings: unknown) => ParleySettingsSchema.parse({ tools: { web: settings } }).tools.web;

test("allows no private address unless it is configured", () => {
  assert.deepEqual(fetchOptions(web({})), {
    allowPrivate: [],
    ports: [80, 443, 8080, 8443],
    maxBytes: 5_242_880,
    timeoutSeconds: 30,
  });
});

test("offers search only with a provider, its key and, for SearXNG, its URL", () => {
  const search = (settings: unknown, env: Record<string, string> = {}) =>
    searchProvider(web({ search: settings }).search, env);
  assert.equal(searchProvider(web({}).search, { BRAVE_API_KEY: "k" }).provider, null);
  assert.deepEqual(search({ provider: "brave" }), { provider: null, reason: "BRAVE_API_KEY is not set" });
  assert.deepEqual(search({ provider: "brave" }, { BRAVE_API_KEY: "k" }).provider, {
    name: "brave",
    key: "k",
    url: "https://api.search.brave.com",
  });
  assert.equal(search({ provider: "tavily", key_env: "MY_KEY" }, { TAVILY_API_KEY: "k" }).provider, null);
  assert.equal(search({ provider: "searxng" }).provider, null);
  assert.deepEqual(search({ provider: "searxng", url: "http://searx.local:8080/" }).provider, {
    name: "searxng",
    key: "",
    url: "http://searx.local:8080",
  });
});
