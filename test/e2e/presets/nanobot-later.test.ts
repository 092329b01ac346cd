// The later form of the preset `nanobot`: three chats at a time, a second model, and a budget.
import assert from "node:assert/strict";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { Cleanup } from "@parley/testing";
import { startClusterFixture, textsOf, waitingFor, type ClusterFixture } from "./support/fixture.ts";

const cleanup = new Cleanup();
let fixture: ClusterFixture;

before(async () => {
  fixture = await startClusterFixture(cleanup, "nanobot", {
    processes: [],
    settings: `
[agent]
max_concurrent_turns = 3
[models]
fallback = ["rehearsal"]
[models.retry]
base_seconds = 0.01
[profiles.second]
model = "down:any"
[llm.down]
base_url = "http://127.0.0.1:9/v1"
[limits]
max_usd = 0.35
[models.known.rehearsal]
price = { input = 0, output = 100_000 }
`,
  });
});
after(() => cleanup[Symbol.asyncDispose]());

// design: 004.33b
test("answers three chats at a time with max_concurrent_turns = 3, and a fourth afterwards", async () => {
  const chats = ["a", "b", "c"];
  const running: string[] = [];
  for (const chat of chats)
    running.push(await fixture.client.post(`${waitingFor("open")}\nthen\nsay: ${chat}`, { conversation: chat }));
  // All three run: each waits in its command for the file.
  await Promise.all(running.map((id) => fixture.begun(id)));
  const fourth = await fixture.client.post("say: d", { conversation: "d" });
  await fixture.happens((event) => event.type === "message" && textsOf([event.message])[0] === "say: d");
  await writeFile(join(fixture.cluster.home, "workspace", "open"), "");
  const turns = await Promise.all([...running, fourth].map((id) => fixture.ended(id)));
  assert.deepEqual(
    turns.map(({ text }) => text),
    [...chats, "d"],
  );
  const isLast = ({ turnId }: { turnId: string }) => turnId === turns[3]?.turnId;
  await fixture.happens((event) => event.type === "turn.finished" && isLast(event));
  const order = fixture.events.flatMap((event) => {
    if (event.type === "turn.started") return [isLast(event) ? "fourth" : "started"];
    return event.type === "turn.finished" && !isLast(event) ? ["ended"] : [];
  });
  assert.deepEqual(order.slice(0, 4), ["started", "started", "started", "ended"]);
});

// design: 004.39c
test("answers with the fallback model when the chosen one fails", async () => {
  const body = JSON.stringify({ text: "say: instead", conversation: "fallback", profile: "second" });
  const response = await fixture.client.fetch("/api/messages", { method: "POST", body });
  const { messageId } = (await response.json()) as { messageId: string };
  const turn = await fixture.ended(messageId);
  assert.deepEqual([turn.exitReason, turn.text], ["end_turn", "instead"]);
  assert.equal(turn.messages.findLast(({ role }) => role === "assistant")?.model, "rehearsal");
  const failover = await fixture.happens((event) => event.type === "model.failover" && event.turnId === turn.turnId);
  assert.ok(failover.type === "model.failover" && failover.from === "down:any");
});

test("ends a turn when its calls have cost the limit in dollars", async () => {
  const call = "usage: 0 1\ntool: ls {}";
  const turn = await fixture.turn(Array.from({ length: 8 }, () => call).join("\nthen\n"), "budget");
  assert.deepEqual([turn.exitReason, turn.modelSteps], ["max_budget", 4]);
});
