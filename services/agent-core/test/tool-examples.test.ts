// How a tool's example arguments are sent to each kind of model endpoint.
import assert from "node:assert/strict";
import { test } from "node:test";
import { unknownCapabilities } from "../src/model/anthropic/capabilities.ts";
import { toRequest as toAnthropic } from "../src/model/anthropic/wire.ts";
import { initialDialect } from "../src/model/openai/dialect.ts";
import { toRequest as toOpenAi } from "../src/model/openai/wire.ts";
import type { ModelRequest } from "../src/model/provider.ts";
import { prefixOf } from "../src/session/prefix.ts";
import { tool } from "./turn/support.ts";

const examples = [{ at: "noon" }, { at: "never" }];
const request: ModelRequest = {
  system: "be kind",
  tools: prefixOf("", [tool("later", { examples, showExamples: true }), tool("now", { examples })], {}).tools,
  messages: [{ role: "user", parts: [{ type: "text", text: "hello" }] }],
  maxOutputTokens: 100,
};
const behind = 'What later does, at length.\nExample: {"at":"noon"}\nExample: {"at":"never"}';
const anthropic = (takesExamples: boolean) =>
  toAnthropic(
    request,
    { model: "m", thinking: "off", display: null, examples: takesExamples },
    unknownCapabilities,
  ).tools?.map((each) => ("input_schema" in each ? [each.description, each.input_examples] : []));

test("sends examples as a field when the endpoint supports it and the tool shows them", () => {
  assert.deepEqual(anthropic(true), [
    ["What later does, at length.", examples],
    ["What now does, at length.", undefined],
  ]);
});

test("appends examples to the description when the endpoint has no field for them", () => {
  const plain = [behind, "What now does, at length."];
  assert.deepEqual(
    anthropic(false),
    plain.map((description) => [description, undefined]),
  );
  const limit = { field: "max_tokens", atMostTokens: 100 } as const;
  const { tools } = toOpenAi(request, "m", limit, initialDialect("http://127.0.0.1/v1"));
  assert.deepEqual(
    tools?.map((each) => each.function.description),
    plain,
  );
});
