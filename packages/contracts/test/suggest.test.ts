import assert from "node:assert/strict";
import { test } from "node:test";
import { nearest } from "../src/suggest.ts";

test("the nearest known word is suggested, letters that changed places being one edit; nothing where none is near", () => {
  assert.equal(nearest("stauts", ["status", "start"]), "status");
  assert.equal(nearest("doc", ["logs", "doctor"]), "doctor");
  assert.equal(nearest("xyz", ["logs", "doctor"]), null);
  assert.equal(nearest("", ["abc"]), null);
});
