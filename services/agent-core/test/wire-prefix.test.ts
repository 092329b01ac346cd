// Provider caches and signatures depend on this: a longer conversation starts with the bytes of the shorter one.
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import type { Part } from "@parley/contracts";
import fc from "fast-check";
import { propertyRuns } from "@parley/testing/property-runs";
import { unknownCapabilities } from "../src/model/anthropic/capabilities.ts";
import { textOfBody, toRequest as toAnthropic } from "../src/model/anthropic/wire.ts";
import { initialDialect } from "../src/model/openai/dialect.ts";
import { toRequest as toOpenAi } from "../src/model/openai/wire.ts";
import type { ModelRequest, PromptMessage } from "../src/model/provider.ts";

const words = fc.string({ minLength: 1, maxLength: 12, unit: "grapheme" });
const json = fc.json({ maxDepth: 2 });
const userPart: fc.Arbitrary<Part> = fc.oneof(
  fc.record({ type: fc.constant("text" as const), text: words }),
  fc.record({
    type: fc.constant("tool_result" as const),
    id: words,
    name: words,
    content: fc.string(),
    isError: fc.boolean(),
  }),
  fc.record({
    type: fc.constant("binary" as const),
    mediaType: fc.constantFrom("image/png", "application/pdf", "audio/ogg"),
    data: fc.base64String(),
  }),
);
const modelPart: fc.Arbitrary<Part> = fc.oneof(
  fc.record({ type: fc.constant("text" as const), text: words }),
  fc.record({ type: fc.constant("tool_call" as const), id: words, name: words, input: json }),
  fc.record({
    type: fc.constant("reasoning" as const),
    text: fc.string(),
    signature: words,
    model: fc.constantFrom("anthropic:m", "anthropic:other"),
  }),
);
/** Messages of user and model in turn, ending with the user. */
const conversation: fc.Arbitrary<PromptMessage[]> = fc
  .tuple(
    fc.array(fc.tuple(fc.array(userPart, { minLength: 1 }), fc.array(modelPart, { minLength: 1 })), { maxLength: 6 }),
    fc.array(userPart, { minLength: 1 }),
  )
  .map(([rounds, last]) => [
    ...rounds.flatMap(([said, answered]): PromptMessage[] => [
      { role: "user", parts: said },
      { role: "assistant", parts: answered },
    ]),
    { role: "user", parts: last },
  ]);

const requestOf = (messages: PromptMessage[]): ModelRequest => ({
  system: "be kind",
  tools: [{ name: "now", description: "The time.", inputSchema: { type: "object" } }],
  messages,
  maxOutputTokens: 100,
});
const options = { model: "m", thinking: "adaptive", display: "updates" } as const;
const limit = { field: "max_tokens", atMostTokens: Number.POSITIVE_INFINITY } as const;
const dialect = initialDialect("http://127.0.0.1/v1");

const wires = {
  anthropic: (messages: PromptMessage[]) => {
    const { system, tools, messages: sent } = toAnthropic(requestOf(messages), options, unknownCapabilities);
    return { head: [system, tools], sent };
  },
  openai: (messages: PromptMessage[]) => {
    const { tools, messages: sent } = toOpenAi(requestOf(messages), "m", limit, dialect);
    return { head: [tools], sent };
  },
};
/** Cache breakpoints are not part of the cached content. */
const bytes = (value: unknown) =>
  JSON.stringify(value, (key, each: unknown) => (key === "cache_control" ? undefined : each));

for (const [name, wire] of Object.entries(wires)) {
  describe(`a request to ${name}`, () => {
    test("starts with the bytes of the previous request for any appended messages", () => {
      fc.assert(
        fc.property(conversation, fc.nat(), (messages, cut) => {
          const length = 1 + 2 * (cut % ((messages.length + 1) / 2));
          const before = wire(messages.slice(0, length));
          const after = wire(messages);
          assert.equal(bytes(after.head), bytes(before.head));
          assert.ok(bytes(after.sent).startsWith(bytes(before.sent).slice(0, -1)));
        }),
        { numRuns: propertyRuns(3_000) },
      );
    });

    test("has the same bytes for the same conversation and leaves it unchanged", () => {
      fc.assert(
        fc.property(conversation, (messages) => {
          const kept = JSON.stringify(messages);
          const first = JSON.stringify(wire(messages));
          assert.equal(JSON.stringify(wire(messages)), first);
          assert.equal(JSON.stringify(messages), kept);
        }),
      );
    });
  });
}

test("sets at most four cache breakpoints for a conversation of any length", () => {
  fc.assert(
    fc.property(conversation, (messages) => {
      const sent = JSON.stringify(toAnthropic(requestOf(messages), options, unknownCapabilities));
      assert.ok(sent.split('"cache_control":{').length - 1 <= 4);
    }),
  );
});

describe("the text of Claude's request", () => {
  test("contains the prompt and the cache time of its request when the same tools were sent with others", () => {
    const first = requestOf([{ role: "user", parts: [{ type: "text", text: "hello" }] }]);
    first.tools[0] = { ...first.tools[0], examples: [{ zone: "UTC" }] } as ModelRequest["tools"][number];
    const requests: ModelRequest[] = [first, { ...first, system: "be brief" }, { ...first, cacheTtl: "1h" }, first];
    for (const examples of [false, true]) {
      for (const request of requests) {
        const sent = textOfBody(toAnthropic(request, { ...options, examples }, unknownCapabilities));
        // A copy shares no list of tools with an earlier request.
        const { betas: _, ...body } = toAnthropic(
          structuredClone(request),
          { ...options, examples },
          unknownCapabilities,
        );
        assert.deepEqual(JSON.parse(sent), JSON.parse(JSON.stringify(body)));
      }
    }
  });
});
