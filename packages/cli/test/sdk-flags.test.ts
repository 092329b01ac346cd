// The flags of an Agent SDK as options of a run.
import assert from "node:assert/strict";
import { test } from "node:test";
import { sdkOptions } from "../src/sdk/flags.ts";

test("denies the built-in tools that --tools does not list when the cluster reports no tools", () => {
  const { setup } = sdkOptions(["--print", "--tools", "Read,Grep", "hello"], []);
  const denied = setup.deny ?? [];
  for (const tool of ["ls", "exec", "write", "web_fetch", "message"]) assert.ok(denied.includes(tool), tool);
  for (const tool of ["read", "grep"]) assert.ok(!denied.includes(tool), tool);
});
