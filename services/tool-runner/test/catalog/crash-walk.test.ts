// Kills the runner (-9) at every point of a call of every tool in the catalogue, and counts the effects outside the runner,
// to check what the tool's class promises.
import assert from "node:assert/strict";
import type { ChildProcess } from "node:child_process";
import { after, before, describe, test } from "node:test";
import type { ToolCallRequest, ToolClass } from "@parley/contracts";
import { Cleanup } from "@parley/testing";
import { kill, killed, launch } from "../support/launch.ts";
import { pollUntil } from "@parley/testing/until";
import { cases, type Ready } from "./cases.ts";
import { openCatalogFixture, type CatalogFixture } from "./fixture.ts";

const cleanup = new Cleanup();
let fixture: CatalogFixture;

before(async () => {
  fixture = await openCatalogFixture(cleanup);
});
after(() => cleanup[Symbol.asyncDispose]());

/** The state of the call after it was sent again, and the minimum and maximum number of effects. */
interface Promised {
  state: "done" | "unknown";
  effects: readonly [least: number, most: number];
}

const points = {
  "tool.before_claim": { when: "before it is claimed", once: { state: "done", effects: [1, 1] } },
  "tool.after_claim": { when: "between claim and work", once: { state: "unknown", effects: [0, 0] } },
  "tool.running": { when: "as its work begins", once: { state: "unknown", effects: [0, 0] } },
  "tool.before_settle": { when: "between effect and settlement", once: { state: "unknown", effects: [1, 1] } },
  "tool.after_settle": { when: "between settlement and reply", once: { state: "done", effects: [1, 1] } },
} as const satisfies Record<string, { when: string; once: Promised }>;

/** One before the kill, one by the successor, and one repetition. */
const asked = 3;

/** `pure` calls are not claimed and never reach these points. */
const claims: ReadonlySet<string> = new Set(["tool.before_claim", "tool.after_claim"]);

function promised(toolClass: ToolClass, once: Promised): Promised {
  // A repeated idempotent call has the effect of one call; a pure one reads again on each request.
  if (toolClass === "once") return once;
  return { state: "done", effects: toolClass === "idempotent" ? [1, 1] : [1, asked] };
}

for (const [point, { when, once }] of Object.entries(points)) {
  describe(`killed ${when}, restarted under its name, called again`, () => {
    const name = point.replace(".", "-");
    const reaching = Object.entries(cases).filter(([, entry]) => entry.class !== "pure" || !claims.has(point));
    let successor: ChildProcess | undefined;
    const broken = new Map<string, { request: ToolCallRequest; ready: Ready }>();

    before(async () => {
      for (const [tool, entry] of reaching) {
        const [planned] = await fixture.runners.plan([{ tool, class: entry.class }]);
        assert.ok(planned !== undefined);
        const ready = await entry.ready(fixture, `${name}-${tool}`, planned);
        const request = { ...planned, input: JSON.stringify(ready.args) };
        const death = killed(await launch(fixture.runners, name, { ...fixture.env, FAULT: `${point}:kill` }));
        fixture.runners.call(request, 1_000).catch(() => undefined);
        assert.equal(await death, "SIGKILL", tool);
        broken.set(tool, { request, ready });
      }
      successor = await launch(fixture.runners, name, fixture.env);
    });
    after(async () => {
      if (successor !== undefined) await kill(successor);
    });

    for (const [tool, { class: toolClass }] of reaching) {
      const { state, effects } = promised(toolClass, once);
      // design: 000.16
      test(`${tool}, of class ${toolClass}, is ${state}`, async () => {
        const { request, ready } = broken.get(tool) ?? assert.fail();
        if (state === "unknown") {
          // The leader settles the step: the secret of the claim died with the runner.
          const refused = /whether it took effect is unknown, and it was not run again/;
          await assert.rejects(fixture.runners.call(request), refused);
          await assert.rejects(fixture.runners.call(request), refused);
          assert.equal((await fixture.runners.step(request)).state, "running");
        } else {
          const answer = await fixture.runners.call(request);
          assert.equal(answer.state, state, answer.result.content);
          assert.deepEqual(
            (await fixture.runners.step(request)).result,
            answer.result,
            "the stored result equals the returned one",
          );
          assert.match(answer.result.content, ready.said);
          // A leader that lost the reply sends the call again.
          assert.deepEqual(await fixture.runners.call(request), answer);
        }
        const count = ready.effects;
        if (count === undefined) return;
        const [least, most] = effects;
        await pollUntil(() => count() >= least, `${tool} has not taken effect`);
        assert.ok(count() <= most, `${tool} has taken effect ${count()} times`);
      });
    }
  });
}
