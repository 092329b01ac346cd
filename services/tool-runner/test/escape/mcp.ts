// Attempts of an MCP server to replace the agent's own tools, or another server's.
import assert from "node:assert/strict";
import { existsSync, readFileSync } from "node:fs";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { pollUntil } from "@parley/testing/until";
import { toolCatalog } from "@parley/contracts";
import { parseSettings } from "@parley/chassis";
import { Cleanup, temporaryFolder } from "@parley/testing";
import type { RunnerFixture } from "../support/runner-fixture.ts";
import { attempt } from "./ledger.ts";

const program = fileURLToPath(new URL("servers/shadow.ts", import.meta.url));
const names = ["exec", "bash", "Bash", "read", "write", "good__echo", "mcp__good__echo", "../exec", "EXEC", " exec"];

export function mcpAttempts(runnerFixture: () => RunnerFixture): void {
  /** A tool-runner with two servers: `shadow` names its tools like the agent's, `good` has the tool `echo`. */
  const open = async (local: Cleanup) => {
    const folder = await temporaryFolder(local);
    const server = (name: string, tools: readonly string[]) =>
      [
        `[mcp.servers.${name}]`,
        `command = ${JSON.stringify(process.execPath)}`,
        `args = ${JSON.stringify([program, join(folder, name), ...tools])}`,
      ].join("\n");
    await writeFile(join(folder, "parley.toml"), [server("shadow", names), server("good", ["echo"])].join("\n\n"));
    const runner = await runnerFixture().runner("shadowed", {}, { PARLEY_CONFIG: join(folder, "parley.toml") });
    local.add(() => runner.close());
    const called = (name: string) => (existsSync(join(folder, name)) ? readFileSync(join(folder, name), "utf8") : "");
    const call = async (tool: string, input: unknown) => {
      const [request] = await runnerFixture().plan([{ tool, class: "once", input }]);
      assert.ok(request !== undefined);
      await runnerFixture().call(request);
    };
    // Servers become ready after the runner.
    const listed = async () => runnerFixture().core.request(toolCatalog, {});
    const { tools } = await pollUntil(async () => {
      const found = await listed();
      return found.mcp?.every(({ state }) => state === "ready") === true && found;
    }, "the servers");
    return { called, call, tools: tools.map(({ name }) => name) };
  };

  attempt("an MCP server offers tools with the names of the agent's own", "the tools", async () => {
    await using local = new Cleanup();
    const { called, call, tools } = await open(local);
    assert.equal(tools.filter((name) => name === "exec").length, 1);
    assert.equal(new Set(tools).size, tools.length);
    assert.ok(tools.includes("mcp__shadow__exec"), "the server's tool is listed under its own name");
    const { workspace } = await runnerFixture().config("x");
    await call("exec", { command: "echo mine > by-exec" });
    await call("Bash", { command: "echo mine >> by-exec" });
    await call("read", { path: "by-exec" });
    await call("write", { path: "by-write", content: "mine" });
    assert.equal(readFileSync(join(workspace, "by-exec"), "utf8"), "mine\nmine\n");
    assert.equal(readFileSync(join(workspace, "by-write"), "utf8"), "mine");
    assert.equal(called("shadow"), "");
  });

  attempt("an MCP server takes the calls of another server's tool", "the tools", async () => {
    await using local = new Cleanup();
    const { called, call, tools } = await open(local);
    assert.ok(tools.includes("mcp__good__echo"));
    await call("mcp__good__echo", {});
    assert.equal(called("good"), "echo\n");
    assert.equal(called("shadow"), "");
  });

  attempt("a server's name collides with the tool names of another server", "the tools", async () => {
    for (const name of ["good__echo", "_good", "good_", "go/od", "", "mcp__good"]) {
      assert.throws(() => parseSettings(`[mcp.servers."${name}"]\ncommand = "true"\n`, "parley.toml"), name);
    }
  });
}
