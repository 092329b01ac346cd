// A replica that runs background processes and accepts no calls: `process` runs on another replica, which may be killed.
import assert from "node:assert/strict";
import { totalmem } from "node:os";
import type { Cleanup } from "@parley/testing";
import { openExecutor } from "../../src/sandbox/executor.ts";
import { isolationTag } from "../../src/sandbox/isolation.ts";
import { defaultExecLimits } from "../../src/sandbox/limits.ts";
import { serveProcesses } from "../../src/processes/api.ts";
import { Processes } from "../../src/processes/processes.ts";
import { execTool } from "../../src/tools/exec.ts";
import { makeWorkspaceFixture } from "../support/workspace-fixture.ts";
import type { RunnerFixture } from "../support/runner-fixture.ts";

export interface Home {
  /** Starts a background process of a session here and resolves with its id. */
  begin(sessionId: string, command: string): Promise<string>;
}

export async function openHome(runners: RunnerFixture, cleanup: Cleanup): Promise<Home> {
  const bus = await runners.stack.bus("tool-runner");
  const ground = await makeWorkspaceFixture();
  const limits = defaultExecLimits(totalmem());
  const executor = await openExecutor({
    workspace: ground.workspace,
    setting: "none",
    bwrap: "bwrap",
    searchPath: "/usr/bin:/bin",
    limits,
  });
  const processes = new Processes("home", { maxPerSession: 8, maxInAll: 64 });
  const times = { timeoutSeconds: 250, backgroundAfterSeconds: 0, backgroundTimeoutSeconds: 600 };
  const exec = execTool({ executor, limits, processes, times });
  const served = serveProcesses(bus, "home", { processes, limits, isolation: isolationTag(executor.isolation) });
  await bus.flush();
  cleanup.add(async () => {
    for (const each of served) each.close();
    await processes.close();
    await ground[Symbol.asyncDispose]();
  });
  return {
    begin: async (sessionId, command) => {
      const { content } = await ground.call(exec, { command, background: true }, undefined, sessionId);
      return /in the background as (\S+@home)/.exec(content)?.[1] ?? assert.fail(content);
    },
  };
}
