// Attempts to leave the workspace through the file tools: by paths, links and races.
import assert from "node:assert/strict";
import { chmodSync, linkSync, readdirSync, readFileSync, statSync } from "node:fs";
import { mkdir, symlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { Worker } from "node:worker_threads";
import { fetchBlob } from "@parley/bus";
import { createHash } from "node:crypto";
import { applyPatchTool } from "../../src/tools/apply-patch.ts";
import { editTool } from "../../src/tools/edit.ts";
import { grepTool } from "../../src/tools/grep.ts";
import { globTool } from "../../src/tools/glob.ts";
import { lsTool } from "../../src/tools/ls.ts";
import { readTool } from "../../src/tools/read.ts";
import { writeTool } from "../../src/tools/write.ts";
import { makeWorkspaceFixture, secret, type WorkspaceFixture } from "../support/workspace-fixture.ts";
import { attempt } from "./ledger.ts";
import { canary, type EscapeFixture } from "./fixture.ts";

const patch = (...lines: string[]) => ({ patch: ["*** Begin Patch", ...lines, "*** End Patch"].join("\n") });

/** Runs every file tool on one path: nothing outside may change, and no output may contain the secret. */
async function everyTool(ground: WorkspaceFixture, path: string): Promise<void> {
  for (const [tool, args] of [
    [readTool, { path }],
    [writeTool, { path, content: "escaped" }],
    [editTool, { path, old_text: "secret", new_text: "escaped" }],
    [lsTool, { path }],
    [grepTool, { path, pattern: "." }],
    [globTool, { path, pattern: "**" }],
    [applyPatchTool, patch(`*** Add File: ${path}`, "+escaped")],
    [applyPatchTool, patch(`*** Delete File: ${path}`)],
    [applyPatchTool, patch("*** Update File: mine.txt", `*** Move to: ${path}`)],
  ] as const) {
    const { content } = await ground.call(tool, args);
    assert.doesNotMatch(content, /the secret outside|root:x:0/, tool.descriptor.name);
  }
  assert.equal(readFileSync(join(ground.outside, "secret.txt"), "utf8"), secret);
  assert.deepEqual(readdirSync(ground.outside), ["secret.txt"]);
  assert.deepEqual(readdirSync(join(ground.inside, "..")).toSorted(), ["inside", "outside"]);
}

const ways: Record<string, (ground: WorkspaceFixture) => string> = {
  "`..`": () => "../outside/secret.txt",
  "`..` after an existing folder": () => "folder/../../outside/secret.txt",
  "`..` after a missing folder": () => "none/../../outside/secret.txt",
  "`..` after the sandbox's path of the workspace": () => "/workspace/../outside/secret.txt",
  "`..` after the workspace's own path": ({ inside }) => `${inside}/../outside/secret.txt`,
  "doubled slashes and dots": () => ".//.././/outside/./secret.txt",
  "an absolute path": ({ outside }) => `${outside}/secret.txt`,
  "a path that begins like the workspace": ({ inside }) => `${inside}/../inside/../outside/secret.txt`,
  "a link to a folder outside": () => "out/secret.txt",
  "a link to a file outside": () => "secret-link",
  "a chain of links": () => "chain/secret.txt",
  "a link back through itself": () => "back/outside/secret.txt",
  "/proc/self/root": ({ outside }) => `/proc/self/root${outside}/secret.txt`,
  "a link to /proc/self/root": ({ outside }) => `proc-root${outside}/secret.txt`,
  "a link to /proc/self/cwd": () => "proc-cwd/package.json",
  "/dev/fd": () => "/dev/fd/0",
  "a link to /dev/fd and `..`": () => "dev-fd/3/../../outside/secret.txt",
  "names in upper case": () => "OUT/SECRET.TXT",
  "dots of Unicode": () => "\u2025/outside/secret.txt",
  "full-width dots and slashes": () => "\uff0e\uff0e\uff0foutside\uff0fsecret.txt",
  backslashes: () => "..\\outside\\secret.txt",
  "percent signs": () => "%2e%2e/outside/secret.txt",
  "a file: URL": ({ outside }) => `file://${outside}/secret.txt`,
  "a tilde": () => "~/../outside/secret.txt",
  "a NUL byte": ({ outside }) => `${outside}/secret.txt\0.txt`,
  "a NUL byte after a name of the workspace": () => "mine.txt\0/../../outside/secret.txt",
  "a name of 5,000 characters": () => `${"n".repeat(5_000)}/../../outside/secret.txt`,
  "3,000 folders": () => `${"d/".repeat(3_000)}${"../".repeat(3_001)}outside/secret.txt`,
  "lone surrogates": () => "\ud800/../../outside/secret.txt",
};

export function pathAttempts(fixture: () => EscapeFixture): void {
  for (const [way, path] of Object.entries(ways)) {
    attempt(`the file tools leave the workspace by ${way}`, "the tools", async () => {
      await using ground = await makeWorkspaceFixture();
      const { inside, outside } = ground;
      await mkdir(join(inside, "folder"));
      await writeFile(join(inside, "mine.txt"), "mine\n");
      for (const [name, target] of [
        ["out", outside],
        ["secret-link", "../outside/secret.txt"],
        ["hop", "out"],
        ["chain", "folder/../hop"],
        ["back", "folder/.."],
        ["folder/up", "../.."],
        ["proc-root", "/proc/self/root"],
        ["proc-cwd", "/proc/self/cwd"],
        ["dev-fd", "/dev/fd"],
      ] as const) {
        await symlink(target, join(inside, name));
      }
      await everyTool(ground, path(ground));
    });
  }

  attempt("the file tools write through a hard link into a file outside", "the tools", async () => {
    await using ground = await makeWorkspaceFixture();
    // Such a link can only be created outside: in the sandbox it would cross a mount. The tools write to a new file.
    linkSync(join(ground.outside, "secret.txt"), join(ground.inside, "linked.txt"));
    await ground.call(writeTool, { path: "linked.txt", content: "escaped" });
    assert.equal(readFileSync(join(ground.outside, "secret.txt"), "utf8"), secret);
    linkSync(join(ground.outside, "secret.txt"), join(ground.inside, "again.txt"));
    await ground.call(editTool, { path: "again.txt", old_text: "secret", new_text: "escaped" });
    assert.equal(readFileSync(join(ground.outside, "secret.txt"), "utf8"), secret);
  });

  attempt("a file moved by a patch is swapped for a link before its mode is set", "the tools", async () => {
    await using ground = await makeWorkspaceFixture();
    const target = join(ground.outside, "secret.txt");
    chmodSync(target, 0o600);
    await using swapper = await swap(ground, "moved.sh");
    await race(async (round) => {
      await writeFile(join(ground.inside, `from-${round}`), "#!/bin/sh\n", { mode: 0o777 });
      chmodSync(join(ground.inside, `from-${round}`), 0o777);
      await ground.call(applyPatchTool, patch(`*** Update File: from-${round}`, "*** Move to: moved.sh"));
      assert.equal(statSync(target).mode & 0o7777, 0o600);
    });
    assert.ok(await swapper.swaps(), "the file was swapped");
    assert.equal(readFileSync(target, "utf8"), secret);
  });

  for (const [name, tool, args] of [
    ["read", readTool, { path: "raced.txt" }],
    ["write", writeTool, { path: "raced.txt", content: "harmless" }],
    ["edit", editTool, { path: "raced.txt", old_text: "secret", new_text: "escaped" }],
    ["grep", grepTool, { path: "raced.txt", pattern: "." }],
    ["ls", lsTool, { path: "raced.txt" }],
    ["apply_patch", applyPatchTool, patch("*** Update File: raced.txt", "@@", "-harmless", "+harmless too")],
  ] as const) {
    attempt(`a file is swapped for a link to the outside, during ${name}`, "the tools", async () => {
      await using ground = await makeWorkspaceFixture();
      await using swapper = await swap(ground, "raced.txt");
      await race(async () => {
        const { content } = await ground.call(tool, args);
        assert.doesNotMatch(content, new RegExp(secret));
      });
      assert.ok(await swapper.swaps(), "the file was swapped");
      assert.equal(readFileSync(join(ground.outside, "secret.txt"), "utf8"), secret);
      assert.deepEqual(readdirSync(ground.outside), ["secret.txt"]);
    });
  }

  attempt("a file is swapped for a link to the outside, during attach", "the tools", async () => {
    const { workspace, outside, runnerFixture } = fixture();
    const { call } = fixture();
    await using swapper = await swap({ inside: workspace, outside }, "raced.txt");
    await race(async () => {
      await call("attach", "idempotent", { path: "raced.txt" });
    });
    assert.ok(await swapper.swaps(), "the file was swapped");
    const hash = createHash("sha256").update(`${canary}\n`).digest("hex");
    await assert.rejects(async () => fetchBlob(await runnerFixture.stack.bus("tool-runner"), hash));
  });

  for (const path of [
    "../.workspace-checkpoints/secret.txt",
    "../.workspace-mcp/secret.txt",
    "../outside/secret.txt",
  ]) {
    attempt(`the file tools of a running service reach ${path}, directly and by a link`, "the tools", async () => {
      const { workspace, call } = fixture();
      const target = join(workspace, path);
      const link = path.replaceAll(/[^a-z]/g, "-");
      await symlink(target, join(workspace, link));
      for (const each of [path, target, link, `${link}/.`]) {
        const answers = [
          await call("read", "pure", { path: each }),
          await call("grep", "pure", { path: each, pattern: "." }),
          await call("write", "idempotent", { path: each, content: "escaped" }),
          await call("edit", "once", { path: each, old_text: "canary", new_text: "escaped" }),
          await call("notebook_edit", "once", { path: each, cell_number: 1, edit_mode: "delete" }),
          await call("attach", "idempotent", { path: each }),
          await call("apply_patch", "once", patch(`*** Delete File: ${each}`)),
        ];
        for (const answer of answers) assert.ok(!answer.includes(canary));
      }
      assert.equal(readFileSync(target, "utf8"), `${canary}\n`);
    });
  }
}

const raceMs = 700;

async function race(round: (number: number) => Promise<void>): Promise<void> {
  const until = performance.now() + raceMs;
  for (let number = 0; performance.now() < until; number++) await round(number);
}

/** A thread alternates a name between a harmless file and a link to the secret, as fast as it can. */
async function swap({ inside, outside }: Pick<WorkspaceFixture, "inside" | "outside">, name: string) {
  const worker = new Worker(
    `
    const { renameSync, symlinkSync, unlinkSync, writeFileSync } = require("node:fs");
    const { parentPort, workerData: { path, target } } = require("node:worker_threads");
    let going = true;
    let swaps = 0;
    parentPort.on("message", () => { going = false; });
    const turn = () => {
      for (let i = 0; i < 50; i++) {
        try { symlinkSync(target, path + ".link"); renameSync(path + ".link", path); swaps += 1; } catch {}
        try { unlinkSync(path); } catch {}
        if (i % 2 === 0) { writeFileSync(path + ".file", "harmless\\n"); renameSync(path + ".file", path); }
      }
      if (going) setImmediate(turn); else { parentPort.postMessage(swaps); parentPort.close(); }
    };
    parentPort.postMessage("going");
    turn();
    `,
    { eval: true, workerData: { path: join(inside, name), target: join(outside, "secret.txt") } },
  );
  await new Promise((resolve) => worker.once("message", resolve));
  let stopped: Promise<number> | undefined;
  const swaps = () => {
    stopped ??= new Promise<number>((resolve) => {
      worker.once("message", (count: unknown) => resolve(Number(count)));
      worker.postMessage("stop");
    });
    return stopped;
  };
  return {
    swaps: async () => (await swaps()) > 0,
    [Symbol.asyncDispose]: async () => {
      await swaps();
    },
  };
}
