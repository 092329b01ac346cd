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

test("denies every MCP server of the settings with --strict-mcp-config when no tool of them is known", () => {
  const { setup } = sdkOptions(["--print", "--strict-mcp-config", "hello"], ["github", "my_files"]);
  assert.deepEqual(setup.deny, ["mcp__github__*", "mcp__my_files__*"]);
  assert.equal(sdkOptions(["--print", "hello"], ["github"]).setup.deny, undefined);
});

test("refuses --strict-mcp-config when the gateway does not list the MCP servers", () => {
  assert.throws(() => sdkOptions(["--strict-mcp-config", "hello"], undefined), /not supported by this gateway/);
});
