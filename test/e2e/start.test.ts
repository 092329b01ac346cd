// The commands of a first start, as a new user types them.
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { readdir, readFile, symlink, writeFile } from "node:fs/promises";
import { join, resolve } from "node:path";
import { after, test } from "node:test";
import { promisify } from "node:util";
import { sharedCacheDir } from "@parley/local";
import { Cleanup, startScriptedModel, temporaryFolder } from "@parley/testing";

const cleanup = new Cleanup();
after(() => cleanup[Symbol.asyncDispose]());
const root = resolve(import.meta.dirname, "../..");

async function npmStart(home: string, args: string[], env: Record<string, string> = {}) {
  const { PATH = "", HOME = "" } = process.env;
  // Reuses the servers that other tests have unpacked.
  if (!existsSync(join(home, "servers"))) await symlink(sharedCacheDir, join(home, "servers"));
  const run = promisify(execFile)("npm", ["start", "--silent", "--", ...args, "--port", "0"], {
    cwd: root,
    env: { PATH, HOME, PARLEY_HOME: home, ...env },
  });
  return run.then(
    ({ stdout, stderr }) => ({ code: 0, stdout, stderr }),
    (error: unknown) => {
      const { code, stdout, stderr } = error as { code: number; stdout: string; stderr: string };
      return { code, stdout, stderr };
    },
  );
}

/** Processes that belong to a home. */
function processesOf(home: string): string[] {
  return readdirSync("/proc")
    .filter((entry) => /^\d+$/.test(entry))
    .flatMap((pid) => {
      try {
        const line = readFileSync(`/proc/${pid}/cmdline`, "utf8") + readFileSync(`/proc/${pid}/environ`, "utf8");
        return line.includes(home) ? [pid] : [];
      } catch {
        return [];
      }
    });
}

// design: 002.37
test("works in the named project, answers, exits with 0 and leaves no process when run with --once", async () => {
  const home = await temporaryFolder(cleanup);
  const project = await temporaryFolder(cleanup);
  const notes = join(project, "notes.txt");
  await writeFile(notes, "good morning\n");
  const edit = { path: "notes.txt", old_text: "morning", new_text: "night" };
  const script = ['tool: read {"path":"notes.txt"}', `tool: edit ${JSON.stringify(edit)}`, "say: good evening"];
  const { code, stdout } = await npmStart(home, ["--once", script.join("\nthen\n")], { PARLEY_WORKSPACE: project });
  assert.equal(stdout, "good evening\n");
  assert.equal(code, 0);
  assert.equal(await readFile(notes, "utf8"), "good night\n");
  // Locks, checkpoints and everything else of the cluster is in the data folder.
  assert.deepEqual(await readdir(project), ["notes.txt"]);
  assert.ok(existsSync(join(home, ".workspace-state")));
  assert.deepEqual(processesOf(home), []);
});

test("reports the reason and exits with 1 when the provider refuses the key", async () => {
  const model = await startScriptedModel();
  cleanup.add(() => model.stop());
  model.failNext({ status: 401 });
  const home = await temporaryFolder(cleanup);
  const { code, stdout, stderr } = await npmStart(home, ["--once", "hello"], {
    ANTHROPIC_API_KEY: "sk-ant-wrong",
    ANTHROPIC_BASE_URL: model.url,
  });
  assert.equal(code, 1);
  assert.equal(stdout, "");
  assert.match(stderr, /ANTHROPIC_API_KEY/);
});

test("runs in the background with --detach until parley down, and leaves no process", async () => {
  const home = await temporaryFolder(cleanup);
  const started = await npmStart(home, ["--detach"], { PARLEY_MODEL: "rehearsal" });
  assert.equal(started.code, 0, started.stderr);
  assert.match(started.stderr, /^ready in [\s\S]*^url {6}http[\s\S]*npx parley down/m);
  const answered = await npmStart(home, ["--once", "say: from the background"]);
  assert.equal(answered.stdout, "from the background\n", answered.stderr);
  const again = await npmStart(home, ["--detach"]);
  assert.equal(again.code, 1);
  assert.match(again.stderr, /in use by another Parley[\s\S]*Parley did not start/);
  const down = async () => promisify(execFile)("npx", ["parley", "down", "--home", home], { cwd: root });
  assert.equal((await down()).stdout, "Stopped.\n");
  assert.deepEqual(processesOf(home), []);
  assert.match((await down()).stdout, /^Parley does not run on /);
});
