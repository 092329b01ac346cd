// Callers that wait for their answer and share a session, on one gateway and a real store.
import assert from "node:assert/strict";
import { after, afterEach, before, test } from "node:test";
import { pollUntil } from "@parley/testing/until";
import { parseSettings } from "@parley/chassis";
import { queueModes, type QueueMode } from "@parley/contracts";
import { startGatewayStack, type GatewayStack, type Replica } from "./support/stack.ts";

let stack: GatewayStack;

before(async () => {
  stack = await startGatewayStack();
});
after(() => stack[Symbol.asyncDispose]());
afterEach(() => {
  stack.agent.script = (said) => ({ deltas: ["You said: ", said] });
});

function gatewayWith(mode: QueueMode, synchronous: "own" | "shared" = "own"): Promise<Replica> {
  const text = `[queue]\nmode = "${mode}"\nwindow_ms = 10\n[session]\nsynchronous = "${synchronous}"\n`;
  return stack.gateway({ config: { settings: parseSettings(text, "test") } });
}

interface Completion {
  id: string;
  choices: { message: { content: string } }[];
}

/** Returns the answer to a call; `user` names its conversation, `key` is its idempotency key. */
async function call(gateway: Replica, content: string, more: { user?: string; key?: string } = {}): Promise<string> {
  const { user, key } = more;
  const body = { messages: [{ role: "user", content }], user };
  const headers = key === undefined ? {} : { "idempotency-key": key };
  const answer = await gateway.json<Completion>("/v1/chat/completions", { body, headers });
  return answer.choices[0]?.message.content ?? JSON.stringify(answer);
}

/** Holds turns whose text begins with "slow" until it is released. */
function holdSlowTurns(): { began: Promise<void>; release: () => void } {
  const began = Promise.withResolvers<void>();
  const goOn = Promise.withResolvers<void>();
  stack.agent.script = async (said) => {
    if (said.startsWith("slow")) {
      began.resolve();
      await goOn.promise;
    }
    return { deltas: [`You said: ${said}`] };
  };
  return { began: began.promise, release: goOn.resolve };
}

const waiting = (gateway: Replica, count: number) =>
  pollUntil(async () => {
    const { session } = await gateway.json<{ session: { queued: number } }>("/api/sessions/main");
    return session.queued === count;
  }, `${count} queued messages`);

for (const mode of queueModes) {
  test(`returns each caller's own answer in a shared session when the queue mode is ${mode}`, async () => {
    const gateway = await gatewayWith(mode, "shared");
    const { began, release } = holdSlowTurns();
    const texts = ["slow one", "two", "three", "four"].map((text) => `${text} ${mode}`);
    const answers = [call(gateway, texts[0] ?? "", { user: "a" })];
    await began;
    answers.push(call(gateway, texts[1] ?? "", { user: "b" }), call(gateway, texts[2] ?? "", { user: "b" }));
    answers.push(call(gateway, texts[3] ?? ""));
    await waiting(gateway, 3);
    release();
    assert.deepEqual(
      await Promise.all(answers),
      texts.map((text) => `You said: ${text}`),
    );
    assert.deepEqual(stack.agent.cancelled, [], "no caller's turn was interrupted");
    await gateway.close();
  });
}

test("returns the answer of the shared turn when a caller sends /steer", async () => {
  const gateway = await gatewayWith("queue");
  const { began, release } = holdSlowTurns();
  const running = call(gateway, "slow turn", { user: "a" });
  await began;
  const joined = [call(gateway, "/steer left"), call(gateway, "/steer right")];
  await waiting(gateway, 2);
  release();
  assert.equal(await running, "You said: slow turn");
  const [left, right] = await Promise.all(joined);
  assert.equal(left, right);
  assert.deepEqual(left?.replace("You said: ", "").split("\n").toSorted(), ["left", "right"]);
  await gateway.close();
});

test("returns the same answer for a repeated key without a conversation, in one session", async () => {
  const gateway = await gatewayWith("steer");
  const listed = async () =>
    (await gateway.json<{ sessions: object[] }>("/api/sessions?limit=200&calls=true")).sessions.length;
  const before = await listed();
  const [first, second] = await Promise.all([1, 2].map(() => call(gateway, "once", { key: "unnamed" })));
  assert.deepEqual([first, second], ["You said: once", "You said: once"]);
  assert.equal(await call(gateway, "once", { key: "unnamed" }), "You said: once");
  assert.equal(stack.agent.heard.filter((text) => text === "once").length, 1);
  assert.equal((await listed()) - before, 1);
  await gateway.close();
});

test("stops a caller's turn on /now, but not on the configured mode interrupt", async () => {
  const gateway = await gatewayWith("interrupt");
  const { began, release } = holdSlowTurns();
  const running = call(gateway, "slow call", { user: "a" });
  await began;
  const cancelled = stack.agent.cancelled.length;
  await gateway.call("/api/messages", { body: { text: "from the settings" } });
  assert.equal(stack.agent.cancelled.length, cancelled);
  await gateway.call("/api/messages", { body: { text: "/now stop that" } });
  assert.equal(stack.agent.cancelled.length, cancelled + 1);
  release();
  await running;
  await gateway.close();
});

test("lists sessions of calls without a conversation only on request", async () => {
  const gateway = await gatewayWith("steer");
  await call(gateway, "unlisted");
  const keys = async (query: string) =>
    (await gateway.json<{ sessions: { key: string }[] }>(`/api/sessions?limit=200${query}`)).sessions.map(
      ({ key }) => key,
    );
  const isCall = (key: string) => key.startsWith("http:default:call-");
  assert.equal((await keys("")).some(isCall), false);
  assert.equal((await keys("&calls=true")).some(isCall), true);
  await gateway.close();
});
