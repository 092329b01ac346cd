// The faults of the scripted model.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { startScriptedModel, type ScriptedModel } from "../src/model/scripted-model.ts";

let model: ScriptedModel;

before(async () => {
  // Without a pause between chunks, a cut loses those that are not sent yet.
  model = await startScriptedModel({ latencyMs: 10 });
});
after(() => model.stop());

/** The number of events of an answer, complete or cut. */
async function eventsOf(content: string): Promise<number> {
  const response = await fetch(`${model.url}/v1/messages`, {
    method: "POST",
    headers: { "content-type": "application/json", "x-api-key": "k", "anthropic-version": "2023-06-01" },
    body: JSON.stringify({ model: "m", max_tokens: 100, stream: true, messages: [{ role: "user", content }] }),
  });
  let text = "";
  const decoder = new TextDecoder();
  try {
    for await (const chunk of response.body ?? []) text += decoder.decode(chunk as Uint8Array, { stream: true });
  } catch (error) {
    assert.ok(error instanceof Error && error.message === "terminated");
  }
  return text.match(/^data: /gm)?.length ?? 0;
}

test("cuts each answer after as many chunks as its fault says", async () => {
  const script = "say: an answer that is long enough for a dozen chunks";
  for (const cutAfterChunks of [2, 6]) model.failNext({ cutAfterChunks });
  const [early, late, complete] = [await eventsOf(script), await eventsOf(script), await eventsOf(script)];
  // The connection may close before the last chunk has left.
  assert.ok(early <= 2 && late > 2 && late <= 6 && complete > 6, `${early}, ${late} and ${complete} chunks`);
});
