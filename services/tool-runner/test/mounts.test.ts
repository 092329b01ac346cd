// Mounts: folders of the machine that commands of the owner read in the sandbox.
import assert from "node:assert/strict";
import { readFileSync, writeFileSync } from "node:fs";
import { mkdir } from "node:fs/promises";
import { totalmem } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { openExecutor } from "../src/sandbox/executor.ts";
import { defaultExecLimits } from "../src/sandbox/limits.ts";
import { Processes } from "../src/processes/processes.ts";
import { execTool } from "../src/tools/exec.ts";
import { bwrap } from "./support/commands.ts";
import { makeWorkspaceFixture, type WorkspaceFixture } from "./support/workspace-fixture.ts";

const limits = defaultExecLimits(totalmem());
const skip = bwrap === undefined ? "no bubblewrap here" : false;

async function openShell({ workspace }: WorkspaceFixture, mounts: ReadonlyMap<string, string>) {
  const options = {
    workspace,
    setting: "bubblewrap",
    bwrap: bwrap ?? "bwrap",
    searchPath: "/usr/bin",
    limits,
  } as const;
  const executor = await openExecutor({ ...options, mounts });
  const times = { timeoutSeconds: 250, backgroundAfterSeconds: 0, backgroundTimeoutSeconds: 250 };
  const processes = new Processes("here", { maxPerSession: 1, maxInAll: 1 });
  return { executor, tool: execTool({ executor, limits, processes, times }) };
}

// design: 000.34b
test("a mount can be read and not changed", { skip }, async () => {
  await using ground = await makeWorkspaceFixture();
  const folder = join(ground.outside, "manuals");
  await mkdir(folder);
  writeFileSync(join(folder, "intro.txt"), "page one\n");
  const { tool } = await openShell(ground, new Map([["manuals", folder]]));
  assert.match(tool.descriptor.description, /can read, and not change, these folders: \/mnt\/manuals\./);
  const command =
    "cat /mnt/manuals/intro.txt; ls /mnt; echo changed > /mnt/manuals/intro.txt; rm /mnt/manuals/intro.txt; touch /mnt/manuals/new";
  const { content } = await ground.call(tool, { command });
  assert.match(content, /^page one\nmanuals\n/);
  assert.equal(content.match(/Read-only file system/g)?.length, 3, content);
  assert.equal(readFileSync(join(folder, "intro.txt"), "utf8"), "page one\n");
});

test("a command that is not the owner's sees no mount", { skip }, async () => {
  await using ground = await makeWorkspaceFixture();
  const folder = join(ground.outside, "manuals");
  await mkdir(folder);
  const { executor } = await openShell(ground, new Map([["manuals", folder]]));
  await using place = await ground.workspace.resolve(".");
  const chunks: Buffer[] = [];
  const { ended } = await executor.start({
    command: "ls -d /mnt/manuals && echo seen",
    workspace: ground.workspace,
    isOwners: false,
    place,
    interactive: false,
    callName: "call",
    onOutput: (chunk) => void chunks.push(chunk),
  });
  assert.notEqual((await ended).exitCode, 0);
  assert.doesNotMatch(Buffer.concat(chunks).toString(), /seen/);
});

test("no variable of the sandbox's processes contains the machine's path of the workspace", { skip }, async () => {
  await using ground = await makeWorkspaceFixture();
  const { tool } = await openShell(ground, new Map());
  const { content } = await ground.call(tool, { command: 'cat /proc/[0-9]*/environ | tr "\\0" "\\n"; env' });
  assert.match(content, /^HOME=\/workspace$/m);
  assert.ok(!content.includes(ground.workspace.root), content);
});
