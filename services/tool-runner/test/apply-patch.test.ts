// apply_patch: changes, refusals and atomicity.
import assert from "node:assert/strict";
import { chmod, mkdir, readdir, readFile, stat, symlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import fc from "fast-check";
import { propertyRuns } from "@parley/testing/property-runs";
import { applyHunks } from "../src/text/patch/apply.ts";
import { parsePatch, PatchError, type Hunk } from "../src/text/patch/parse.ts";
import { applyPatchTool } from "../src/tools/apply-patch.ts";
import { makeWorkspaceFixture, type WorkspaceFixture } from "./support/workspace-fixture.ts";

const patch = (...lines: string[]) => ["*** Begin Patch", ...lines, "*** End Patch", ""].join("\n");

async function makeFiles(files: Record<string, string>): Promise<WorkspaceFixture> {
  const ground = await makeWorkspaceFixture();
  for (const [path, content] of Object.entries(files)) {
    await mkdir(join(ground.inside, path, ".."), { recursive: true });
    await writeFile(join(ground.inside, path), content);
  }
  return ground;
}

const apply = (ground: WorkspaceFixture, text: string) => ground.call(applyPatchTool, { patch: text });
const read = (ground: WorkspaceFixture, path: string) => readFile(join(ground.inside, path), "utf8");

/** The content of all files in the workspace. */
async function tree(ground: WorkspaceFixture): Promise<Record<string, string>> {
  const all: Record<string, string> = {};
  for (const entry of await readdir(ground.inside, { recursive: true, withFileTypes: true })) {
    if (!entry.isFile()) continue;
    const path = join(entry.parentPath, entry.name);
    all[path.slice(ground.inside.length + 1)] = await readFile(path, "utf8");
  }
  return all;
}

// design: 000.15
test("adds, updates, moves and deletes files with one patch", async () => {
  await using ground = await makeFiles({
    "src/a.ts": "one\ntwo\nthree\nfour\nfive\n",
    "old.txt": "bye\n",
    "run.sh": "#!/bin/sh\necho 1\n",
    plain: "as it is",
  });
  await chmod(join(ground.inside, "run.sh"), 0o750);
  const { content, isError } = await apply(
    ground,
    patch(
      "*** Add File: docs/deep/new.md",
      "+# New",
      "+",
      "+text",
      "*** Update File: src/a.ts",
      "@@ one",
      " two",
      "-three",
      "+3",
      " four",
      "@@",
      " five",
      "+six",
      "*** End of File",
      "*** Delete File: old.txt",
      "*** Update File: run.sh",
      "*** Move to: bin/run",
      "@@",
      "-echo 1",
      "+echo 2",
      "*** Move File: plain",
      "*** Move to: moved/plain",
    ),
  );
  assert.equal(isError, false, content);
  assert.deepEqual(content.split("\n"), [
    'Added "docs/deep/new.md".',
    'Updated "src/a.ts": 2 hunks.',
    'Deleted "old.txt".',
    'Moved "run.sh" to "bin/run": 1 hunk.',
    'Moved "plain" to "moved/plain".',
  ]);
  assert.deepEqual(await tree(ground), {
    "docs/deep/new.md": "# New\n\ntext\n",
    "src/a.ts": "one\ntwo\n3\nfour\nfive\nsix\n",
    "bin/run": "#!/bin/sh\necho 2\n",
    "moved/plain": "as it is",
  });
  assert.equal((await stat(join(ground.inside, "bin/run"))).mode & 0o777, 0o750);
});

test("changes nothing when one part does not apply, and names the failing hunk", async () => {
  const files = { "a.txt": "one\ntwo\n", "b.txt": "x\ny\nx\n" };
  await using ground = await makeFiles(files);
  for (const [bad, said] of [
    [
      ["*** Update File: b.txt", "@@", " y", "-z"],
      /"b\.txt", hunk 1 of 1 \(line 8 of the patch\): these lines were not found in the file:\n {2}y\n {2}z$/,
    ],
    [["*** Update File: b.txt", "@@", "-x", "+z"], /its lines occur at 2 places \(lines 1, 3\)/],
    [["*** Update File: b.txt", "@@ nowhere", "-x"], /the line "nowhere" was not found after line 0/],
    [["*** Update File: b.txt", "@@", "+new"], /adds lines without context/],
    [["*** Update File: none.txt", "@@", "-x"], /"none\.txt" does not exist/],
    [["*** Add File: b.txt", "+x"], /"b\.txt" already exists/],
    [["*** Delete File: none.txt"], /does not exist/],
    [["*** Move File: b.txt", "*** Move to: a.txt"], /"a\.txt" already exists/],
    [["*** Move File: b.txt", "*** Move to: ./b.txt"], /to itself/],
    [["*** Delete File: ./a.txt"], /"a\.txt" more than once/],
    [["*** Add File: ../outside/x", "+x"], /outside the workspace/],
    [["*** Update File: ../outside/secret.txt", "@@", "+x"], /outside the workspace/],
    [["*** Delete File: sub"], /is a directory/],
    [["*** Rename File: b.txt"], /Expected `\*\*\* Add File/],
    [["*** Update File: b.txt", "@@", "x"], /at line 9 \("x"\).*must begin with a space/],
    [["*** Update File: b.txt"], /at least one hunk/],
  ] as const) {
    await mkdir(join(ground.inside, "sub"), { recursive: true });
    const { content, isError } = await apply(
      ground,
      patch("*** Add File: first.txt", "+first", "*** Update File: a.txt", "-one", "+1", ...bad),
    );
    assert.equal(isError, true);
    assert.match(content, said);
    assert.deepEqual(await tree(ground), files, bad.join(" "));
  }
});

test("rolls back earlier writes when one fails", async () => {
  const files = { "a.txt": "one\n", file: "x\n" };
  await using ground = await makeFiles(files);
  // The first write creates a file where the second needs a directory, so the earlier check no longer holds.
  const { content, isError } = await apply(
    ground,
    patch("*** Update File: a.txt", "-one", "+1", "*** Add File: new", "+x", "*** Add File: new/below", "+x"),
  );
  assert.equal(isError, true);
  assert.match(content, /Nothing was changed\./);
  assert.deepEqual(await tree(ground), files);
});

test("tolerates only white space differences, and keeps that of context lines", async () => {
  await using ground = await makeFiles({ "a.py": "def f():\n\treturn  1   \n\nend\n", "crlf.txt": "a\r\nb\r\nc\r\n" });
  await apply(ground, patch("*** Update File: a.py", "@@", " def f():", "     return 1", "+    pass", ""));
  assert.equal(await read(ground, "a.py"), "def f():\n\treturn  1   \n    pass\n\nend\n");
  await apply(ground, patch("*** Update File: crlf.txt", "@@", " a", "-b", "+B", "+B2"));
  assert.equal(await read(ground, "crlf.txt"), "a\r\nB\r\nB2\r\nc\r\n");
  const other = await apply(ground, patch("*** Update File: a.py", "@@", "-def g():"));
  assert.equal(other.isError, true);
});

test("selects among equal places by the @@ line", async () => {
  await using ground = await makeFiles({ "a.ts": "class A {\n  x = 1;\n}\nclass B {\n  x = 1;\n}\n" });
  await apply(ground, patch("*** Update File: a.ts", "@@ class B {", "-  x = 1;", "+  x = 2;"));
  assert.equal(await read(ground, "a.ts"), "class A {\n  x = 1;\n}\nclass B {\n  x = 2;\n}\n");
});

test("reports the invalid line when the text is not a patch", async () => {
  await using ground = await makeWorkspaceFixture();
  for (const [text, said] of [
    ["diff --git a/x b/x", /must begin with `\*\*\* Begin Patch`/],
    ["*** Begin Patch\n*** Delete File: x", /at its end.*must end with `\*\*\* End Patch`/],
    ["*** Begin Patch\n*** End Patch", /changes nothing/],
  ] as const) {
    assert.match((await apply(ground, text)).content, said);
  }
  assert.match((await ground.call(applyPatchTool, { text: "x" })).content, /Accepted arguments: patch \(required\)\./);
});

test("does not write through a link to outside the workspace", async () => {
  await using ground = await makeWorkspaceFixture();
  await symlink(ground.outside, join(ground.inside, "out"));
  for (const lines of [
    ["*** Add File: out/new", "+x"],
    ["*** Delete File: out/secret.txt"],
    ["*** Update File: out/secret.txt", "-the secret outside", "+x"],
  ]) {
    assert.match((await apply(ground, patch(...lines))).content, /outside the workspace/);
  }
  assert.deepEqual(await readdir(ground.outside), ["secret.txt"]);
});

test("changes nothing when cancelled", async () => {
  await using ground = await makeFiles({ "a.txt": "one\n" });
  const text = patch("*** Update File: a.txt", "-one", "+1");
  const { isError } = await ground.call(applyPatchTool, { patch: text }, AbortSignal.abort(new Error("cancelled")));
  assert.equal(isError, true);
  assert.equal(await read(ground, "a.txt"), "one\n");
});

test("property: applies a hunk that covers the whole file", () => {
  const line = fc.record({
    kind: fc.constantFrom("keep", "remove", "add"),
    text: fc.string({ unit: fc.constantFrom("a", "b", " ", "é"), maxLength: 5 }),
  });
  fc.assert(
    fc.property(fc.array(line, { minLength: 1, maxLength: 12 }), (lines) => {
      const side = (without: string) =>
        lines.flatMap(({ kind, text }) => (kind === without ? [] : [`${text}\n`])).join("");
      fc.pre(side("add") !== "");
      const marks: Record<string, string> = { keep: " ", remove: "-", add: "+" };
      const text = patch(
        "*** Update File: x",
        "@@",
        ...lines.map(({ kind, text: body }) => `${marks[kind]}${body}`),
        "*** End of File",
      );
      const [operation] = parsePatch(text);
      assert.ok(operation?.kind === "update");
      assert.equal(applyHunks(side("add"), operation.hunks, "x"), side("remove"));
    }),
    { numRuns: propertyRuns(1_000) },
  );
});

test("property: changes only the lines of the hunk, or refuses it", () => {
  const text = fc.array(fc.constantFrom("a", "b", "c", "  a"), { maxLength: 8 });
  fc.assert(
    fc.property(text, text, text, (before, removed, after) => {
      const file = [...before, ...removed, ...after].map((each) => `${each}\n`).join("");
      fc.pre(removed.length > 0);
      const hunk: Hunk = {
        at: 1,
        below: "",
        atEnd: false,
        lines: removed.map((each) => ({ kind: "remove", text: each })),
      };
      try {
        const result = applyHunks(file, [hunk], "x").split("\n").length;
        assert.equal(result, file.split("\n").length - removed.length);
      } catch (error) {
        assert.ok(error instanceof PatchError);
        assert.match(error.message, /occur at \d+ places/);
      }
    }),
  );
});
