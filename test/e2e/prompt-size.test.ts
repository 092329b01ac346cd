// The size of the model request of the first turn of a session, as the model endpoint receives it.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { Cleanup } from "@parley/testing";
import { startClusterFixture, type ClusterFixture } from "./presets/support/fixture.ts";

/** A widely used agent of the same kind sends 12 KB. */
const maxRequestBytes = 12 * 1024;

const cleanup = new Cleanup();
let fixture: ClusterFixture;

before(async () => {
  fixture = await startClusterFixture(cleanup, null, { processes: [], model: true });
});
after(() => cleanup[Symbol.asyncDispose]());

test("sends at most 12 KiB for a turn without history when no setting changes the tools", async () => {
  await fixture.turn("say: hello", "size");
  const bytes = Buffer.byteLength(JSON.stringify(fixture.cluster.strict?.requests.at(-1)));
  assert.ok(bytes > 1_000 && bytes <= maxRequestBytes, `${bytes} bytes`);
});
