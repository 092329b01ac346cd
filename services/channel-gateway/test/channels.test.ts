// Channels from the platform's side: authorization, delivery order and connection ownership, on a real store. Each test has its own
// account on shared servers, because most of the time is waiting for a lease.
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { randomUUID } from "node:crypto";
import { pollUntil } from "@parley/testing/until";
import { Client } from "pg";
import { storeBlob } from "@parley/bus";
import { store, type ParleySettings } from "@parley/contracts";
import { parseSettings } from "@parley/chassis";
import { startGatewayStack, type GatewayStack, type Replica } from "./support/stack.ts";
import { AnswerParts } from "../src/channels/text/parts.ts";
import { Platform } from "./support/platform.ts";
import type { PeoplePolicy } from "@parley/contracts";

let stack: GatewayStack;

async function start(
  platform: Platform,
  people: Partial<PeoplePolicy>,
  { name = "one", policy = "per_conversation" }: { name?: string; policy?: ParleySettings["session"]["policy"] } = {},
): Promise<Replica> {
  return stack.gateway({
    name,
    config: { settings: parseSettings(`[session]\npolicy = "${policy}"`, "test") },
    overrides: { accounts: [platform.account(people, name)] },
  });
}

/** The session keys of an account, and `main`. */
const keysOf = async (gateway: Replica, account: string) => {
  const { sessions } = await gateway.json<{ sessions: { key: string }[] }>("/api/sessions");
  return sessions.flatMap(({ key }) => (key === "main" || key.startsWith(`test:${account}:`) ? [key] : [])).sort();
};

/** Who holds a lease that has not expired, of the owners like this pattern. */
async function leaseHolders(name: string, pattern: string): Promise<string[]> {
  const client = new Client({ connectionString: stack.stack.postgres.ownerUrl });
  await client.connect();
  try {
    const text = "SELECT owner FROM parley.leases WHERE name = $1 AND owner LIKE $2 AND expires_at > now()";
    const { rows } = await client.query<{ owner: string }>(text, [name, pattern]);
    return rows.map(({ owner }) => owner);
  } finally {
    await client.end();
  }
}

/** The state of a text when it is no longer waiting or being sent. */
function settledState(gateway: Replica, outboxId: string): Promise<string> {
  return pollUntil(async () => {
    const { state } = await gateway.json<{ state: string }>(`/api/outbox/${outboxId}`);
    return state !== "pending" && state !== "sending" && state;
  }, "the outcome of a text");
}

describe("channels", { concurrency: true }, () => {
  before(async () => {
    stack = await startGatewayStack();
  });
  after(() => stack[Symbol.asyncDispose]());

  // design: 001.21
  test("maps people and groups to sessions and sends an unknown sender one pairing code", async () => {
    const platform = new Platform("people");
    const gateway = await start(
      platform,
      { owners: ["boss"], allow_from: ["friend"], groups: ["#team"] },
      { policy: "singleton" },
    );

    platform.say({ conversation: "boss", from: "boss", text: "mine" });
    platform.say({ conversation: "friend", from: "friend", text: "theirs" });
    platform.say({ conversation: "#team", from: "boss", text: "aloud", direct: false, addressed: true });
    platform.say({ conversation: "#team", from: "anybody", text: "to others", direct: false });
    platform.say({
      conversation: "#team:5",
      group: "#team",
      from: "boss",
      text: "in a topic",
      direct: false,
      addressed: true,
    });
    platform.say({ conversation: "#other", from: "boss", text: "not listed", direct: false, addressed: true });
    await platform.until(() => platform.sent.length === 4);
    assert.deepEqual(stack.agent.heardOn("people").toSorted(), ["aloud", "in a topic", "mine", "theirs"]);
    assert.deepEqual(await keysOf(gateway, "people"), [
      "main",
      "test:people:#team",
      "test:people:#team:5",
      "test:people:friend",
    ]);

    platform.say({ conversation: "dm-7", from: "stranger", text: "let me in" });
    platform.say({ conversation: "dm-7", from: "stranger", text: "hello?" });
    platform.say({ conversation: "boss", from: "boss", text: "after" });
    await platform.until(() => platform.sent.length === 6);
    const codes = platform.sent.filter(({ conversation }) => conversation === "dm-7");
    assert.equal(codes.length, 1);
    const code = /[A-Z2-9]{4}-[A-Z2-9]{4}/.exec(codes[0]?.text ?? "")?.[0] ?? "";
    const { pairings } = await gateway.json<{ pairings: { contactId: string; name: string }[] }>("/api/pairings");
    assert.deepEqual(
      pairings.map(({ contactId, name }) => [contactId, name]),
      [["stranger", "Name of stranger"]],
    );

    const approve = (body: object) => gateway.call("/api/pairings/approve", { body });
    assert.equal((await approve({ code: "WRNG-CODE" })).status, 404);
    assert.equal((await approve({ code: code.toLowerCase().replace("-", " "), role: "user" })).status, 200);
    assert.equal((await approve({ code })).status, 404, "a code is valid once");
    platform.say({ conversation: "dm-7", from: "stranger", text: "thank you" });
    await platform.until(() => platform.sent.some(({ text }) => text === "You said: thank you"));
  });

  // design: 001.20b
  test("answers commands on their channel and never passes unknown ones to the agent", async () => {
    const platform = new Platform("commands");
    await start(platform, { owners: ["boss"] });
    const began = Promise.withResolvers<string>();
    const goOn = Promise.withResolvers<void>();
    const { script } = stack.agent;
    stack.agent.script = async (said, turn) => {
      // The other tests run concurrently.
      if (said !== "long") return script(said, turn);
      began.resolve(turn.sessionId);
      await goOn.promise;
      return { deltas: [said] };
    };
    platform.say({ conversation: "c", from: "boss", text: "long" });
    const sessionId = await began.promise;
    await platform.until(() => platform.typing.includes("c"));
    platform.say({ conversation: "c", from: "boss", text: "/stop" });
    await platform.until(() => platform.sent.some(({ text }) => text === "Stopped."));
    assert.equal(stack.agent.cancelled.filter((each) => each === sessionId).length, 1);
    platform.say({ conversation: "c", from: "boss", text: "/frobnicate" });
    await platform.until(() => platform.sent.some(({ text }) => text.startsWith("Unknown command /frobnicate")));
    platform.say({ conversation: "c", from: "boss", text: "x".repeat(300 * 1024) });
    await platform.until(() => platform.sent.some(({ text }) => text.startsWith("Message not accepted")));
    goOn.resolve();
    await platform.until(() => platform.typingEnded.includes("c"));
    assert.deepEqual(stack.agent.heardOn("commands"), ["long"]);
  });

  // design: 000.28k, 001.20b
  test("repeats the typing indicator at the channel's interval while a turn runs, and hides it once at the end", async () => {
    const platform = new Platform("typing");
    const { adapter, people } = platform.account({ owners: ["boss"] });
    const capabilities = { ...adapter.capabilities, typingEveryMs: 20 };
    await stack.gateway({
      config: { settings: parseSettings('[session]\npolicy = "per_conversation"', "test") },
      overrides: { accounts: [{ adapter: { ...adapter, capabilities }, people }] },
    });
    const goOn = Promise.withResolvers<void>();
    const { script } = stack.agent;
    stack.agent.script = async (said, turn) => {
      // The other tests run concurrently.
      if (said !== "think about it") return script(said, turn);
      await goOn.promise;
      return { deltas: ["thought"] };
    };
    platform.say({ conversation: "c", from: "boss", text: "think about it" });
    await platform.until(() => platform.typing.length >= 4);
    assert.deepEqual(platform.typingEnded, []);
    goOn.resolve();
    await platform.until(() => platform.typingEnded.length > 0);
    const shown = platform.typing.length;
    platform.say({ conversation: "d", from: "boss", text: "hello" });
    await platform.until(() => platform.typingEnded.length > 1);
    assert.deepEqual(platform.typingEnded, ["c", "d"]);
    assert.deepEqual(new Set(platform.typing.slice(shown)), new Set(["d"]));
  });

  test("keeps the order per conversation, in parallel with others, and retries a refused text", async () => {
    const platform = new Platform("order");
    const gateway = await start(platform, {});
    const release = Promise.withResolvers<void>();
    let refusals = 2;
    platform.fate = async ({ text, address }) => {
      if (address.conversation === "slow") await release.promise;
      if (text?.plain === "b-1" && refusals-- > 0) return { state: "retry", afterMs: 20, reason: "429" };
      return null;
    };
    const send = async (conversation: string, text: string) => {
      const response = await gateway.call("/api/send", {
        body: { channel: "test", account: "order", conversation, text },
      });
      assert.equal(response.status, 202);
      return ((await response.json()) as { outboxId: string }).outboxId;
    };
    for (const text of ["a-1", "a-2", "a-3"]) await send("slow", text);
    for (const text of ["b-0", "b-1", "b-2", "b-3"]) await send("quick", text);
    await platform.until(() => platform.sent.length === 4);
    assert.deepEqual(
      platform.sent.map(({ text }) => text),
      ["b-0", "b-1", "b-2", "b-3"],
    );
    release.resolve();
    await platform.until(() => platform.sent.length === 7);
    assert.deepEqual(
      platform.sent.slice(4).map(({ text }) => text),
      ["a-1", "a-2", "a-3"],
    );

    platform.fate = async ({ text }) => {
      if (text?.plain === "throws") throw new Error("a bug");
      return text?.plain === "blocked" ? { state: "dropped", reason: "blocked by the user" } : null;
    };
    const ids = [await send("c", "throws"), await send("c", "blocked"), await send("c", "after")];
    await platform.until(() => platform.sent.at(-1)?.text === "after");
    const states: string[] = [];
    for (const id of ids) {
      states.push(await settledState(gateway, id));
    }
    assert.deepEqual(states, ["unknown", "dropped", "sent"]);
    assert.equal(
      (await gateway.call("/api/send", { body: { channel: "test", account: "x", conversation: "c", text: "t" } }))
        .status,
      404,
    );
  });

  test("sends a long text in messages, and continues with the rest after an unknown one", async () => {
    const platform = new Platform("parts");
    const gateway = await start(platform, {});
    platform.fate = async ({ text }) =>
      text?.plain.startsWith("b") === true ? { state: "unknown", reason: "cut" } : null;
    const text = ["a", "b", "c"].map((letter) => letter.repeat(900)).join("\n\n");
    const body = { channel: "test", account: "parts", conversation: "c", text };
    const { outboxId } = await gateway.json<{ outboxId: string }>("/api/send", { body });
    await platform.until(() => platform.sent.length === 2);
    assert.deepEqual(
      platform.sent.map((each) => each.text[0]),
      ["a", "c"],
    );
    await gateway.call("/api/send", { body: { ...body, text: "end" } });
    await platform.until(() => platform.sent.length === 3);
    const { state, error } = await gateway.json<{ state: string; error: string }>(`/api/outbox/${outboxId}`);
    assert.deepEqual([state, error], ["unknown", "cut"]);
  });

  test("sends the rest of a long text once after its sender died at any message", async () => {
    const limits = new Platform("limits").account({}).adapter.capabilities.text;
    const letters = ["a", "b", "c", "d"];
    const text = letters.map((letter) => letter.repeat(900)).join("\n\n");
    const dead = { replica: "dead", incarnation: "dead" };
    const bus = await stack.stack.bus("channel-gateway");
    const cases = letters.flatMap((_, sent) => [
      { sent, inFlight: false },
      { sent, inFlight: true },
    ]);
    const platforms = cases.map(
      ({ sent, inFlight }) => new Platform(`died-${sent}-${inFlight ? "flight" : "between"}`),
    );
    const ids: string[] = [];
    for (const [index, { sent, inFlight }] of cases.entries()) {
      const { channel, account } = platforms[index]?.account({}).adapter ?? assert.fail();
      const outgoing = { address: { channel, account, conversation: "c" }, text, expiresInMs: 600_000 };
      const { outboxId } = await bus.request(store.outboxPut, { opId: randomUUID(), outgoing });
      ids.push(outboxId);
      const claim = () =>
        bus.request(store.outboxClaim, {
          opId: randomUUID(),
          owner: dead,
          channel,
          account,
          deduplicates: false,
          continues: true,
          limit: 1,
          claimMs: 60_000,
        });
      const parts = new AnswerParts(limits);
      for (let done = 0, position = 0; done < sent; done++) {
        await claim();
        position = parts.at("answer", text, position)?.next ?? assert.fail();
        const outcome = { state: "part" as const, providerMessageId: `dead-${done}`, position };
        await bus.request(store.outboxSettle, { opId: randomUUID(), outboxId, owner: dead, outcome });
      }
      if (inFlight) assert.equal((await claim()).rows.length, 1);
    }
    const gateway = await stack.gateway({
      name: "heir",
      overrides: { accounts: platforms.map((platform) => platform.account({}, "heir")) },
    });
    for (const [index, { sent, inFlight }] of cases.entries()) {
      const platform = platforms[index] ?? assert.fail();
      const rest = letters.slice(inFlight ? sent + 1 : sent);
      await platform.until(() => platform.sent.length >= rest.length);
      assert.equal(await settledState(gateway, ids[index] ?? ""), inFlight ? "unknown" : "sent");
      assert.deepEqual(
        platform.sent.map((each) => each.text[0]),
        rest,
        `${sent} sent, ${inFlight ? "one in flight" : "none in flight"}`,
      );
    }
  });

  test("moves the connection to another replica when its owner drains, without loss", async () => {
    const platform = new Platform("moving");
    const first = await start(platform, { owners: ["boss"] }, { name: "first" });
    await platform.until(() => platform.owners.length === 1);
    await start(platform, { owners: ["boss"] }, { name: "second" });
    platform.say({ conversation: "c", from: "boss", text: "one" });
    await platform.until(() => platform.sent.length === 1);
    const before = platform.owners.length;
    const drained = first.close();
    platform.say({ conversation: "c", from: "boss", text: "two" });
    await drained;
    // Released: the second replica need not wait until it expires.
    assert.deepEqual(await leaseHolders("test:moving", "first/%"), []);
    await platform.until(() => platform.owners.at(-1) === "second");
    // Before its answer, "three" would join its turn.
    await platform.until(() => platform.sent.length === 2);
    platform.say({ conversation: "c", from: "boss", text: "three" });
    await platform.until(() => platform.sent.length === 3);
    // On a busy machine a lease may have expired before.
    assert.deepEqual([...new Set(["second", ...platform.owners.slice(before)])], ["second"]);
    assert.equal(platform.mostAtOnce, 1);
    assert.deepEqual(
      platform.sent.map(({ text }) => text),
      ["You said: one", "You said: two", "You said: three"],
    );
  });

  test("takes over the connection of a crashed replica when its lease expires", async (t) => {
    const bus = await stack.stack.bus("channel-gateway");
    const ttlMs = 4_000;
    const startedMs = performance.now();
    const dead = await bus.request(store.leaseAcquire, { name: "test:dead", owner: "dead/1", ttlMs });
    assert.equal(dead.granted, true);
    const platform = new Platform("dead");
    await start(platform, {});
    await platform.until(() => platform.owners.length === 1);
    const tookMs = performance.now() - startedMs;
    t.diagnostic(`taken after ${Math.round(tookMs)} ms`);
    assert.ok(tookMs >= ttlMs, `taken after ${tookMs} ms`);
  });

  test("sends the files of an answer with the last message of its text where the channel can", async () => {
    const platform = new Platform("together");
    const account = platform.account({ owners: ["boss"] });
    const capabilities = { ...account.adapter.capabilities, files: true, filesWithText: true as const };
    const sent: [string | undefined, string[]][] = [];
    platform.fate = async ({ text, files = [] }) => {
      sent.push([text?.plain[0], files.map(({ name, content }) => `${name}: ${Buffer.from(content).toString()}`)]);
      return null;
    };
    const bus = await stack.stack.bus("channel-gateway");
    const attachments = await Promise.all(
      ["one", "two"].map(async (name) => ({ ...(await storeBlob(bus, Buffer.from(`content of ${name}`))), name })),
    );
    const { script } = stack.agent;
    stack.agent.script = async (said, turn) =>
      said === "with files"
        ? { deltas: [`${"a".repeat(900)}\n\n${"b".repeat(900)}`], attachments }
        : script(said, turn);
    const gateway = await stack.gateway({
      name: "together",
      overrides: { accounts: [{ ...account, adapter: { ...account.adapter, capabilities } }] },
    });
    platform.say({ conversation: "c", from: "boss", text: "with files" });
    await platform.until(() => platform.sent.length === 2);
    assert.deepEqual(sent, [
      ["a", []],
      ["b", ["one: content of one", "two: content of two"]],
    ]);
    await gateway.close();
  });

  test("holds the rest of a long text until somebody asks for more, page by page", async () => {
    const platform = new Platform("pages");
    const account = platform.account({ owners: ["boss"] });
    const capabilities = { ...account.adapter.capabilities, messagesPerPage: 3, commandPrefix: "!" };
    const gateway = await stack.gateway({
      name: "pages",
      overrides: { accounts: [{ ...account, adapter: { ...account.adapter, capabilities } }] },
    });
    const first = () => platform.sent.map((each) => (each.text.startsWith("[") ? each.text : each.text.slice(0, 1)));
    const text = ["a", "b", "c", "d", "e"].map((letter) => letter.repeat(900)).join("\n\n");
    const body = { channel: "test", account: "pages", conversation: "boss", text };
    await gateway.call("/api/send", { body });
    await platform.until(() => platform.sent.length === 3);
    assert.deepEqual(first(), ["a", "b", "[2704 more characters: !more]"]);
    // The rest does not hold up other texts.
    await gateway.call("/api/send", { body: { ...body, text: "other" } });
    await platform.until(() => platform.sent.length === 4);
    platform.say({ conversation: "boss", from: "boss", text: "!more" });
    await platform.until(() => platform.sent.length === 7);
    assert.deepEqual(first().slice(3), ["o", "c", "d", "e"]);
    platform.say({ conversation: "boss", from: "boss", text: "/more" });
    await platform.until(() => platform.sent.length === 8);
    assert.match(platform.sent[7]?.text ?? "", /nothing more/);
    // A new session ends what waits of the previous one.
    const { script } = stack.agent;
    stack.agent.script = async (said, turn) => (said === "at length" ? { deltas: [text] } : script(said, turn));
    platform.say({ conversation: "boss", from: "boss", text: "at length" });
    await platform.until(() => platform.sent.length === 11);
    assert.match(platform.sent[10]?.text ?? "", /more characters/);
    // It is sent after the settlement of the text before.
    await gateway.call("/api/send", { body: { ...body, text: "other" } });
    await platform.until(() => platform.sent.length === 12);
    platform.say({ conversation: "boss", from: "boss", text: "!new" });
    await platform.until(() => platform.sent.length === 13);
    platform.say({ conversation: "boss", from: "boss", text: "!more" });
    await platform.until(() => platform.sent.length === 14);
    assert.match(platform.sent[13]?.text ?? "", /nothing more/);
    await gateway.close();
  });

  test("delivers without the lease where sends do not need the connection", async () => {
    const bus = await stack.stack.bus("channel-gateway");
    await bus.request(store.leaseAcquire, { name: "test:apart", owner: "other/1", ttlMs: 60_000 });
    const platform = new Platform("apart");
    const account = platform.account({}, "one", { sendsWithoutConnection: true });
    const gateway = await stack.gateway({ name: "apart", overrides: { accounts: [account] } });
    await gateway.call("/api/send", { body: { channel: "test", account: "apart", conversation: "c", text: "hi" } });
    await platform.until(() => platform.sent.length === 1);
    assert.deepEqual(platform.owners, []);
  });

  test("closes the connection and stops sending when the owner is fenced", async () => {
    const platform = new Platform("fenced");
    const gateway = await start(platform, {}, { name: "old" });
    await platform.until(() => platform.owners.length === 1);
    const bus = await stack.stack.bus("channel-gateway");
    // Another owner takes the lease, as after a long stall of the first one.
    for (let fence = 1; ; fence++) {
      await bus.request(store.leaseRelease, { name: "test:fenced", fence }).catch(() => undefined);
      const taken = await bus.request(store.leaseAcquire, { name: "test:fenced", owner: "new/1", ttlMs: 60_000 });
      if (taken.granted) break;
    }
    await gateway.call("/api/send", {
      body: { channel: "test", account: "fenced", conversation: "c", text: "not by me" },
    });
    await bus.request(store.outboxPut, {
      opId: randomUUID(),
      outgoing: {
        address: { channel: "test", account: "fenced", conversation: "c" },
        text: "nor this",
        expiresInMs: 60_000,
      },
    });
    await pollUntil(async () => {
      const { replicas } = await gateway.json<{ replicas: { replica: string; details: { leases?: string } }[] }>(
        "/api/status",
      );
      return replicas.some(({ replica, details }) => replica === "old" && details.leases === "");
    }, "the end of the leases");
    assert.deepEqual(platform.sent, []);
  });
});
