// The figures of scenes from samples that are given.
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { services } from "@parley/contracts";
import type { Refusal, Sample } from "./clients.ts";
import { percentile, sceneFigures } from "./figures.ts";
import { chooseScenes, loadScenes, missingAbility, type SceneTarget } from "./scenes.ts";

const sample = (part: Partial<Sample> & { tookMs?: number }): Sample => ({
  kind: "openai",
  id: "load-1",
  hasEffect: false,
  sentAtMs: 1_000,
  answeredAtMs: 1_000 + (part.tookMs ?? 10),
  problem: null,
  refusals: [],
  ...part,
});
const refusal = (status: number | null, hasRetryAfter = false): Refusal => ({ status, hasRetryAfter, reason: "" });

describe("the figures of a scene", () => {
  test("contain the nearest-rank percentile, and 0 without values", () => {
    const hundred = Array.from({ length: 100 }, (_, index) => 100 - index);
    assert.deepEqual([percentile(hundred, 0.95), percentile([7], 0.95), percentile([], 0.95)], [95, 7, 0]);
  });

  test("compare answers before and during the scene for each kind of client", () => {
    const figures = sceneFigures(
      [sample({ tookMs: 20 }), sample({ kind: "telegram", tookMs: 30 })],
      [sample({ tookMs: 60 }), sample({ kind: "telegram", tookMs: 90 })],
    );
    assert.deepEqual(figures.p95BeforeMs, { openai: 20, telegram: 30 });
    assert.deepEqual(figures.p95DuringMs, { openai: 60, telegram: 90 });
  });

  test("count a repeated request once, and each refused attempt by its status", () => {
    const { repeatedShare, refusals } = sceneFigures(
      [],
      [
        sample({ refusals: [refusal(503, true), refusal(503, true), refusal(null)] }),
        sample({ refusals: [refusal(502)] }),
        sample({}),
        sample({}),
        sample({ kind: "telegram" }),
      ],
    );
    assert.equal(repeatedShare, 0.5);
    assert.deepEqual(refusals, { "503 with Retry-After": 2, "no response": 1, "502 without Retry-After": 1 });
  });

  test("name each message without its answer", () => {
    const { lost } = sceneFigures([sample({ problem: "no answer" })], [sample({ id: "load-2", problem: "400" })]);
    assert.deepEqual(lost, ["openai load-1: no answer", "openai load-2: 400"]);
  });
});

describe("the scenes", () => {
  test("are chosen by the beginning of their names, and an unknown name is refused", () => {
    assert.deepEqual(
      chooseScenes(["rollout:all", "restart"]).map(({ name }) => name),
      ["rollout:all", "restart:postgres", "restart:redis", "restart:nats"],
    );
    assert.equal(chooseScenes([]).length, loadScenes.length);
    assert.throws(() => chooseScenes(["explode"]), /no scene is called explode; there are rollout:/);
  });

  test("change exactly the service or server that they name", async () => {
    await Promise.all(
      loadScenes.map(async (scene) => {
        const changed: string[] = [];
        const note = (verb: string) => async (part: string) => void changed.push(`${verb}:${part}`);
        await scene.run({
          rollOut: note("rollout"),
          kill: note("kill"),
          cut: note("cut"),
          evict: note("drain"),
          restartServer: note("restart"),
          scale: note("scale"),
        });
        if (scene.name.endsWith(":all")) assert.equal(new Set(changed).size, services.length);
        else assert.deepEqual([...new Set(changed)], [scene.name]);
      }),
    );
  });

  test("are left out with the reason where the target cannot play them", () => {
    const nothing = async () => undefined;
    const target: SceneTarget = { rollOut: nothing, kill: nothing, restartServer: nothing, scale: nothing };
    const missing = loadScenes.filter((scene) => missingAbility(scene, target) !== undefined);
    assert.deepEqual(
      missing.map(({ name }) => name),
      [...services.map((service) => `cut:${service}`), "drain:all"],
    );
    assert.deepEqual(
      missing.filter((scene) => missingAbility(scene, { ...target, cut: nothing, evict: nothing }) !== undefined),
      [],
    );
  });
});
