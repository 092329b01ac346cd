// Writing a file that names programs for other tools to start counts as executing.
import assert from "node:assert/strict";
import { test } from "node:test";
import { parseCall } from "../../src/policy/parsed-call.ts";
import { decidePermission } from "../../src/policy/decide.ts";
import { assessRisk } from "../../src/policy/risk.ts";
import { context, write } from "./support.ts";

const programs = [
  ".git/config",
  ".git/hooks/pre-commit",
  "sub/.git/config",
  "./.GIT/config",
  "/workspace/.git/config",
  "x/../.git/config",
  "package.json",
  "app/package.json",
  ".npmrc",
  "Makefile",
  "makefile",
  "lib/rules.mk",
  ".envrc",
  "pyproject.toml",
  "setup.py",
  "tests/conftest.py",
  ".vscode/tasks.json",
  "CMakeLists.txt",
  "node_modules/left-pad/index.js",
  ".cargo/config.toml",
  "vite.config.ts",
  ".eslintrc.cjs",
  "sub/HEAD",
];

test("requires approval for writing a file that names programs when the turn is tainted", async () => {
  for (const path of programs) {
    const call = await parseCall(write, { path, content: "" });
    assert.equal(decidePermission(call, context({ tainted: true })).step, "taint", path);
    assert.equal(decidePermission(call, context()).decision, "allow", path);
    assert.ok(assessRisk(call).effects.includes("executes"), path);
  }
});

test("checks the files that a patch, a notebook edit and a saved attachment write", async () => {
  const patch = "*** Begin Patch\n*** Add File: notes.md\n+x\n*** Add File: .git/config\n+x\n*** End Patch";
  const calls = [
    await parseCall({ name: "apply_patch", readOnly: false }, { patch }),
    await parseCall({ name: "edit", readOnly: false }, { path: "package.json" }),
    await parseCall({ name: "notebook_edit", readOnly: false }, { path: ".vscode/a.ipynb" }),
    await parseCall({ name: "save_attachment", readOnly: false }, { path: "Makefile" }),
  ];
  for (const call of calls)
    assert.equal(decidePermission(call, context({ tainted: true })).decision, "ask", call.tool.name);
});

test("allows writing other files when the turn is tainted", async () => {
  for (const path of ["notes/git.md", "src/package.ts", "config", "a.gitx/config", "makefile.md", "src/config.ts"]) {
    const call = await parseCall(write, { path, content: "" });
    assert.equal(decidePermission(call, context({ tainted: true })).decision, "allow", path);
  }
});

test("allows reading a file that names programs when the turn is tainted", async () => {
  const call = await parseCall({ name: "read", readOnly: true }, { path: "package.json" });
  assert.equal(decidePermission(call, context({ tainted: true })).decision, "allow");
});
