import assert from "node:assert/strict";
import { test } from "node:test";
import { nearestName } from "../src/suggest.ts";

test("nearest suggests the closest known word and returns null when none is close", () => {
  assert.equal(nearestName("stauts", ["status", "start"]), "status");
  assert.equal(nearestName("doc", ["logs", "doctor"]), "doctor");
  assert.equal(nearestName("xyz", ["logs", "doctor"]), null);
  assert.equal(nearestName("", ["abc"]), null);
});
