// Limits of people on a real cluster with two gateways and two stores: who is refused, what they are told, and what the owner sees.
import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { after, before, test } from "node:test";
import { Cleanup, startTelegramPeer, startTestCluster, type TelegramPeer, type TestCluster } from "@parley/testing";
import { z } from "zod";

const cleanup = new Cleanup();
let cluster: TestCluster;
let telegram: TelegramPeer;

before(async () => {
  telegram = await startTelegramPeer();
  cleanup.add(() => telegram.close());
  cluster = await startTestCluster(cleanup, {
    processes: [],
    replicas: { "channel-gateway": 2, store: 2 },
    settings: `
[session]
policy = "per_conversation"
[queue]
mode = "queue"
[people.limits.guest]
turns_per_day = 2
[people.limits.token]
messages_per_minute = 1
[channels.telegram.main]
token_env = "PARLEY_CHANNEL_TELEGRAM"
api_root = "${telegram.url}"
owners = ["1"]
dm_policy = "open"
`,
    env: { "channel-gateway": { PARLEY_CHANNEL_TELEGRAM: telegram.token } },
  });
});
after(() => cleanup[Symbol.asyncDispose]());

async function call(path: string, body?: object, { token = cluster.token, replica = 0, key = randomUUID() } = {}) {
  return fetch(`${cluster.httpUrls[replica]}${path}`, {
    method: body === undefined ? "GET" : "POST",
    headers: { authorization: `Bearer ${token}`, "content-type": "application/json", "idempotency-key": key },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
}

const textsTo = (chat: number) => telegram.sent.filter(({ chatId }) => Number(chatId) === chat).map(({ text }) => text);

const untilTexts = (chat: number, count: number) =>
  telegram.until(`${count} texts to ${chat}`, () => (textsTo(chat).length >= count ? textsTo(chat) : null));

const Limits = z.object({
  roles: z.object({ guest: z.object({ turnsPerDay: z.number() }) }),
  people: z.array(
    z.object({
      contactId: z.string(),
      own: z.object({ turnsPerDay: z.number().nullable() }),
      today: z.object({ turns: z.number(), refused: z.number() }),
    }),
  ),
});
const person = { channel: "telegram", account: "main", contactId: "5" };

async function limitsOf(contactId: string) {
  const { roles, people } = Limits.parse(await (await call("/api/people/limits")).json());
  return { roles, of: people.find((each) => each.contactId === contactId) };
}

test("refuses a guest over the limit, tells them once, and lets the owner raise it", async () => {
  for (let n = 1; n <= 4; n += 1) telegram.say(`say: guest ${n}.`, { from: 5 });
  const refusal = "Message not accepted: you have used up your 2 requests of today; try again after midnight UTC.";
  assert.deepEqual((await untilTexts(5, 3)).toSorted(), [refusal, "guest 1.", "guest 2."]);
  for (let n = 1; n <= 4; n += 1) telegram.say(`say: owner ${n}.`, { from: 1 });
  assert.equal((await untilTexts(1, 4)).length, 4);
  const { roles, of } = await limitsOf("5");
  assert.deepEqual([roles.guest.turnsPerDay, of?.own.turnsPerDay, of?.today], [2, null, { turns: 2, refused: 2 }]);
  assert.equal((await limitsOf("1")).of, undefined);

  const changed = await call("/api/people/limit", { ...person, turnsPerDay: 3 }, { replica: 1 });
  assert.equal(changed.status, 200, await changed.clone().text());
  telegram.say("say: guest 5.", { from: 5 });
  telegram.say("say: guest 6.", { from: 5 });
  const texts = await untilTexts(5, 5);
  assert.deepEqual(texts.slice(3).toSorted(), [refusal.replace("2 requests", "3 requests"), "guest 5."]);
  assert.deepEqual((await limitsOf("5")).of?.today, { turns: 3, refused: 3 });
  const audit = await (await call("/api/audit?limit=100&action=people.limit")).text();
  assert.match(audit, /"actor":"5 \(telegram:main\)","action":"people.limited"/);
  assert.match(audit, /"action":"people.limit","target":{[^}]*"turnsPerDay":3/);
});

test("answers a named token over its limit with 429 and Retry-After, on every replica", async () => {
  const created = await call("/api/tokens", { name: "ci", scopes: ["talk"] });
  const { token } = z.object({ token: z.string() }).parse(await created.json());
  const ask = (text: string) => ({ model: "parley", messages: [{ role: "user", content: text }] });
  const key = randomUUID();
  const first = await call("/v1/chat/completions", ask("say: first."), { token, key });
  assert.equal(first.status, 200);
  const second = await call("/v1/chat/completions", ask("say: second."), { token, replica: 1 });
  assert.equal(second.status, 429);
  const seconds = Number(second.headers.get("retry-after"));
  assert.ok(seconds >= 1 && seconds <= 60, String(seconds));
  assert.match(
    await second.text(),
    /"message":"Message not accepted: .*"type":"rate_limit_error".*"code":"over_limit"/,
  );
  const third = await call("/api/messages", { conversation: "x", text: "say: third." }, { token });
  assert.deepEqual([third.status, third.headers.has("retry-after")], [429, true]);
  // The key of the stored message still finds its answer.
  const again = await call("/v1/chat/completions", ask("say: first."), { token, key, replica: 1 });
  assert.match(await again.text(), /first\./);
  assert.equal(again.status, 200);
  for (let n = 0; n < 3; n += 1) assert.equal((await call("/v1/chat/completions", ask("say: owner."))).status, 200);
});
