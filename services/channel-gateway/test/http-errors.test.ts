// The conversion of bus errors to HTTP errors.
import assert from "node:assert/strict";
import { test } from "node:test";
import { WireError } from "@parley/contracts";
import { toHttpError } from "../src/http/errors.ts";

test("keeps the field and removes the bus subject from a validation error", () => {
  const told = (message: string) => toHttpError(new WireError("INVALID_INPUT", message)).message;
  assert.equal(told("parley.store.document.get: path: no such document"), "path: no such document");
  assert.equal(told("a.b.store.document.get: (root): not JSON"), "(root): not JSON");
  assert.equal(told("todos.0.status: wrong: very"), "todos.0.status: wrong: very");
  assert.equal(told("schedule: it is past"), "schedule: it is past");
  assert.equal(told("nothing with a colon"), "nothing with a colon");
});
