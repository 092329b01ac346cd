// Webhooks: valid and invalid deliveries, on a real store.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { pollUntil } from "@parley/testing/until";
import { parseSettings } from "@parley/chassis";
import { webhookSchemes } from "@parley/contracts";
import { signWebhook } from "@parley/kit";
import { startTelegramPeer } from "@parley/testing";
import { disabledWebhooks, webhooksOf } from "../src/http/webhooks.ts";
import { githubHeaders, hookSecret, parleyHeaders, standardHeaders } from "./support/sign.ts";
import { startGatewayStack, type GatewayStack, type Replica } from "./support/stack.ts";

const telegram = await startTelegramPeer();
const settings = parseSettings(
  `
[webhooks.build]
secret_env = "PARLEY_CHANNEL_HOOK"
[webhooks.repo]
secret_env = "PARLEY_CHANNEL_HOOK"
signer = "github"
[webhooks.errors]
secret_env = "PARLEY_CHANNEL_HOOK"
signer = "sentry"
[webhooks.pay]
secret_env = "PARLEY_CHANNEL_HOOK"
signer = "standard"
[channels.telegram.main]
token_env = "PARLEY_CHANNEL_TELEGRAM"
api_root = "${telegram.url}"
[webhooks.told]
secret_env = "PARLEY_CHANNEL_HOOK"
signer = "simple"
format = "text"
reply_to = { channel = "telegram", account = "main", conversation = "42" }
[webhooks.added]
secret_env = "PARLEY_CHANNEL_HOOK"
signer = "simple"
reply_to = { channel = "telegram", account = "added", conversation = "42" }
[webhooks.each]
secret_env = "PARLEY_CHANNEL_HOOK"
signer = "github"
target = "new"
[webhooks.into]
secret_env = "PARLEY_CHANNEL_HOOK"
target = "session:telegram:main:42"
`,
  "parley.toml",
);
const secrets = new Map([
  ["PARLEY_CHANNEL_HOOK", hookSecret],
  ["PARLEY_CHANNEL_TELEGRAM", telegram.token],
]);

let stack: GatewayStack;
let gateway: Replica;

before(async () => {
  stack = await startGatewayStack();
  gateway = await stack.gateway({ config: { settings, channelSecrets: secrets } });
});
after(async () => {
  await stack[Symbol.asyncDispose]();
  await telegram.close();
});

async function deliver(id: string, body: string, headers: Record<string, string>, method = "POST") {
  const response = await fetch(`${gateway.url}/hooks/${id}`, {
    method,
    headers: { "content-type": "application/json", ...headers },
    ...(method === "GET" ? {} : { body }),
  });
  const answer = (await response.json()) as {
    messageId?: string;
    sessionId?: string;
    duplicate?: boolean;
    error?: { code: string; message: string };
  };
  return { status: response.status, ...answer };
}

// design: 000.30, 000.30b
test("stores a signed delivery as a formatted message in its own session", async () => {
  const body = '{"id":12345678901234567890,"ok":true}';
  const kept = await deliver("build", body, parleyHeaders(body, { id: "d-1" }));
  assert.equal(kept.status, 202);
  const { session } = await gateway.json<{ session: { key: string } }>(`/api/sessions/${kept.sessionId ?? ""}`);
  assert.equal(session.key, "hook:build:build");
  const readable = '[webhook:build] {\n  "id": 12345678901234567890,\n  "ok": true\n}';
  const message = await pollUntil(async () => {
    const found = await gateway.json<{ state: string; turn: { text: string } }>(
      `/api/messages/${kept.messageId ?? ""}`,
    );
    return found.state === "done" && found;
  }, "the answer");
  assert.equal(message.turn.text, `You said: ${readable}`);
});

const keyOf = async (sessionId = "") =>
  (await gateway.json<{ session: { key: string } }>(`/api/sessions/${sessionId}`)).session.key;

// design: 000.30b
test("stores a body with X-Webhook-Signature as it is, and delivers the answer to reply_to", async () => {
  const body = '{"deployed": true}';
  const headers = signWebhook(webhookSchemes.simple, hookSecret, { id: "s-1", body, atMs: Date.now() });
  const kept = await deliver("told", body, headers);
  assert.equal(kept.status, 202);
  const [answer] = await telegram.untilSent(1);
  assert.deepEqual([answer?.chatId, answer?.text], [42, `You said: [webhook:told] ${body}`]);
});

test("stores a body without an id once in ten minutes, whenever they begin", async (context) => {
  const tenMinutesMs = 10 * 60 * 1_000;
  const body = "restarted";
  const { "x-webhook-id": _, ...headers } = signWebhook(webhookSchemes.simple, hookSecret, { id: "", body, atMs: 0 });
  const next = Math.ceil(Date.now() / tenMinutesMs) * tenMinutesMs;
  const clock = context.mock.method(Date, "now", () => next - 1);
  const first = await deliver("told", body, headers);
  clock.mock.mockImplementation(() => next);
  const second = await deliver("told", body, headers);
  assert.deepEqual([first.duplicate, second.duplicate], [false, true]);
  assert.equal(second.messageId, first.messageId);
});

test("keeps each delivery in a conversation of its own, or in the session that target names", async () => {
  const deliverIssue = (number: number, id: string) => {
    const body = JSON.stringify({
      action: "opened",
      issue: { number, title: "Slow" },
      repository: { full_name: "a/b" },
    });
    return deliver("each", body, { ...githubHeaders(body, id), "x-github-event": "issues" });
  };
  const [one, two] = [await deliverIssue(1, "e-1"), await deliverIssue(2, "e-2")];
  assert.equal((await deliverIssue(2, "e-2")).duplicate, true);
  assert.deepEqual(
    [await keyOf(one.sessionId), await keyOf(two.sessionId)],
    ["hook:each:each/e-1", "hook:each:each/e-2"],
  );
  const into = await deliver("into", "hello", parleyHeaders("hello", { id: "i-1" }));
  assert.equal(await keyOf(into.sessionId), "telegram:main:42");
  const described = "[webhook:each] GitHub: issues opened in a/b\n#1 Slow";
  while (!stack.agent.heard.includes(described)) await new Promise((resolve) => setTimeout(resolve, 20));
});

test("treats a redelivery as the same message, with and without a delivery id", async () => {
  const body = '{"n":1}';
  const first = await deliver("build", body, parleyHeaders(body, { id: "again" }));
  const second = await deliver("build", body, parleyHeaders(body, { id: "again" }));
  assert.deepEqual([first.duplicate, second.duplicate], [false, true]);
  assert.equal(second.messageId, first.messageId);
  const { "x-github-delivery": _, ...nameless } = githubHeaders(body, "");
  assert.equal((await deliver("repo", body, nameless)).duplicate, false);
  assert.equal((await deliver("repo", body, nameless)).duplicate, true);
});

test("treats a replay of GitHub's or Sentry's signed body under another id as the same message", async () => {
  const body = '{"action":"opened","issue":{"number":7}}';
  const first = await deliver("repo", body, githubHeaders(body, "gh-original"));
  const replays = await Promise.all(["a", "b"].map((id) => deliver("repo", body, githubHeaders(body, `gh-${id}`))));
  assert.deepEqual(
    replays.map(({ status, duplicate, messageId }) => [status, duplicate, messageId]),
    [1, 2].map(() => [202, true, first.messageId]),
  );
  // The first delivery arrives several times at once.
  const other = '{"action":"closed","issue":{"number":7}}';
  const racing = await Promise.all(["c", "d", "e"].map((id) => deliver("each", other, githubHeaders(other, id))));
  assert.equal(racing.filter(({ duplicate }) => duplicate === false).length, 1);
  assert.equal(new Set(racing.map(({ messageId }) => messageId)).size, 1);
  const alert = '{"action":"created","data":{"issue":{"title":"Slow"}}}';
  const sentry = (id: string) =>
    deliver("errors", alert, signWebhook(webhookSchemes.sentry, hookSecret, { id, body: alert, atMs: Date.now() }));
  assert.deepEqual([(await sentry("s-1")).duplicate, (await sentry("s-2")).duplicate], [false, true]);
  assert.equal((await deliver("repo", `${body} `, githubHeaders(`${body} `, "gh-new"))).duplicate, false);
});

test("treats a signed delivery with a known id but a different body as a duplicate", async () => {
  const first = await deliver("build", "one", parleyHeaders("one", { id: "twice" }));
  const second = await deliver("build", "two", parleyHeaders("two", { id: "twice" }));
  assert.deepEqual([second.status, second.duplicate, second.messageId], [202, true, first.messageId]);
});

test("accepts signatures of GitHub and Standard Webhooks", async () => {
  const body = "not json, but signed";
  assert.equal((await deliver("repo", body, githubHeaders(body, "gh-1"))).status, 202);
  assert.equal((await deliver("repo", body, githubHeaders(body, "gh-1"))).duplicate, true);
  assert.equal((await deliver("pay", body, standardHeaders(body, "msg_1"))).status, 202);
  assert.equal((await deliver("pay", body, standardHeaders(body, "msg_1"))).duplicate, true);
});

// design: 000.30
test("refuses invalid deliveries with a reason, stores nothing, and accepts later valid ones", async () => {
  const body = '{"evil":true}';
  const good = parleyHeaders(body);
  assert.equal((await deliver("nothing", body, good)).status, 404);
  const wrongMethod = await deliver("build", body, good, "GET");
  assert.deepEqual([wrongMethod.status, wrongMethod.error?.code], [405, "method_not_allowed"]);
  assert.equal((await deliver("build", body, {})).status, 401);
  assert.equal((await deliver("build", `${body} `, good)).status, 401);
  const elsewhere = await deliver("build", body, { ...good, "x-parley-delivery": "delivery-2" });
  assert.deepEqual([elsewhere.status, elsewhere.error?.code], [401, "bad_signature"]);
  assert.equal((await deliver("build", body, parleyHeaders(body, { secret: "another" }))).status, 401);
  assert.equal((await deliver("build", body, { ...good, "x-parley-signature": "sha256=zz" })).status, 401);
  const replayed = await deliver("build", body, parleyHeaders(body, { atMs: Date.now() - 6 * 60_000 }));
  assert.deepEqual([replayed.status, /5 minutes/.test(replayed.error?.message ?? "")], [401, true]);
  assert.equal((await deliver("build", body, parleyHeaders(body, { atMs: Date.now() + 6 * 60_000 }))).status, 401);
  assert.equal((await deliver("pay", body, standardHeaders(body, "x", { atMs: Date.now() - 6 * 60_000 }))).status, 401);
  assert.equal((await deliver("pay", body, { ...standardHeaders(body, "x"), "webhook-id": "y" })).status, 401);
  const huge = "x".repeat(257 * 1024);
  assert.equal((await deliver("build", huge, parleyHeaders(huge))).status, 413);
  const escaped = "\u0001".repeat(100 * 1024);
  const tooLarge = await deliver("build", escaped, parleyHeaders(escaped));
  assert.deepEqual([tooLarge.status, tooLarge.error?.code], [413, "message_too_large"]);
  assert.ok(!stack.agent.heard.some((said) => said.includes("evil") || said.length > 10_000));
  assert.equal((await deliver("build", "fine", parleyHeaders("fine"))).status, 202);
});

test("disables a hook without a secret", () => {
  assert.equal(webhooksOf(settings, new Map()).get("build")?.secret, null);
  const [first] = disabledWebhooks(settings, new Map());
  assert.equal(first?.name, "hook:build");
  assert.match(first?.reason ?? "", /\[webhooks\.build\].*PARLEY_CHANNEL_HOOK/);
});

test("refuses deliveries until the account of reply_to exists, and answers there when it was added", async () => {
  const send = (body: string) =>
    deliver("added", body, signWebhook(webhookSchemes.simple, hookSecret, { id: body, body, atMs: Date.now() }));
  const refused = await send("first");
  assert.deepEqual([refused.status, refused.error?.code], [503, "hook_disabled"]);
  assert.match(refused.error?.message ?? "", /reply_to: account telegram:added is not configured; add it with/);
  const account = { channel: "telegram", account: "added", unverified: true };
  const variables = { token_env: "PARLEY_CHANNEL_TELEGRAM", api_root: telegram.url };
  const added = await gateway.call("/api/channels", { body: { ...account, settings: variables } });
  assert.equal(added.status, 200, await added.text());
  const count = telegram.sent.length;
  assert.equal((await send("second")).status, 202);
  assert.match((await telegram.untilSent(count + 1)).at(-1)?.text ?? "", /second/);
});
