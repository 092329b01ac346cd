// Programs that start outside the sandbox (MCP servers and hooks) never run files that the agent wrote into the workspace. The
// tests check on a whole cluster whether the code has run.
import assert from "node:assert/strict";
import { chmodSync, existsSync } from "node:fs";
import { mkdir, mkdtemp, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { pollUntil } from "@parley/testing/until";
import { onPath } from "@parley/local";
import { apiClient, Cleanup, startTestCluster, type ApiClient, type TestCluster } from "@parley/testing";
import { z } from "zod";

const cleanup = new Cleanup();
let cluster: TestCluster;
let client: ApiClient;
/** The file that code of the workspace creates when it runs. */
let marks: string;
/** A folder outside the workspace that contains a link into it. */
let aside: string;

const Servers = z.object({
  servers: z.array(z.object({ server: z.string(), state: z.string(), problem: z.string().nullable() })),
});

const python = onPath("python3");
const npx = onPath("npx");

/** Servers that are refused when the service starts, with the text of their problem. */
const refused: Record<string, { settings: (workspace: string) => string; problem: RegExp }> = {
  relative: { settings: () => 'command = "./serve.sh"', problem: /"\.\/serve\.sh" is a relative path/ },
  upwards: { settings: () => 'command = "../workspace/serve.sh"', problem: /is a relative path/ },
  inside: { settings: (workspace) => `command = "${workspace}/serve.sh"`, problem: /is in the workspace/ },
  linked: { settings: () => `command = "${aside}/link/serve.sh"`, problem: /is in the workspace/ },
  "cwd-module": {
    settings: () => 'command = "python3"\nargs = ["-m", "legit_mcp"]\ncwd = "."',
    problem: /only a program with an absolute path/,
  },
  "cwd-interpreter": {
    settings: () => `command = "${process.execPath}"\nargs = ["serve.mjs"]\ncwd = "."`,
    problem: /it runs code that it finds there/,
  },
  "cwd-path": {
    settings: () => 'command = "/bin/cat"\nargs = ["./serve.sh"]\ncwd = "."',
    problem: /with the relative path/,
  },
  script: {
    settings: (workspace) => `command = "${process.execPath}"\nargs = ["${workspace}/serve.mjs"]`,
    problem: /would run ".*serve\.mjs", which is in the workspace/,
  },
  option: {
    settings: (workspace) =>
      `command = "${process.execPath}"\nargs = ["--import=${workspace}/serve.mjs", "/srv/server.mjs"]`,
    problem: /would run ".*serve\.mjs"/,
  },
  shell: {
    settings: (workspace) => `command = "sh"\nargs = ["${workspace}/serve.sh"]`,
    problem: /would run ".*serve\.sh"/,
  },
};

/** Servers that run outside the workspace, and so find none of its files. */
const started: Record<string, string | null> = {
  module: python === null ? null : 'command = "python3"\nargs = ["-m", "legit_mcp"]',
  package: npx === null ? null : 'command = "npx"\nargs = ["--offline", "--no", "legit-mcp"]',
  "relative-script": `command = "${process.execPath}"\nargs = ["serve.mjs"]`,
  "relative-shell": 'command = "sh"\nargs = ["serve.sh"]',
};

const isStarted = (name: string) => started[name] !== undefined && started[name] !== null;

async function servers() {
  return Servers.parse(await (await client.fetch("/api/mcp")).json()).servers;
}

before(async () => {
  marks = await mkdtemp(join(tmpdir(), "parley-marks-"));
  aside = await mkdtemp(join(tmpdir(), "parley-aside-"));
  cleanup.add(() => rm(marks, { recursive: true, force: true }));
  cleanup.add(() => rm(aside, { recursive: true, force: true }));
  const home = await mkdtemp(join(tmpdir(), "parley-start-"));
  cleanup.add(() => rm(home, { recursive: true, force: true }));
  const workspace = join(home, "workspace");
  await symlink(workspace, join(aside, "link"));
  const mark = (name: string) => join(marks, name);
  // Files that an agent may write, created before the servers start.
  const shell = (name: string) => `#!/bin/sh\necho run > ${mark(name)}\n`;
  const files: Record<string, string> = {
    "legit_mcp.py": `open(${JSON.stringify(mark("python"))}, "w").close()\n`,
    "sitecustomize.py": `open(${JSON.stringify(mark("sitecustomize"))}, "w").close()\n`,
    "serve.sh": shell("serve.sh"),
    "serve.mjs": `import { writeFileSync } from "node:fs";\nwriteFileSync(${JSON.stringify(mark("node"))}, "");\n`,
    ".npmrc": `script-shell=${workspace}/serve.sh\n`,
    "package.json": JSON.stringify({ name: "legit", version: "1.0.0" }),
    "node_modules/.bin/legit-mcp": shell("npx"),
    "hooks/guard.sh": shell("hook"),
    // A hook's command without a path.
    "guard.sh": shell("hook-name"),
  };
  for (const [path, content] of Object.entries(files)) {
    const file = join(workspace, path);
    await mkdir(join(file, ".."), { recursive: true });
    await writeFile(file, content);
    chmodSync(file, 0o755);
  }
  chmodSync(workspace, 0o700);
  const tables = [
    ...Object.entries(refused).map(([name, { settings }]) => `[mcp.servers.${name}]\n${settings(workspace)}`),
    ...Object.entries(started).flatMap(([name, settings]) =>
      settings === null ? [] : [`[mcp.servers.${name}]\n${settings}`],
    ),
    '[[hooks]]\nname = "relative"\nevent = "UserPromptSubmit"\ncommand = "./hooks/guard.sh"',
    '[[hooks]]\nname = "by-name"\nevent = "UserPromptSubmit"\ncommand = "sh guard.sh || exit 1"',
  ];
  cluster = await startTestCluster(cleanup, {
    processes: ["tool-runner"],
    home,
    settings: tables.join("\n\n"),
    // The search path contains a folder of the workspace and a relative folder.
    env: { "tool-runner": { PATH: `${workspace}/node_modules/.bin:.:${process.env["PATH"] ?? ""}` } },
  });
  client = apiClient(cluster.httpUrls, cluster.token);
});
after(() => cleanup[Symbol.asyncDispose]());

test("refuses programs of the workspace and reports the reason when the service starts", async () => {
  const found = new Map((await servers()).map((each) => [each.server, each]));
  for (const [name, { problem }] of Object.entries(refused)) {
    assert.equal(found.get(name)?.state, "off", name);
    assert.match(found.get(name)?.problem ?? "", problem, name);
  }
});

test("starts no code of the workspace when a server starts or restarts", async () => {
  /** Each has failed, because its working folder contains nothing to run. */
  const failed = async () =>
    (await servers()).filter(({ server }) => isStarted(server)).every(({ problem }) => problem !== null);
  await pollUntil(failed, "the failure of each server");
  for (const name of Object.keys(started).filter(isStarted)) {
    const response = await client.fetch(`/api/mcp/${name}`, {
      method: "POST",
      body: JSON.stringify({ action: "restart" }),
    });
    assert.equal(response.status, 200);
  }
  await pollUntil(failed, "the failure of each server");
  for (const mark of ["python", "sitecustomize", "serve.sh", "node", "npx"])
    assert.equal(existsSync(join(marks, mark)), false, `${mark} of the workspace has run`);
});

test("starts no hook of the workspace when its command is relative", async () => {
  assert.match(await client.ask("say: hello", "hooks"), /hello/);
  for (const mark of ["hook", "hook-name"])
    assert.equal(existsSync(join(marks, mark)), false, `${mark} of the workspace has run`);
});
