// Requests for model answers while the leader changes.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { agentSample, leaderChanged, WireError } from "@parley/contracts";
import { Cleanup } from "@parley/testing";
import { createSamplingClient } from "../../src/mcp/sampling.ts";
import type { SampleResult } from "../../src/tool/requests.ts";
import { openRunnerFixture, type RunnerFixture } from "../support/runner-fixture.ts";

const cleanup = new Cleanup();
let fixture: RunnerFixture;

before(async () => {
  fixture = await openRunnerFixture(cleanup);
});
after(() => cleanup[Symbol.asyncDispose]());

const answer: SampleResult = { status: "answered", text: "forty-two", model: "test", stopReason: "endTurn" };
const request = {
  server: "docs",
  system: null,
  messages: [{ role: "user" as const, parts: [{ type: "text" as const, text: "how many?" }] }],
  maxTokens: 10,
  stopSequences: [],
};

/** Asks in epoch 1; `reply` answers the requests of that epoch, after the leader of epoch 2 has announced itself. */
async function sampled(reply: () => Promise<SampleResult>): Promise<{ result: SampleResult; epochs: number[] }> {
  const bus = await fixture.stack.bus("tool-runner");
  let epoch = 1;
  const epochs: number[] = [];
  const announced = bus.subscribe(leaderChanged, {}, (leader) => void (epoch = leader.epoch));
  const served = fixture.core.serve(agentSample, async (input) => {
    epochs.push(input.epoch);
    if (input.epoch > 1) return answer;
    fixture.core.publish(leaderChanged, { epoch: 2, holder: "test" });
    return reply();
  });
  await fixture.core.flush();
  try {
    const client = createSamplingClient({ bus, epoch: () => epoch }, { turnId: "turn", n: 1 });
    return { result: await client.sample(request, AbortSignal.timeout(20_000)), epochs };
  } finally {
    announced.close();
    served.close();
  }
}

test("asks again when the new leader refuses the old epoch after its announcement", async () => {
  const { result, epochs } = await sampled(() => Promise.reject(new WireError("STALE_EPOCH", "epoch 2 leads")));
  assert.deepEqual([result, epochs], [answer, [1, 2]]);
});

test("never asks again when no reply comes after the announcement of a new leader", async () => {
  const reply = Promise.withResolvers<SampleResult>();
  const { result, epochs } = await sampled(() => reply.promise);
  reply.resolve(answer);
  assert.deepEqual([result, epochs], [{ status: "refused", reason: "the leader changed during the model call" }, [1]]);
});
