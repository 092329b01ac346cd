// Checks the common guarantees of all local tools; a tool without an entry in cases.ts fails. Each call runs twice for the same
// step, as after a crash between effect and settlement.
import assert from "node:assert/strict";
import { createServer } from "node:http";
import { after, before, describe, test } from "node:test";
import { ParleySettingsSchema } from "@parley/contracts";
import { Cleanup } from "@parley/testing";
import { z } from "zod";
import { Memory } from "../../src/memory/memory.ts";
import { httpSynthesizer, type Synthesizer } from "../../src/voice/synthesizer.ts";
import { readSkills } from "../../src/prompt/skills.ts";
import type { PromptDocument } from "../../src/prompt/documents.ts";
import type { LocalTool } from "../../src/tools/local-tool.ts";
import { localTools } from "../../src/tools/local-tools.ts";
import { argumentErrors } from "../../src/tools/validate-arguments.ts";
import { cases } from "./cases.ts";
import { openToolContext, type ToolContextFixture } from "./tool-context.ts";

const cleanup = new Cleanup();
let room: ToolContextFixture;
let tools: ReadonlyMap<string, LocalTool>;

before(async () => {
  room = await openToolContext(cleanup);
  const { core: bus, settings } = room;
  const { log, leaderStore } = await room.call("sleep", "pure");
  const memory = new Memory({ bus, leaderStore, log, embedder: null });
  cleanup.add(async () => memory.close());
  const all = localTools(settings, memory, await speaker(), {
    current: async () => readSkills(new Map([[tone.path, tone]])),
  });
  tools = new Map(all.map((tool) => [tool.descriptor.name, tool]));
});
after(() => cleanup[Symbol.asyncDispose]());

const tone: PromptDocument = {
  path: "skills/tone/SKILL.md",
  version: 1,
  content: "---\nname: tone\ndescription: How to speak.\n---\nBe kind.\n",
  untrusted: [],
  turnId: null,
};

/** A speech service that returns fixed audio, so that the tool `speak` is available. */
async function speaker(): Promise<Synthesizer> {
  const page = Buffer.concat([Buffer.from("OggS"), Buffer.alloc(24), Buffer.from("OpusHead"), Buffer.alloc(64)]);
  const server = createServer((_, response) => response.writeHead(200, { "content-type": "audio/ogg" }).end(page));
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  cleanup.add(async () => {
    server.closeAllConnections();
    server.close();
  });
  const bound = server.address();
  assert.ok(bound !== null && typeof bound === "object");
  const url = `http://127.0.0.1:${bound.port}/v1`;
  const { voice } = ParleySettingsSchema.parse({ voice: { speech: { url, model: "tts" } } });
  assert.ok(voice.speech !== undefined);
  return httpSynthesizer(voice.speech, undefined);
}

const toolOf = (name: string) => tools.get(name) ?? assert.fail(`there is no tool ${name}`);

// design: 003.18b
test("has one case for each local tool, with the tool's effect class", () => {
  const said = [...tools.values()].map(({ descriptor }) => [descriptor.name, descriptor.class]);
  assert.deepEqual(
    Object.entries(cases).map(([name, entry]) => [name, entry.class]),
    said.toSorted(([a = ""], [b = ""]) => (a < b ? -1 : 1)),
  );
});

// design: 000.37c
test("has no tools for sub-agents when they are disabled", () => {
  const settings = ParleySettingsSchema.parse({ subagents: { enabled: false }, context: { built_in_skills: true } });
  const without = localTools(settings, { search: () => assert.fail("no search") }, null, {
    current: () => assert.fail("no skills"),
  });
  const kept = new Set(without.map(({ descriptor }) => descriptor.name));
  assert.deepEqual([...tools.keys()].filter((name) => name !== "speak" && !kept.has(name)).sort(), [
    "agents_list",
    "sessions_spawn",
    "subagents",
  ]);
});

const Schema = z.object({
  properties: z.record(z.string(), z.object({ type: z.string().optional() })).default({}),
  required: z.array(z.string()).default([]),
});
/** Values of another type than the schema requires. */
const wrongFor: Readonly<Record<string, unknown>> = {
  string: 42,
  integer: "many",
  number: "many",
  boolean: "perhaps",
  array: "one",
  object: "one",
};

for (const [name, entry] of Object.entries(cases)) {
  describe(name, () => {
    // design: 000.18
    test("has one effect when it runs twice for the same step", async () => {
      const context = await room.call(name, entry.class);
      const { args, said, effects } = await entry.ready(room, context);
      const tool = toolOf(name);
      const input = JSON.stringify(args);
      assert.equal(await argumentErrors(tool.descriptor, input), undefined);
      const first = await tool.run(input, context);
      const again = await tool.run(input, context);
      assert.deepEqual([first.status, again.status], said === undefined ? ["waiting", "waiting"] : ["done", "done"]);
      const result = await room.end(context, first);
      assert.deepEqual(await room.end(context, again), result);
      if (said !== undefined) assert.match(result?.content ?? "", said);
      assert.equal(effects === undefined, entry.class === "pure", "only pure tools have no effect counter");
      if (effects !== undefined) assert.equal(await effects(), 1);
    });

    // design: 000.18
    test("rejects invalid arguments with the field and the valid names", async () => {
      const context = await room.call(name, entry.class);
      const { args } = await entry.ready(room, context);
      const { properties, required } = Schema.parse(toolOf(name).descriptor.inputSchema);
      const wrong: [field: RegExp, unknown][] = [
        [/Unrecognized key: "colour"/, { ...args, colour: "red" }],
        [/arguments: /, [args]],
        ...required.map((field): [RegExp, unknown] => [
          new RegExp(`${field}: `),
          Object.fromEntries(Object.entries(args).filter(([each]) => each !== field)),
        ]),
        ...Object.entries(properties).flatMap(([field, { type = "" }]): [RegExp, unknown][] =>
          type === "" ? [] : [[new RegExp(`${field}: `), { ...args, [field]: wrongFor[type] }]],
        ),
      ];
      for (const [field, input] of wrong) {
        const outcome = await toolOf(name).run(JSON.stringify(input), context);
        assert.ok(outcome.status === "failed", `${JSON.stringify(input)}: ${outcome.status}`);
        const before = await argumentErrors(toolOf(name).descriptor, JSON.stringify(input));
        assert.ok(before !== undefined, `${JSON.stringify(input)}: approval would be requested`);
        assert.match(outcome.content, field);
        for (const known of Object.keys(properties))
          assert.ok(outcome.content.includes(known), `${known} is not listed`);
      }
      const broken = await toolOf(name).run('{"path": ', context);
      assert.equal(broken.status, "failed");
    });

    if (entry.limits.length === 0) return;
    test("enforces its limits and reports the violation", async () => {
      for (const { what, args, said } of entry.limits) {
        const outcome = await toolOf(name).run(JSON.stringify(args), await room.call(name, entry.class));
        assert.ok(outcome.status === "failed", `${what}: ${outcome.status}`);
        assert.match(outcome.content, said, what);
      }
    });
  });
}
