import assert from "node:assert/strict";
import { test } from "node:test";
import { nearest } from "../src/suggest.ts";

test("nearest suggests the closest known word and returns null when none is close", () => {
  assert.equal(nearest("stauts", ["status", "start"]), "status");
  assert.equal(nearest("doc", ["logs", "doctor"]), "doctor");
  assert.equal(nearest("xyz", ["logs", "doctor"]), null);
  assert.equal(nearest("", ["abc"]), null);
});
