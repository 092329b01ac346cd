// The environment of the escape suite: two tool-runner processes with bubblewrap and secrets in their environment, surrounded by
// typical targets of an attack.
import assert from "node:assert/strict";
import type { ChildProcess } from "node:child_process";
import { randomUUID } from "node:crypto";
import { existsSync, readFileSync } from "node:fs";
import { mkdir, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import type { Bus } from "@parley/bus";
import type { ToolCallRequest, ToolClass } from "@parley/contracts";
import { temporaryFolder, type Cleanup } from "@parley/testing";
import { bwrap } from "../support/commands.ts";
import { launch } from "../support/launch.ts";
import { openRunnerFixture, type RunnerFixture } from "../support/runner-fixture.ts";

/** Content of every place that must not be read. */
export const canary = `canary-${randomUUID()}`;

export interface EscapeFixture {
  runnerFixture: RunnerFixture;
  gateway: Bus;
  runners: readonly ChildProcess[];
  workspace: string;
  /** A sibling folder of the workspace; its `secret.txt` contains the canary. */
  outside: string;
  /** Runs a call and returns what the model would receive. */
  call(
    this: void,
    tool: string,
    toolClass: ToolClass,
    input: unknown,
    more?: Partial<ToolCallRequest>,
  ): Promise<string>;
  /** Runs a command on one of the runners and returns its output from a workspace file, read from outside. */
  raid(command: string, input?: Record<string, unknown>): Promise<string>;
}

/** The last line of every raid; without it, the attempt did not run. */
const tried = "tried to the end";

export async function openEscapeFixture(cleanup: Cleanup): Promise<EscapeFixture> {
  const runnerFixture = await openRunnerFixture(cleanup);
  const { workspace } = await runnerFixture.config("x");
  await mkdir(workspace, { recursive: true });
  const outside = join(dirname(workspace), "outside");
  for (const name of ["outside", `.workspace-checkpoints`, `.workspace-mcp`]) {
    await mkdir(join(dirname(workspace), name), { recursive: true });
    await writeFile(join(dirname(workspace), name, "secret.txt"), `${canary}\n`);
  }
  const startup = join(await temporaryFolder(cleanup), "startup.sh");
  await writeFile(startup, `echo run >> ${outside}/started-by-bash\n`);
  const config = join(await temporaryFolder(cleanup), "parley.toml");
  // Whether an attempt runs to its end must not depend on the speed of the machine.
  await writeFile(config, "[tools.exec]\nbackground_after_seconds = 0\ntimeout_seconds = 250\n");
  const runners = await Promise.all(
    ["first", "second"].map((name) =>
      launch(runnerFixture, name, {
        ESCAPE_CANARY: canary,
        PARLEY_CONFIG: config,
        BASH_ENV: startup,
        ENV: startup,
        ...(existsSync(preload) ? { LD_PRELOAD: preload } : {}),
        PARLEY_EXEC_ISOLATION: bwrap === undefined ? "none" : "bubblewrap",
        PARLEY_BWRAP: bwrap ?? "",
      }),
    ),
  );
  const fixture: EscapeFixture = {
    runnerFixture,
    gateway: await runnerFixture.stack.bus("channel-gateway"),
    runners,
    workspace,
    outside,
    call: async (tool, toolClass, input, more = {}) => {
      const [request] = await runnerFixture.plan([{ tool, class: toolClass, input }]);
      assert.ok(request !== undefined);
      return (await runnerFixture.call({ ...request, ...more })).result.content;
    },
    raid: async (command, input = {}) => {
      const loot = `loot-${randomUUID()}`;
      const result = await fixture.call("exec", "once", {
        command: `{ ${command}\n} > ${loot} 2>&1; echo '${tried}' >> ${loot}`,
        ...input,
      });
      assert.ok(existsSync(join(workspace, loot)), `the command did not run: ${result}`);
      const found = readFileSync(join(workspace, loot), "utf8");
      assert.match(found, new RegExp(`${tried}\n$`));
      return found;
    },
  };
  return fixture;
}

/** A library that a shell does not load by itself. */
export const preload = "/lib/x86_64-linux-gnu/libm.so.6";

export function isAlive(pid: number | undefined): boolean {
  return pid !== undefined && existsSync(`/proc/${pid}`) && !readFileSync(`/proc/${pid}/stat`, "utf8").includes(") Z ");
}
