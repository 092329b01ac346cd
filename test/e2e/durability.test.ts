// Accepted messages are answered once and in order, also when processes die.
import assert from "node:assert/strict";
import { after, test } from "node:test";
import { apiClient, Cleanup, startTestCluster, type TestCluster } from "@parley/testing";
import { pollUntil } from "@parley/testing/until";

const cleanup = new Cleanup();
after(() => cleanup[Symbol.asyncDispose]());

// design: 004.35, interaction.9
test("answers every queued message when agent-core and gateway are killed and all restarts", async () => {
  let cluster = await startTestCluster(cleanup, { model: true, ownPostgres: true });
  let client = apiClient(cluster.httpUrls, cluster.token);

  const texts = ["the running one", ...Array.from({ length: 50 }, (_, index) => `number ${index + 1}`)];
  const ids = [await client.post(`tool: exec {"command":"sleep 1"}\nthen\nsay: ${texts[0]}`, { mode: "queue" })];
  for (const text of texts.slice(1)) ids.push(await client.post(`say: ${text}`, { mode: "queue" }));

  await turnBegun(cluster, client, ids[0] ?? "");
  await cluster.kill("agent-core", 1, "SIGKILL");
  await client.settled(ids[2] ?? "");
  await cluster.kill("channel-gateway", 1, "SIGKILL");
  await client.settled(ids[10] ?? "");
  await cluster.stop();

  cluster = await startTestCluster(cleanup, { again: cluster });
  client = apiClient(cluster.httpUrls, cluster.token);
  const turns = await Promise.all(ids.map((id) => client.settled(id, 120_000)));
  // The tool that ran when its leader died either completed or is reported as unknown: the turn ends in the same way.
  assert.deepEqual(
    turns.map((turn) => turn.text),
    texts,
  );
  const finished = turns.map((turn) => turn.finishedAt ?? "");
  assert.deepEqual(finished, [...finished].sort(), "answered out of order");
  assert.deepEqual(cluster.strict?.refusals, []);

  // The model received each message once; only a call that a kill interrupted may be repeated.
  const asked = (cluster.strict?.requests ?? []).map((request) => JSON.stringify(request.messages.at(-1)));
  const repeated = asked.length - new Set(asked).size;
  assert.ok(repeated <= 2, `${repeated} model calls were repeated`);
});

test("stops the running turn when the gateway dies between storing the interrupting message and stopping it", async () => {
  const cluster = await startTestCluster(cleanup, { processes: ["channel-gateway"] });
  const client = apiClient([cluster.httpUrl], cluster.token);
  const running = await client.post("pause: 120000\nsay: never", { mode: "queue" });
  await pollUntil(async () => (await client.messageState(running)).turn !== null, "the running turn");
  await cluster.fault("inbox.after_put", "kill");
  // The client repeats the request with its key until a gateway answers.
  const messageId = await client.post("say: now", { mode: "interrupt" });
  assert.deepEqual(await cluster.armed(), [], "the gateway died");
  assert.equal((await client.settled(running)).exitReason, "interrupted");
  assert.equal((await client.settled(messageId)).text, "now");
});

/** Resolves when the message's turn has made its first model call. */
async function turnBegun(cluster: TestCluster, client: ReturnType<typeof apiClient>, messageId: string): Promise<void> {
  await pollUntil(async () => {
    assert.ok(cluster.replicas().length > 0);
    const { turn } = await client.messageState(messageId);
    return (turn?.modelSteps ?? 0) > 0;
  }, "the first model call");
}
