// The examples that agent-core's own tools give of their arguments.
import assert from "node:assert/strict";
import { test } from "node:test";
import { ParleySettingsSchema } from "@parley/contracts";
import type { Memory } from "../../src/memory/memory.ts";
import { httpSynthesizer } from "../../src/speech/synthesizer.ts";
import { localTools } from "../../src/tools/local-tools.ts";
import { callTool, toolSearchTool } from "../../src/tools/tool-search.ts";

test("every tool has one to three examples, and each of them is accepted by the tool's schema", () => {
  const settings = ParleySettingsSchema.parse({
    voice: { speech: { url: "http://127.0.0.1", model: "m", voice: "v" } },
  });
  const { speech } = settings.voice;
  assert.ok(speech !== undefined);
  // They are not run.
  const tools = [
    ...localTools(settings, {} as Memory, httpSynthesizer(speech, undefined)),
    toolSearchTool({ descriptors: [], find: () => undefined }),
    callTool,
  ];
  assert.ok(tools.length > 15);
  for (const { descriptor, args } of tools) {
    const { name, examples = [] } = descriptor;
    assert.ok(examples.length >= 1 && examples.length <= 3, `${name} has ${examples.length} examples`);
    for (const example of examples) {
      const { error } = args.safeParse(example);
      assert.equal(error, undefined, `${name} refuses ${JSON.stringify(example)}`);
    }
  }
});
