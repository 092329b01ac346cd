// Which programs may run outside of the sandbox, according to their settings.
import assert from "node:assert/strict";
import { mkdirSync, mkdtempSync, rmSync, symlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import {
  hookProgramProblem,
  unsandboxedProgramProblem,
  unsandboxedProgramProblems,
  outsideSearchPath,
} from "../src/unsandboxed-program.ts";
import { parseSettings } from "../src/settings.ts";

const base = mkdtempSync(join(tmpdir(), "parley-outside-"));
after(() => rmSync(base, { recursive: true, force: true }));
const workspace = join(base, "workspace");
const elsewhere = join(base, "elsewhere");
mkdirSync(workspace);
mkdirSync(elsewhere);
symlinkSync(workspace, join(elsewhere, "link"));

const problemOf = (command: string, args: readonly string[] = [], cwd: string | null = null) =>
  unsandboxedProgramProblem({ command, args, cwd }, workspace);

test("permits the commands in the documentation of MCP servers", () => {
  const commands: [string, ...string[]][] = [
    ["npx", "-y", "@modelcontextprotocol/server-filesystem", workspace],
    ["uvx", "mcp-server-git", "--repository", workspace],
    ["python3", "-m", "mcp_server_time"],
    ["node", "/srv/server/dist/index.js", workspace],
    ["node", "--conditions=@scope/source", "/srv/server.ts", workspace],
    ["docker", "run", "-i", "--rm", "-v", `${workspace}:/data`, "mcp/filesystem"],
    ["deno", "run", "-A", "npm:server-filesystem", workspace],
    ["uv", "run", "server", workspace],
    ["mcp-server-filesystem", workspace],
    ["/usr/bin/env", "node", "/srv/index.js"],
  ];
  for (const [command, ...args] of commands)
    assert.equal(problemOf(command, args), undefined, [command, ...args].join(" "));
});

test("refuses programs and scripts of the workspace in every spelling", () => {
  const commands: [string, ...string[]][] = [
    ["./serve"],
    ["bin/serve"],
    ["../workspace/serve"],
    [`${workspace}/serve`],
    [`${elsewhere}/../workspace/serve`],
    [`${elsewhere}/link/serve`],
    [`${workspace}/.venv/bin/python`, "-m", "x"],
    ["python3", `${workspace}/serve.py`],
    ["python3.12", "-u", `${workspace}/serve.py`],
    ["/usr/bin/node", `--import=${workspace}/hook.mjs`, "/srv/index.js"],
    ["node", "--require", `${elsewhere}/link/x.cjs`, "/srv/index.js"],
    ["uv", "run", `${workspace}/serve.py`],
    ["uv", "--directory", workspace, "run", "serve"],
    ["env", "node", `${workspace}/serve.mjs`],
    ["sh", `${workspace}/serve.sh`],
  ];
  for (const [command, ...args] of commands)
    assert.notEqual(problemOf(command, args), undefined, [command, ...args].join(" "));
});

test("permits only absolute programs without interpreters in a folder of the workspace", () => {
  assert.equal(problemOf("/usr/bin/mcp-server", ["--verbose", "stdio"], workspace), undefined);
  assert.equal(problemOf("/usr/bin/mcp-server", [], join(workspace, "sub")), undefined);
  for (const [command, ...args] of [
    ["mcp-server"],
    ["/usr/bin/python3", "-m", "x"],
    ["/usr/bin/npx", "x"],
    ["/usr/bin/mcp-server", "./data"],
    ["/usr/bin/mcp-server", "--config=conf/x.json"],
    ["/usr/bin/mcp-server", "plugin.js"],
  ]) {
    assert.notEqual(problemOf(command ?? "", args, workspace), undefined, [command, ...args].join(" "));
    assert.notEqual(problemOf(command ?? "", args, join(elsewhere, "link")), undefined, "through a link");
  }
  assert.equal(problemOf("./serve", [], elsewhere), undefined);
  assert.notEqual(problemOf("./link/serve", [], elsewhere), undefined);
});

test("resolves a hook's relative command from the folder of parley.toml", () => {
  const at = (line: string, configFolder: string | null = base) =>
    hookProgramProblem(line, { workspace, configFolder });
  assert.equal(at("./hooks/guard.sh"), undefined);
  assert.equal(at("jq -e .tool_input.command"), undefined);
  assert.equal(at('echo \'{"decision": "deny"}\''), undefined);
  assert.equal(at("sh guard.sh", null), undefined);
  assert.match(at("./workspace/guard.sh") ?? "", /is in the workspace/);
  assert.match(at(`'${workspace}/guard.sh' --strict`) ?? "", /is in the workspace/);
  assert.match(at("python3 workspace/guard.py") ?? "", /would run "workspace\/guard\.py"/);
  assert.match(at("./guard.sh", workspace) ?? "", /is in the workspace/);
  assert.match(at("jq .", workspace) ?? "", /only a program with an absolute path/);
});

test("names every refused server and hook of the settings", () => {
  const settings = parseSettings(
    `[mcp.servers.good]
command = "npx"
args = ["-y", "server"]
[mcp.servers.off]
command = "./x"
enabled = false
[mcp.servers.bad]
command = "python3"
args = ["-m", "x"]
cwd = "."
[[hooks]]
name = "guard"
event = "Stop"
command = "./workspace/guard.sh"
`,
    "parley.toml",
  );
  const problems = unsandboxedProgramProblems(settings, { workspace, configFolder: base });
  assert.deepEqual(
    problems.map(({ setting }) => setting),
    ["mcp.servers.bad", "the hook guard"],
  );
});

test("removes relative folders and folders of the workspace from a search path", () => {
  const path = `/usr/bin:.:${workspace}/bin::bin:${elsewhere}/link:/bin`;
  assert.equal(outsideSearchPath(path, workspace), "/usr/bin:/bin");
});
