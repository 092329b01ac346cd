// Sign-in to the web console over HTTP: the page, one-time codes, the token, cookies and cross-site requests.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { globSync, readFileSync } from "node:fs";
import { gzipSync } from "node:zlib";
import { apiClient, Cleanup, startTestCluster, type TestCluster } from "@parley/testing";
import { z } from "zod";

const Settings = z.object({ settings: z.array(z.object({ key: z.string(), value: z.unknown(), origin: z.string() })) });

const cleanup = new Cleanup();
let cluster: TestCluster;

before(async () => {
  cluster = await startTestCluster(cleanup, {
    processes: [],
    replicas: { "channel-gateway": 2 },
    settings: '[queue]\nmode = "queue"\n',
  });
});
after(() => cleanup[Symbol.asyncDispose]());

const url = (replica = 0) => cluster.httpUrls[replica] ?? "";
const owner = () => ({ authorization: `Bearer ${cluster.token}` });

async function newCode(): Promise<string> {
  const response = await fetch(`${url()}/api/console/codes`, { method: "POST", headers: owner() });
  assert.equal(response.status, 200);
  return ((await response.json()) as { code: string }).code;
}

function signIn(body: object, { replica = 0, origin = url(replica) } = {}) {
  return fetch(`${url(replica)}/api/console/session`, {
    method: "POST",
    headers: { "content-type": "application/json", origin },
    body: JSON.stringify(body),
  });
}

async function cookieOf(response: Response): Promise<string> {
  assert.equal(response.status, 200, await response.clone().text());
  return response.headers.getSetCookie()[0]?.split(";")[0] ?? "";
}

test("serves the page without a token, with a policy that allows only its own files", async () => {
  const response = await fetch(`${url()}/`);
  assert.equal(response.status, 200);
  const policy = response.headers.get("content-security-policy") ?? "";
  assert.match(policy, /^default-src 'self';/);
  assert.doesNotMatch(policy, /unsafe|\*/);
  const page = await response.text();
  assert.doesNotMatch(page, /<script(?![^>]*\bsrc=)|<style|\son\w+=/i);
  const [, script] = /src="\.?(\/assets\/[^"]+\.js)"/.exec(page) ?? [];
  assert.ok(script !== undefined, page);
  const loaded = await fetch(`${url()}${script}`);
  assert.equal(loaded.status, 200);
  assert.match(loaded.headers.get("cache-control") ?? "", /immutable/);
  const missing = await fetch(`${url()}/assets/../../package.json`);
  assert.equal(missing.status, 404);
});

test("exchanges a one-time code for a cookie, once, at any replica", async () => {
  const code = await newCode();
  const response = await signIn({ code }, { replica: 1 });
  const attributes = response.headers.getSetCookie()[0] ?? "";
  assert.match(attributes, /HttpOnly; SameSite=Strict/);
  assert.doesNotMatch(attributes, new RegExp(cluster.token));
  const cookie = await cookieOf(response);
  const again = await signIn({ code });
  assert.equal(again.status, 401);
  const answer = await fetch(`${url(1)}/api/sessions`, { headers: { cookie, "sec-fetch-site": "same-origin" } });
  assert.equal(answer.status, 200);
});

test("signs in with the token, refuses a wrong one, and signs out", async () => {
  assert.equal((await signIn({ token: "not the token at all" })).status, 401);
  const cookie = await cookieOf(await signIn({ token: cluster.token }));
  const headers = { cookie, origin: url() };
  assert.equal((await fetch(`${url()}/api/commands`, { headers })).status, 200);
  const out = await fetch(`${url()}/api/console/session`, { method: "DELETE", headers });
  assert.equal(out.status, 204);
  assert.match(out.headers.getSetCookie()[0] ?? "", /Max-Age=0/);
  assert.equal((await fetch(`${url()}/api/commands`, { headers })).status, 401);
});

test("refuses the cookie for requests that come from elsewhere", async () => {
  const cookie = await cookieOf(await signIn({ token: cluster.token }));
  const post = (headers: Record<string, string>) =>
    fetch(`${url()}/api/messages`, {
      method: "POST",
      headers: { cookie, "content-type": "application/json", ...headers },
      body: JSON.stringify({ text: "say: no" }),
    });
  assert.equal((await post({ origin: "https://evil.example" })).status, 403);
  assert.equal((await post({})).status, 401);
  assert.equal((await post({ origin: url(), "sec-fetch-site": "same-site" })).status, 401);
  const image = await fetch(`${url()}/api/sessions`, { headers: { cookie, "sec-fetch-site": "cross-site" } });
  assert.equal(image.status, 401);
  assert.equal((await signIn({ token: cluster.token }, { origin: "https://evil.example" })).status, 403);
});

test("sends a message to the session that it names, also after its key was bound to another", async () => {
  const post = async (path: string, body: object) => {
    const headers = { ...owner(), "content-type": "application/json" };
    const response = await fetch(url() + path, { method: "POST", headers, body: JSON.stringify(body) });
    return { status: response.status, body: (await response.json()) as Record<string, unknown> };
  };
  const first = await post("/api/messages", { text: "say: one" });
  const { sessionId, messageId } = first.body;
  // A session without a finished turn counts as unused, and a new one is not opened.
  await apiClient([url()], cluster.token).settled(String(messageId));
  const found = await fetch(`${url()}/api/sessions/${String(sessionId)}`, { headers: owner() });
  const { session } = (await found.json()) as { session: { key: string } };
  const opened = await post("/api/sessions", { action: "new", route: session.key });
  assert.equal(opened.status, 200, JSON.stringify(opened.body));
  const other = await post("/api/messages", { text: "say: two" });
  assert.notEqual(other.body["sessionId"], sessionId);
  const back = await post("/api/messages", { text: "say: three", session: sessionId });
  assert.equal(back.status, 202);
  assert.equal(back.body["sessionId"], sessionId);
  const nowhere = await post("/api/messages", { text: "say: four", session: "no such session" });
  assert.equal(nowhere.status, 404);
});

test("answers with the settings and their origin", async () => {
  const get = async <S extends z.ZodType>(path: string, schema: S) => {
    const response = await fetch(url() + path, { headers: owner() });
    assert.equal(response.status, 200, path);
    return schema.parse(await response.json());
  };
  const { settings } = await get("/api/settings", Settings);
  const limit = settings.find(({ key }) => key === "session.policy");
  assert.equal(limit?.origin, "default");
  assert.ok(settings.some(({ key, origin }) => key === "queue.mode" && origin !== "default"));
});

const maxBytes = 120 * 1024;

test(`is at most ${maxBytes / 1024} KB gzipped, with everything it loads`, () => {
  const files = globSync("packages/console/dist/{index.html,assets/*}");
  assert.ok(files.length > 3);
  const bytes = files.reduce((sum, file) => sum + gzipSync(readFileSync(file), { level: 9 }).length, 0);
  assert.ok(bytes <= maxBytes, `${bytes} bytes`);
});

test("limits sign-in attempts from one address", async () => {
  const statuses = new Set<number>();
  for (let attempt = 0; attempt < 25; attempt++)
    statuses.add((await signIn({ token: `wrong token ${attempt}` })).status);
  assert.ok(statuses.has(429), [...statuses].join(", "));
});
