import assert from "node:assert/strict";
import { test } from "node:test";
import { ModelError, type ModelFailure } from "../../src/model/provider.ts";
import { failureNotice, stoppedByUser } from "../../src/turn/finish.ts";

const failures: Record<ModelFailure, RegExp> = {
  rate_limit: /overloaded/,
  overloaded: /overloaded/,
  server: /did not respond properly/,
  connection: /did not respond properly/,
  stalled: /did not respond properly/,
  auth: /API key/,
  spend_limit: /spending limit/,
  context_overflow: /too long.*\/new/,
  unknown_model: /does not have this model \(why\).*\/model/,
  invalid: /rejected the request \(why\)/,
};

// design: 004.4, switch.13
test("explains every model failure and ends the turn as failed", () => {
  for (const [failure, words] of Object.entries(failures) as [ModelFailure, RegExp][]) {
    const notice = failureNotice(new ModelError(failure, "why"));
    assert.match(notice.text, /^I (?:cannot|could not) answer/, failure);
    assert.match(notice.text, words, failure);
    assert.deepEqual([notice.state, notice.exitReason], ["failed", "error"]);
  }
});

test("names the variable of a rejected key and shortens a long provider error", () => {
  const auth = failureNotice(new ModelError("auth", "no", { keyVariable: "OPENAI_API_KEY" }));
  assert.match(auth.text, /OPENAI_API_KEY/);
  assert.ok(failureNotice(new ModelError("invalid", "x".repeat(5_000))).text.length < 500);
});

test("reports a stopped turn as cancelled", () => {
  assert.deepEqual(stoppedByUser, { state: "cancelled", exitReason: "interrupted", text: "Stopped." });
});
