// Operations on accounts and people, on a real store with two gateways and the strict fake of a platform.
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { pollUntil } from "@parley/testing/until";
import { parseSettings } from "@parley/chassis";
import type { accountLogs, operations, OutputOf } from "@parley/contracts";
import { startTelegramPeer, type TelegramPeer } from "@parley/testing";
import { bestReport, gatherReports } from "../src/operations/channels.ts";
import { startGatewayStack, type GatewayStack, type Replica } from "./support/stack.ts";

let stack: GatewayStack;
let peer: TelegramPeer;
let one: Replica;

type Account = operations.ChannelAccountStatus;

async function accounts(): Promise<Account[]> {
  return (await one.json<{ accounts: Account[] }>("/api/channels")).accounts;
}

/** Repeats the request until the account has the state. */
async function untilState(account: string, state: Account["state"]): Promise<Account> {
  return pollUntil(
    async () => (await accounts()).find((each) => each.account === account && each.state === state),
    `${account} to be ${state}`,
  );
}

async function heard(text: string): Promise<void> {
  const count = peer.sent.length;
  peer.say(text);
  await peer.untilSent(count + 1);
}

describe("accounts and people", () => {
  before(async () => {
    stack = await startGatewayStack();
    peer = await startTelegramPeer();
    const table = (name: string, variable: string) =>
      `[channels.telegram.${name}]\ntoken_env = "PARLEY_CHANNEL_${variable}"\napi_root = "${peer.url}"\nowners = ["42"]\ngroups = ["-500"]\n`;
    const settings = parseSettings(table("main", "T") + table("wrong", "WRONG") + table("missing", "MISSING"), "test");
    const channelSecrets = new Map([
      ["PARLEY_CHANNEL_T", peer.token],
      ["PARLEY_CHANNEL_WRONG", "7000002:AAWrongTokenOfNobodyForTestsOnly"],
    ]);
    // The lines about accounts begin at this level.
    const config = { settings, channelSecrets, logLevel: "warn" };
    one = await stack.gateway({ name: "one", config });
    await stack.gateway({ name: "two", config });
  });
  after(async () => {
    await peer.close();
    await stack[Symbol.asyncDispose]();
  });

  test("reports every account with its state and owner, and a wrong token", async () => {
    const wrong = await untilState("wrong", "disabled");
    assert.match(wrong.reason ?? "", /token refused by Telegram/);
    const missing = (await accounts()).find(({ account }) => account === "missing");
    assert.match(missing?.reason ?? "", /PARLEY_CHANNEL_MISSING is not set/);
    const main = await untilState("main", "connected");
    assert.equal(main.as, "@parley_bot");
    assert.match(main.owner ?? "", /^(?:one|two)\//);
    await heard("hello");
    const { lastInAt, lastOutAt } = await pollUntil(async () => {
      const found = await untilState("main", "connected");
      return found.waiting === 0 && found;
    }, "the end of sending");
    assert.ok(lastInAt !== null && lastOutAt !== null);
  });

  test("returns the log lines of all gateways about one account, only to the owner and without secrets", async () => {
    type Line = OutputOf<typeof accountLogs>["lines"][number];
    const path = "/api/channels/telegram/wrong/logs";
    const logs = async (query = "") => (await one.json<{ lines: Line[] }>(`${path}${query}`)).lines;
    // Each gateway reports the refused account when it has tried the token, or the missing secret immediately.
    const lines = await pollUntil(async () => {
      const found = await logs();
      return found.length > 0 && found;
    }, "a line about the account");
    assert.ok(lines.every(({ at, level }) => !Number.isNaN(Date.parse(at)) && level !== "info"));
    assert.match(lines.map(({ fields }) => fields["reason"]).join("\n"), /token refused by Telegram/);
    assert.ok(!JSON.stringify(lines).includes("AAWrongTokenOfNobodyForTestsOnly"));
    const of = async (account: string) =>
      (await one.json<{ lines: Line[] }>(`/api/channels/telegram/${account}/logs`)).lines;
    // Both gateways miss the secret.
    const both = await pollUntil(async () => {
      const replicas = new Set((await of("missing")).map(({ replica }) => replica));
      return replicas.size === 2 && [...replicas].sort();
    }, "lines of both gateways");
    assert.deepEqual(both, ["one", "two"]);
    assert.equal((await logs("?limit=1")).length, 1);
    assert.deepEqual(await logs("?level=fatal"), []);
    assert.deepEqual(await logs("?since=2199-01-01T00:00:00Z"), []);
    assert.equal((await one.call(`${path}?limit=1000`)).status, 400);
    assert.equal((await one.call("/api/channels/telegram/nobody/logs")).status, 404);
    assert.equal((await one.call(path, { headers: { authorization: "Bearer wrong" } })).status, 401);
  });

  test("tests credentials with the platform", async () => {
    const check = (account: string) =>
      one.json<{ ok: boolean; text: string }>(`/api/channels/telegram/${account}/test`, { method: "POST", body: {} });
    assert.deepEqual(await check("main"), { ok: true, text: "the credentials are valid: @parley_bot" });
    const wrong = await check("wrong");
    assert.ok(!wrong.ok && /token refused by Telegram \(Unauthorized\)/.test(wrong.text), wrong.text);
    assert.match((await check("missing")).text, /PARLEY_CHANNEL_MISSING is not set/);
    const unknown = await one.call("/api/channels/telegram/nobody/test", { method: "POST", body: {} });
    assert.equal(unknown.status, 404);
  });

  test("neither receives nor sends while paused on all replicas, and goes on when resumed", async () => {
    await untilState("main", "connected");
    const post = (action: string) => one.call(`/api/channels/telegram/main/${action}`, { method: "POST", body: {} });
    assert.equal((await post("pause")).status, 200);
    const paused = await untilState("main", "paused");
    assert.ok(paused.paused !== null && paused.owner === null);
    const count = peer.sent.length;
    const body = { channel: "telegram", account: "main", conversation: "42", text: "while paused" };
    await one.call("/api/send", { body });
    peer.say("are you there?");
    assert.equal((await accounts()).find(({ account }) => account === "main")?.waiting, 1);
    assert.equal(peer.sent.length, count);
    assert.equal((await post("resume")).status, 200);
    await peer.untilSent(count + 2);
    assert.ok(peer.sent.slice(count).some(({ text }) => text === "while paused"));
  });

  test("a person links a second chat with its code, and both are one session", async () => {
    const person = { channel: "telegram", account: "main", contactId: "81" };
    await one.json("/api/people", { body: { ...person, role: "user" } });
    const ask = async (from: number, text: string) => {
      const count = peer.sent.length;
      const told = () => peer.sent.slice(count).find(({ chatId }) => chatId === from)?.text ?? null;
      peer.say(text, { from });
      return peer.until(`an answer to ${text}`, told);
    };
    await ask(81, "from my first chat");
    const code = /[A-Z2-9]{4}-[A-Z2-9]{4}/.exec(await ask(82, "it is me"))?.[0] ?? "";
    assert.match(await ask(81, "/link WRNG-CODE"), /no open pairing request has this code/);
    const before = peer.sent.length;
    peer.say(`/link@parley_bot ${code}`, { from: 81, chat: -500 });
    const refused = () => peer.sent.slice(before).find(({ chatId }) => chatId === -500)?.text ?? null;
    assert.match(await peer.until("the refusal in the group", refused), /conversation with me alone/);
    assert.match(await ask(81, `/link ${code}`), /User 82 \(82\) on telegram:main is linked/);
    const news = () =>
      peer.sent.find(({ text, chatId }) => chatId === 42 && /has linked another chat/.test(text))?.text;
    assert.match(
      await peer.until("the news for the owner", () => news() ?? null),
      /User 81 \(telegram:main 81\) has linked another chat, with the same rights: User 82 \(82\) on telegram:main/,
    );
    await ask(82, "from my second chat");
    const { contacts } = await one.json<{ contacts: { contactId: string; role: string; route: string | null }[] }>(
      "/api/people",
    );
    const linked = contacts.find(({ contactId }) => contactId === "82");
    assert.deepEqual([linked?.role, linked?.route], ["user", "telegram:main:81"]);
    const { sessions } = await one.json<{ sessions: { key: string }[] }>("/api/sessions");
    assert.ok(sessions.some(({ key }) => key === "telegram:main:81"));
    assert.ok(!sessions.some(({ key }) => key === "telegram:main:82"));
    for (const contactId of ["81", "82"]) await one.json("/api/people/remove", { body: { ...person, contactId } });
    assert.match(await ask(82, "and now?"), /I do not know you yet/);
    const requests = () => peer.sent.filter(({ text }) => text.startsWith("User 82 (82) on telegram:main asks"));
    await peer.until("the owner to be told of both requests", () => (requests().length === 2 ? true : null));
  });

  test("tells the owner who asks for access, and lets them admit, block and forget people", async () => {
    await heard("owner here");
    const count = peer.sent.length;
    peer.say("hi", { from: 77 });
    await peer.untilSent(count + 2);
    const sent = peer.sent.slice(count);
    const code = /[A-Z2-9]{4}-[A-Z2-9]{4}/.exec(sent.find(({ chatId }) => chatId === 77)?.text ?? "")?.[0] ?? "";
    const told = sent.find(({ chatId }) => chatId === 42)?.text ?? "";
    assert.match(told, /User 77 \(77\) on telegram:main asks for access/);
    assert.ok(!told.includes(code), "the code proves who has the account");
    await heard("/people");
    assert.match(peer.sent.at(-1)?.text ?? "", /asks for access {2}User 77/);
    await heard(`/pair ${code} guest`);
    assert.match(peer.sent.at(-1)?.text ?? "", /User 77 \(77\) on telegram:main is admitted as guest/);
    const person = { channel: "telegram", account: "main", contactId: "77" };
    const blocked = await one.json<{ contact: { role: string }; note: null }>("/api/people", {
      body: { ...person, role: "blocked" },
    });
    assert.deepEqual([blocked.contact.role, blocked.note], ["blocked", null]);
    const owner = await one.json<{ note: string }>("/api/people", {
      body: { ...person, contactId: "42", role: "guest" },
    });
    assert.match(owner.note, /owners names them and decides first/);
    const removed = await one.json<{ removed: boolean }>("/api/people/remove", { body: person });
    assert.equal(removed.removed, true);
    const { contacts } = await one.json<{ contacts: { contactId: string }[] }>("/api/people");
    assert.deepEqual(
      contacts.map(({ contactId }) => contactId),
      ["42"],
    );
  });
});

test("shows the report of the replica that is connected", () => {
  const of = { channel: "a", account: "b" };
  const report = (state: Account["state"]) => ({ ...of, state, as: null, reason: null, since: "2026-01-01" });
  assert.equal(bestReport([report("standby"), report("connected")], of).state, "connected");
  assert.equal(bestReport([report("standby"), report("failing")], of).state, "failing");
  assert.equal(bestReport([], of).state, "unknown");
});

test("waits for the report of a slow replica, and for others only until each account is reported", async () => {
  const account = { channel: "a", account: "b" };
  const report = (state: "connected" | "standby") => ({ ...account, state, as: null, reason: null, since: "" });
  const stateOf = async (owner: string | null, replicas: readonly (readonly [number, ReturnType<typeof report>])[]) => {
    const waits: number[] = [];
    const gather = async (waitMs: number) => {
      waits.push(waitMs);
      return replicas.filter(([takesMs]) => takesMs <= waitMs).map(([, reported]) => reported);
    };
    const reports = await gatherReports(gather, Promise.resolve([{ ...account, owner }]));
    return [bestReport(reports, account).state, waits];
  };
  assert.deepEqual(await stateOf("one/1", [[10, report("connected")]]), ["connected", [250]]);
  assert.deepEqual(await stateOf("one/1", [[900, report("connected")]]), ["connected", [250, 500, 1_000]]);
  const standby = [10, report("standby")] as const;
  assert.deepEqual(await stateOf("one/1", [standby, [400, report("connected")]]), ["connected", [250, 500]]);
  assert.deepEqual(await stateOf(null, [standby]), ["standby", [250]], "nobody has the connection");
  assert.deepEqual(await stateOf("one/1", []), ["unknown", [250, 500, 1_000, 2_000]]);
});

test("waits no longer for reports when the store fails, which is reported by itself", async () => {
  const failed = Promise.reject(new Error("the store is away"));
  const waits: number[] = [];
  const gather = async (waitMs: number) => {
    waits.push(waitMs);
    // A rejection without a handler would end the process here.
    await new Promise(setImmediate);
    return [];
  };
  assert.deepEqual(await gatherReports(gather, failed), []);
  assert.deepEqual(waits, [250]);
  await assert.rejects(failed, /the store is away/);
});
