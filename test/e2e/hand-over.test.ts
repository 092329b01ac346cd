// A planned hand-over during a round of tools: the next leader receives the results of pure calls with the turn. Before the
// hand-over only the old leader has them.
import assert from "node:assert/strict";
import { createServer, type ServerResponse } from "node:http";
import { once } from "node:events";
import { setTimeout as delay } from "node:timers/promises";
import { after, test } from "node:test";
import { healthReports, store } from "@parley/contracts";
import { Cleanup } from "@parley/testing";
import { startClusterFixture, type ClusterFixture } from "./presets/support/fixture.ts";

const cleanup = new Cleanup();
after(() => cleanup[Symbol.asyncDispose]());

/** Serves pages and counts their requests; `/late` is answered when the test releases it. */
async function startPages() {
  const asked: string[] = [];
  const held: ServerResponse[] = [];
  let released = false;
  const server = createServer(({ url = "" }, response) => {
    asked.push(url);
    response.setHeader("content-type", "text/plain");
    if (url === "/late" && !released) held.push(response);
    else response.end(`the page ${url}`);
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  cleanup.add(async () => void server.close());
  const address = server.address();
  assert.ok(typeof address === "object" && address !== null);
  return {
    asked,
    at: (path: string) => `http://127.0.0.1:${address.port}${path}`,
    release() {
      released = true;
      for (const response of held) response.end("the page /late");
    },
  };
}

/** Starts a hand-over; resolves when it has begun. */
async function drainLeader({ bus, cluster }: ClusterFixture): Promise<void> {
  const replicas = await bus.gather(healthReports["agent-core"], {}, 500);
  const leader = replicas.find(({ role }) => role === "leader");
  assert.ok(leader !== undefined, "there is a leader");
  const { replica } = leader;
  await cluster.kill("agent-core", Number(replica.replace("agent-core-", "")), "SIGTERM");
  const draining = () => cluster.lines.some((line) => line.startsWith(`${replica} `) && line.includes('"draining"'));
  while (!draining()) await delay(10);
}

test("runs no pure call again when the leader hands a turn over", async () => {
  const pages = await startPages();
  const fixture = await startClusterFixture(cleanup, null, {
    processes: ["agent-core"],
    replicas: { "agent-core": 2 },
    settings: '[permissions]\nallow = ["web_fetch"]\n[tools.web]\nallow_private = ["127.0.0.1"]\n',
  });
  const fetching = (path: string) => `tool: web_fetch ${JSON.stringify({ url: pages.at(path) })}`;
  const messageId = await fixture.client.post(`${fetching("/early")}\n${fetching("/late")}\nthen\nsay: read them`);
  const early = await fixture.happens((event) => event.type === "tool.finished");
  assert.ok(early.type === "tool.finished");
  const { turnId } = early;
  const { steps } = await fixture.bus.request(store.turnGet, { turnId });
  const known = steps.filter(({ tool }) => tool === "web_fetch").map(({ result }) => result);
  assert.deepEqual(known, [null, null], "the leader alone has the first result");

  await drainLeader(fixture);
  pages.release();
  const turn = await fixture.ended(messageId);
  assert.deepEqual([turn.text, pages.asked.toSorted()], ["read them", ["/early", "/late"]]);
  assert.deepEqual(
    turn.results.map(({ content }) => /the page \S+/.exec(content)?.[0]),
    ["the page /early", "the page /late"],
  );
  const begun = fixture.events.filter((event) => event.type === "turn.started" && event.turnId === turnId);
  assert.equal(begun.length, 2, "the next leader has ended it");
});
