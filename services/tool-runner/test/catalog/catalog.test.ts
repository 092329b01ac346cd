// Runs the checks that apply to every tool on every tool of the catalogue. A tool without an entry fails here.
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import {
  callToken,
  toolAlive,
  toolCancel,
  toolCatalog,
  type ToolCallRequest,
  type ToolDescriptor,
} from "@parley/contracts";
import { Cleanup } from "@parley/testing";
import { z } from "zod";
import { cases, type Args } from "./cases.ts";
import { pollUntil } from "@parley/testing/until";
import { openCatalogFixture, type CatalogFixture } from "./fixture.ts";

const cleanup = new Cleanup();
let fixture: CatalogFixture;
let tools: ReadonlyMap<string, ToolDescriptor>;

before(async () => {
  fixture = await openCatalogFixture(cleanup);
  await fixture.runners.runner("walks", { times: { aliveMs: 30 } }, fixture.env);
  const catalog = await fixture.runners.core.request(toolCatalog, {});
  tools = new Map(catalog.tools.map((tool) => [tool.name, tool]));
});
after(() => cleanup[Symbol.asyncDispose]());

test("the cases cover exactly the tools of the catalogue, with their classes", () => {
  const classes = (of: Iterable<[string, { class: string }]>) => Array.from(of, ([name, each]) => [name, each.class]);
  assert.deepEqual(classes(Object.entries(cases)), classes(tools));
});

test("declares a resource for every tool that changes something, so that none runs next to its writes", () => {
  const careless = [...tools.values()].filter(({ readOnly, resource }) => !readOnly && resource.kind === "none");
  assert.deepEqual(careless, []);
});

/** Calls of one turn, without their arguments. */
async function callsOf(tool: string, count: number): Promise<ToolCallRequest[]> {
  const { class: toolClass } = cases[tool] ?? assert.fail(tool);
  return fixture.runners.plan(Array.from({ length: count }, () => ({ tool, class: toolClass })));
}

async function oneCall(tool: string): Promise<ToolCallRequest> {
  const [request] = await callsOf(tool, 1);
  assert.ok(request !== undefined);
  return request;
}

const withArgs = (request: ToolCallRequest, args: Args): ToolCallRequest => ({
  ...request,
  input: JSON.stringify(args),
});

function cancel(request: ToolCallRequest): void {
  const { turnId, n } = request;
  fixture.runners.core.publish(toolCancel, { epoch: fixture.runners.epoch, turnId, n }, { call: callToken(turnId, n) });
}

/** Resolves after several liveness messages of the runner for this call. */
async function atWork(request: ToolCallRequest): Promise<void> {
  const enough = Promise.withResolvers<void>();
  let beats = 0;
  const heard = fixture.runners.core.subscribe(toolAlive, { call: callToken(request.turnId, request.n) }, () => {
    beats += 1;
    if (beats === 5) enough.resolve();
  });
  await enough.promise;
  heard.close();
}

const Schema = z.object({
  properties: z.record(z.string(), z.object({ type: z.string() })),
  required: z.array(z.string()).default([]),
});

/** A value of a type that the schema does not accept. */
const wrongFor: Readonly<Record<string, unknown>> = { string: 42, integer: "many", boolean: "perhaps" };

for (const [name, entry] of Object.entries(cases)) {
  describe(name, () => {
    test("succeeds and is settled as done", async () => {
      const request = await oneCall(name);
      const { args, said, effects } = await entry.ready(fixture, `happy-${name}`, request);
      const answer = await fixture.runners.call(withArgs(request, args));
      assert.equal(answer.state, "done", answer.result.content);
      assert.match(answer.result.content, said);
      if (effects !== undefined) assert.equal(await reached(effects, 1), 1);
      assert.equal((await fixture.runners.step(request)).state, "done");
    });

    // design: 000.15
    test("enforces its limits with an explanatory error", async () => {
      const first = await oneCall(name);
      const limits = await entry.limits(fixture, first);
      const requests = [first, ...(await callsOf(name, limits.length - 1))];
      for (const [index, { what, args, said }] of limits.entries()) {
        const request = requests[index];
        assert.ok(request !== undefined);
        const { result } = await fixture.runners.call(withArgs(request, args));
        assert.match(result.content, said, what);
      }
    });

    test("names the invalid field and the accepted arguments", async () => {
      const descriptor = tools.get(name) ?? assert.fail(name);
      const { properties, required } = Schema.parse(descriptor.inputSchema);
      const first = await oneCall(name);
      const { args } = await entry.ready(fixture, `wrong-${name}`, first);
      const wrong: [field: string, Args][] = [
        ["colour", { ...args, colour: "red" }],
        ...required.map((field): [string, Args] => [
          field,
          Object.fromEntries(Object.entries(args).filter(([each]) => each !== field)),
        ]),
        ...Object.entries(properties).map(([field, { type }]): [string, Args] => [
          field,
          { ...args, [field]: wrongFor[type] ?? assert.fail(`${field} is ${type}`) },
        ]),
      ];
      for (const [index, request] of (await callsOf(name, wrong.length)).entries()) {
        const [field, input] = wrong[index] ?? assert.fail();
        const { state, result } = await fixture.runners.call({
          ...withArgs(request, input),
          sessionId: first.sessionId,
        });
        assert.equal(state, "failed", field);
        assert.match(
          result.content,
          field === "colour" ? /Unrecognized key: "colour"/ : new RegExp(`^- ${field}: `, "m"),
        );
        for (const known of Object.keys(properties)) assert.ok(result.content.includes(known), `${known} is not named`);
      }
      const { state, result } = await fixture.runners.call({ ...first, input: '{"path": ' });
      assert.deepEqual([state, /are not valid JSON/.test(result.content)], ["failed", true]);
    });

    test("does not start when cancelled before the request arrives", async () => {
      const request = await oneCall(name);
      const { args, effects } = await entry.ready(fixture, `never-begun-${name}`, request);
      cancel(request);
      const answer = await fixture.runners.call(withArgs(request, args));
      assert.deepEqual([answer.state, answer.result.content], ["cancelled", "Cancelled"]);
      assert.equal((await fixture.runners.step(request)).state, "cancelled");
      if (effects !== undefined) assert.equal(effects(), 0);
    });

    const { waits } = entry;
    if (waits === undefined) return;
    test("ends immediately when cancelled and is settled as cancelled", async () => {
      const request = await oneCall(name);
      const args = await waits(fixture, request);
      const begun = atWork(request);
      const answer = fixture.runners.call(withArgs(request, args));
      await begun;
      const from = performance.now();
      cancel(request);
      const { state, result } = await answer;
      assert.match(`${state}: ${result.content}`, /^cancelled: Cancelled(?:$| while it ran\. Its output:\n)/);
      // A call that does not end by itself is abandoned after ten seconds.
      const ms = Math.round(performance.now() - from);
      assert.ok(ms < 8_000, `${name} took ${ms} ms to end`);
      assert.equal((await fixture.runners.step(request)).state, "cancelled");
    });
  });
}

/** Output of another process may arrive a moment later. */
async function reached(effects: () => number, expected: number): Promise<number> {
  await pollUntil(() => effects() >= expected, "the effect has not come");
  return effects();
}
