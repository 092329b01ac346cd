// The OpenAI-compatible API as its callers see it, against a real store.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import OpenAI from "openai";
import { startGatewayStack, token, type GatewayStack, type Replica } from "./support/stack.ts";

let stack: GatewayStack;
let gateway: Replica;
let client: OpenAI;

before(async () => {
  stack = await startGatewayStack();
  gateway = await stack.gateway();
  client = new OpenAI({ baseURL: `${gateway.url}/v1`, apiKey: token, maxRetries: 0 });
});
after(() => stack[Symbol.asyncDispose]());

test("the openai client gets the whole answer", async () => {
  const answer = await client.chat.completions.create({
    model: "parley",
    messages: [{ role: "user", content: "hello" }],
  });
  assert.equal(answer.choices[0]?.message.content, "You said: hello");
  assert.equal(answer.choices[0]?.finish_reason, "stop");
  assert.equal(answer.usage?.total_tokens, 5);
});
