// Lifetime of the subscriptions to resources of speech servers, with a real client and a real server that can be made to
// refuse.
import assert from "node:assert/strict";
import { beforeEach, test } from "node:test";
import { Client } from "@modelcontextprotocol/client";
import { InMemoryTransport, McpServer, ProtocolError, ProtocolErrorCode } from "@modelcontextprotocol/server";
import { VoiceSubscriptions } from "../../src/mcp/voice-subscriptions.ts";

/** A missing event fails the test at this timeout. */
const limit = { timeout: 20_000 };
let client: Client;
let nowMs: number;
let refuses: boolean;
let asked: string[];
let subscribed: string[];
let refusals: string[];
let step = Promise.withResolvers<undefined>();

async function connect({ capable = true } = {}): Promise<Client> {
  const server = new McpServer({ name: "s", version: "1" });
  server.server.registerCapabilities({ resources: { subscribe: capable } });
  const takes = (what: string) => (request: { params: { uri: string } }) => {
    asked.push(`${what} ${request.params.uri}`);
    step.resolve(undefined);
    if (refuses) throw new ProtocolError(ProtocolErrorCode.InvalidParams, "no");
    return {};
  };
  server.server.setRequestHandler("resources/subscribe", takes("subscribe"));
  server.server.setRequestHandler("resources/unsubscribe", takes("unsubscribe"));
  const [near, far] = InMemoryTransport.createLinkedPair();
  await server.connect(far);
  const connected = new Client({ name: "c", version: "1" });
  await connected.connect(near);
  return connected;
}

const open = (template?: string) =>
  new VoiceSubscriptions({
    template,
    subscribed: (session) => {
      subscribed.push(session);
      step.resolve(undefined);
    },
    refused: (problem) => {
      refusals.push(problem);
      step.resolve(undefined);
    },
    nowMs: () => nowMs,
  });

/** Resolves when the condition holds; checked on each request and confirmation. */
async function until(done: () => boolean): Promise<void> {
  for (; !done(); step = Promise.withResolvers()) await step.promise;
}

/** Resolves after all earlier requests were answered; fails on any other request. */
async function answered(): Promise<void> {
  await client.ping();
  await client.ping();
}

beforeEach(async () => {
  [nowMs, refuses, asked, subscribed, refusals] = [0, false, [], [], []];
  client = await connect();
});

test(
  "subscribes once per connection by the server's or configured URI, and maps news to a session",
  limit,
  async () => {
    const subscriptions = open("stt://{session_id}");
    subscriptions.follow(client, "a/1", undefined);
    subscriptions.follow(client, "a/1", undefined);
    await until(() => subscribed.length === 1);
    assert.deepEqual(asked, ["subscribe stt://a%2F1"]);
    assert.equal(subscriptions.sessionOf("stt://a%2F1"), "a/1");
    assert.equal(subscriptions.sessionOf("stt://a%2F1/part"), "a/1", "a sub-resource has changed");
    assert.equal(subscriptions.sessionOf("stt://other"), undefined);

    subscriptions.follow(client, "a/1", "stt://named");
    await until(() => subscribed.length === 2 && asked.length === 3);
    assert.deepEqual(asked.slice(1).toSorted(), ["subscribe stt://named", "unsubscribe stt://a%2F1"]);
    subscriptions.follow(client, "a/1", undefined);
    const again = await connect();
    subscriptions.follow(again, "a/1", undefined);
    await until(() => subscribed.length === 3);
    assert.equal(asked.at(-1), "subscribe stt://named", "a new connection has no subscriptions");
  },
);

test("keeps the subscription of a shared resource until its last session ends", limit, async () => {
  const subscriptions = open("stt://all");
  subscriptions.follow(client, "a", undefined);
  await until(() => subscribed.length === 1);
  subscriptions.follow(client, "b", undefined);
  assert.equal(subscriptions.sessionOf("stt://all"), null);
  subscriptions.forget("a");
  assert.equal(subscriptions.sessionOf("stt://all"), "b");
  await answered();
  assert.deepEqual(asked, ["subscribe stt://all"]);
  subscriptions.forget("b");
  await until(() => asked.length === 2);
  assert.equal(asked[1], "unsubscribe stt://all");
});

test("retries a refused subscription after 30 s, not on each poll", limit, async () => {
  refuses = true;
  const subscriptions = open("stt://all");
  subscriptions.follow(client, "a", undefined);
  await until(() => refusals.length === 1);
  nowMs = 29_999;
  subscriptions.follow(client, "a", undefined);
  await answered();
  assert.equal(asked.length, 1);
  nowMs = 30_000;
  subscriptions.follow(client, "a", undefined);
  await until(() => asked.length === 2);
  await answered();
  refuses = false;
  nowMs = 60_000;
  subscriptions.follow(client, "a", undefined);
  await until(() => subscribed.length === 1);
  assert.equal(refusals.length, 1, "the refusal is reported once");
});

test("forgets a session that is no longer polled", limit, async () => {
  const subscriptions = open("stt://{session_id}");
  subscriptions.follow(client, "a", undefined);
  await until(() => subscribed.length === 1);
  nowMs = 15 * 60_000 + 1;
  subscriptions.follow(client, "b", undefined);
  await until(() => asked.length === 3);
  assert.ok(asked.includes("unsubscribe stt://a"));
  assert.equal(subscriptions.sessionOf("stt://a"), undefined);
});

test("does not subscribe without server support or a known resource", limit, async () => {
  const incapable = await connect({ capable: false });
  open("stt://all").follow(incapable, "a", undefined);
  open().follow(client, "a", undefined);
  await incapable.ping();
  await answered();
  assert.deepEqual(asked, []);
});
