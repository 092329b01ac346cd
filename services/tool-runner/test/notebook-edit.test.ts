// notebook_edit as a model uses it: cells as `read` names them, and an otherwise unchanged file.
import assert from "node:assert/strict";
import { mkdir, readFile, symlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import fc from "fast-check";
import { propertyRuns } from "@parley/testing/property-runs";
import { z } from "zod";
import { changeNotebook, type CellChange } from "../src/text/notebook-change.ts";
import { notebookEditTool } from "../src/tools/notebook-edit.ts";
import { readTool } from "../src/tools/read.ts";
import { makeWorkspaceFixture } from "./support/workspace-fixture.ts";

const title = { cell_type: "markdown", id: "title", metadata: {}, source: ["# Title\n", "words"] };
const code = {
  cell_type: "code",
  execution_count: 7,
  id: "sum",
  metadata: { tags: ["kept"] },
  outputs: [{ name: "stdout", output_type: "stream", text: ["3\n"] }],
  source: ["a = 1\n", "print(a + 2)"],
};
const notebook = (cells: readonly object[], minor = 5) => ({
  cells,
  metadata: { kernelspec: { name: "python3" } },
  nbformat: 4,
  nbformat_minor: minor,
});
/** The format that nbformat writes. */
const written = (value: unknown) => `${JSON.stringify(value, null, 1)}\n`;

const Cells = z.object({ cells: z.array(z.record(z.string(), z.unknown())) });
const cellsOf = (text: string) => Cells.parse(JSON.parse(text)).cells;

async function withNotebook(content: string) {
  const ground = await makeWorkspaceFixture();
  const file = join(ground.inside, "work.ipynb");
  await writeFile(file, content);
  return {
    ground,
    file,
    edit: (args: object) => ground.call(notebookEditTool, { path: "work.ipynb", ...args }),
    text: () => readFile(file, "utf8"),
    [Symbol.asyncDispose]: () => ground[Symbol.asyncDispose](),
  };
}

// design: 003.17
test("replaces a cell by the id or number from read and clears a code cell's outputs", async () => {
  await using work = await withNotebook(written(notebook([title, code])));
  const { content } = await work.ground.call(readTool, { path: "work.ipynb" });
  assert.match(content, /\[cell 1: markdown, id title\]/);
  assert.match(content, /\[cell 2: code, id sum, run as \[7\]\]/);
  const byId = await work.edit({ cell_id: "sum", new_source: "b = 2\n" });
  assert.deepEqual(byId, {
    content: 'Replaced cell 2 (code, id sum) of "work.ipynb". Its outputs were cleared.',
    isError: false,
  });
  const changed = { ...code, execution_count: null, outputs: [], source: ["b = 2\n"] };
  assert.equal(await work.text(), written(notebook([title, changed])));
  const byNumber = await work.edit({ cell_number: 1, new_source: "# Other" });
  assert.equal(byNumber.content, 'Replaced cell 1 (markdown, id title) of "work.ipynb".');
  assert.equal(await work.text(), written(notebook([{ ...title, source: ["# Other"] }, changed])));
});

test("does not write the file when the source is unchanged", async () => {
  const before = written(notebook([title, code]));
  await using work = await withNotebook(before);
  const same = await work.edit({ cell_number: 2, new_source: code.source.join("") });
  assert.deepEqual(
    [same.isError, same.content],
    [false, '"work.ipynb" was not changed: cell 2 (code, id sum) already has this text.'],
  );
  assert.equal(await work.text(), before);
});

test("inserts a valid cell after the named one, or first", async () => {
  await using work = await withNotebook(written(notebook([title, code])));
  const insert = { edit_mode: "insert", new_source: "x\ny" };
  const after = await work.edit({ ...insert, cell_type: "code", cell_id: "title" });
  assert.match(
    after.content,
    /^Inserted cell 2 \(code, id [0-9a-f]{8}\) in "work\.ipynb"\. The notebook now has 3 cells; the numbers of later cells increase by one\.$/,
  );
  const first = await work.edit({ ...insert, cell_type: "markdown" });
  assert.match(first.content, /^Inserted cell 1 \(markdown, id [0-9a-f]{8}\)/);
  const cells = cellsOf(await work.text());
  const [firstId, secondId] = [cells[0]?.["id"], cells[2]?.["id"]];
  assert.notEqual(firstId, secondId);
  assert.equal(
    await work.text(),
    written(
      notebook([
        { cell_type: "markdown", id: firstId, metadata: {}, source: ["x\n", "y"] },
        title,
        { cell_type: "code", execution_count: null, id: secondId, metadata: {}, outputs: [], source: ["x\n", "y"] },
        code,
      ]),
    ),
  );
});

test("never generates a duplicate cell id", () => {
  const change: CellChange = { mode: "insert", cell: {}, source: "", type: "code", idSeed: "seed" };
  const once = changeNotebook(written(notebook([])), change);
  assert.ok(once.status === "changed");
  const twice = changeNotebook(once.text, change);
  assert.ok(twice.status === "changed");
  assert.equal(new Set(cellsOf(twice.text).map(({ id }) => id)).size, 2);
});

test("inserts a cell without id before nbformat 4.5", async () => {
  const { id: _, ...old } = code;
  await using work = await withNotebook(written(notebook([old], 4)));
  await work.edit({ edit_mode: "insert", cell_number: 1, cell_type: "markdown", new_source: "" });
  assert.equal(await work.text(), written(notebook([old, { cell_type: "markdown", metadata: {}, source: [] }], 4)));
  assert.match(
    (await work.edit({ edit_mode: "delete", cell_id: "x" })).content,
    /It has 2 cells without ids: pass cell_number\. List its cells with: read\(\{"path":"work\.ipynb"\}\)/,
  );
});

test("deletes a cell, even the last one, and inserts into an empty notebook", async () => {
  await using work = await withNotebook(written(notebook([title, code])));
  assert.equal(
    (await work.edit({ edit_mode: "delete", cell_id: "title", new_source: "" })).content,
    'Deleted cell 1 (markdown, id title) of "work.ipynb". The notebook now has 1 cell; the numbers of later cells decrease by one.',
  );
  assert.equal(await work.text(), written(notebook([code])));
  await work.edit({ edit_mode: "delete", cell_number: 1 });
  assert.equal(await work.text(), written(notebook([])));
  await work.edit({ edit_mode: "insert", cell_type: "markdown", new_source: "new" });
  assert.equal(cellsOf(await work.text()).length, 1);
});

test("adapts the fields of a cell when its type changes", async () => {
  const drawn = { attachments: { "a.png": {} }, ...title };
  await using work = await withNotebook(written(notebook([drawn, code])));
  await work.edit({ cell_id: "title", cell_type: "code", new_source: "1" });
  await work.edit({ cell_id: "sum", cell_type: "markdown", new_source: code.source.join("") });
  assert.equal(
    await work.text(),
    written(
      notebook([
        { cell_type: "code", execution_count: null, id: "title", metadata: {}, outputs: [], source: ["1"] },
        { cell_type: "markdown", id: "sum", metadata: code.metadata, source: code.source },
      ]),
    ),
  );
});

test("preserves the unchanged bytes: numbers, escapes, line ends, indentation", async () => {
  const odd = [
    "{",
    '\t"nbformat": 4.0,',
    '\t"metadata": {"big": 12345678901234567890, "float": 1.0, "caf\\u00e9": 1e2},',
    '\t"cells": [',
    '\t\t{"cell_type": "markdown", "metadata": {}, "source": "one"},',
    '\t\t{"cell_type": "raw", "metadata": {"10": 1, "9": 2}, "source": "as it is"}',
    "\t]",
    "}",
  ].join("\r\n");
  await using work = await withNotebook(odd);
  await work.edit({ cell_number: 1, new_source: "two\nthree" });
  assert.equal(await work.text(), odd.replace('"one"', '"two\\nthree"'));
  await work.edit({ edit_mode: "insert", cell_number: 2, cell_type: "markdown", new_source: "new" });
  const lines = (await work.text()).split("\r\n");
  assert.deepEqual(lines.slice(0, 4), odd.split("\r\n").slice(0, 4));
  assert.ok(lines.includes('\t\t\t"cell_type": "markdown",'), lines.join("\n"));
  assert.ok(!(await work.text()).replaceAll("\r\n", "").includes("\n"));

  const compact = JSON.stringify(notebook([title, code]));
  await writeFile(work.file, compact);
  await work.edit({ cell_number: 1, new_source: "x" });
  assert.equal(await work.text(), compact.replace(JSON.stringify(title.source), '["x"]'));
});

test("explains an unknown or ambiguous cell and writes nothing", async () => {
  const before = written(notebook([title, code, { ...code, metadata: {} }]));
  await using work = await withNotebook(before);
  const refusals: [object, RegExp][] = [
    [
      { cell_number: 4, new_source: "x" },
      /^Nothing was changed in "work\.ipynb"\. It has 3 cells, none with the number 4\. List/,
    ],
    [{ cell_id: "none", new_source: "x" }, /none with the id "none"/],
    [{ cell_id: "sum", new_source: "x" }, /Cells 2, 3 have the id "sum": pass cell_number/],
    [{ cell_id: "title", cell_number: 2, new_source: "x" }, /The cell with the id "title" is cell 1, not cell 2/],
    [{ cell_number: 1 }, /- new_source: required/],
    [{ new_source: "x" }, /- cell_number: name the cell/],
    [{ edit_mode: "delete" }, /- cell_number: name the cell/],
    [{ edit_mode: "insert", new_source: "x" }, /- cell_type: required for insert/],
  ];
  for (const [args, said] of refusals) {
    const { content, isError } = await work.edit(args);
    assert.match(content, said);
    assert.equal(isError, true, content);
  }
  assert.equal(await work.text(), before);
  assert.equal((await work.edit({ cell_id: "sum", cell_number: 3, new_source: "x" })).isError, false);
  assert.deepEqual(cellsOf(await work.text())[1], code);
});

test("refuses other files with advice", async () => {
  await using work = await withNotebook("{}");
  const change = { cell_number: 1, new_source: "x" };
  const noNotebook = /is not a Jupyter notebook .* not changed\. Change text files with edit or write/;
  for (const content of ["{}", "", "[", '{"nbformat": 4}', '{"nbformat": 3, "cells": []}']) {
    await writeFile(work.file, content);
    assert.match((await work.edit(change)).content, noNotebook);
    assert.equal(await work.text(), content);
  }
  await writeFile(work.file, JSON.stringify({ nbformat: 3, nbformat_minor: 0, worksheets: [{ cells: [] }] }));
  assert.match(
    (await work.edit(change)).content,
    /before nbformat 4; nothing was changed\. Convert it first: exec, jupyter/,
  );
  const deep = `{"nbformat":4,"cells":[],"metadata":${"[".repeat(100_000)}${"]".repeat(100_000)}}`;
  await writeFile(work.file, deep);
  const insert = { edit_mode: "insert", cell_type: "code", new_source: "x" };
  assert.match((await work.edit(insert)).content, /nested too deeply to be changed by cell; it was not changed/);
  await writeFile(work.file, `${written(notebook([title]))}${" ".repeat(5 * 1024 * 1024)}`);
  assert.match((await work.edit(change)).content, /accepts notebooks of up to 5242880 bytes\. Make it smaller first/);
  await writeFile(join(work.ground.inside, "work.json"), written(notebook([title])));
  assert.match((await work.ground.call(notebookEditTool, { ...change, path: "work.json" })).content, noNotebook);
  assert.match((await work.edit({ ...change, path: "none.ipynb" })).content, /"none\.ipynb" does not exist/);
});

test("stays in the workspace and within its quota", async () => {
  await using ground = await makeWorkspaceFixture({ maxBytes: 256 * 1024, minFreeBytes: 0 });
  const before = written(notebook([title]));
  await writeFile(join(ground.outside, "n.ipynb"), before);
  await symlink(ground.outside, join(ground.inside, "out"));
  await mkdir(join(ground.inside, "deep"));
  await writeFile(join(ground.inside, "deep/real.ipynb"), before);
  await symlink("deep/real.ipynb", join(ground.inside, "link.ipynb"));
  const change = { cell_number: 1, new_source: "changed" };
  for (const path of ["../outside/n.ipynb", "out/n.ipynb"]) {
    assert.match((await ground.call(notebookEditTool, { path, ...change })).content, /outside/);
  }
  assert.equal(await readFile(join(ground.outside, "n.ipynb"), "utf8"), before);
  const large = { cell_number: 1, new_source: "x".repeat(300_000) };
  assert.match(
    (await ground.call(notebookEditTool, { path: "deep/real.ipynb", ...large })).content,
    /The workspace is full: .* Nothing was written/,
  );
  assert.match(
    (await ground.call(notebookEditTool, { path: "link.ipynb", ...change })).content,
    /of "deep\/real\.ipynb"/,
  );
  assert.deepEqual(cellsOf(await readFile(join(ground.inside, "deep/real.ipynb"), "utf8"))[0]?.["source"], ["changed"]);
});

test("applies concurrent changes of cells", async () => {
  const cells = Array.from({ length: 12 }, (_, n) => ({ ...title, id: `c${n}` }));
  await using work = await withNotebook(written(notebook(cells)));
  const answers = await Promise.all(cells.map(({ id }) => work.edit({ cell_id: id, new_source: `I am ${id}` })));
  assert.ok(answers.every(({ isError }) => !isError));
  assert.deepEqual(
    cellsOf(await work.text()).map(({ source }) => source),
    cells.map(({ id }) => [`I am ${id}`]),
  );
});

const source = fc.string({ unit: fc.constantFrom("a", '"', "\\", "\n", "\r\n", "é", "🙂", "\u2028", "\ud800") });
const lines = (text: string) => (text === "" ? [] : text.split(/(?<=\n)/));
const someCells = fc.array(
  fc.record({ isCode: fc.boolean(), source, printed: fc.boolean() }).map(({ isCode, source: text, printed }) => ({
    cell_type: isCode ? "code" : "markdown",
    ...(isCode ? { execution_count: printed ? 1 : null } : {}),
    metadata: {},
    ...(isCode ? { outputs: printed ? code.outputs : [] } : {}),
    source: lines(text),
  })),
  { maxLength: 6 },
);
const someChange = fc.record({
  mode: fc.constantFrom<CellChange["mode"]>("replace", "insert", "delete"),
  number: fc.option(fc.integer({ min: 1, max: 6 }), { nil: undefined }),
  source,
  type: fc.constantFrom<"code" | "markdown">("code", "markdown"),
});

function changeTo({
  mode,
  ...said
}: Omit<Extract<CellChange, { mode: "insert" }>, "mode"> & Pick<CellChange, "mode">): CellChange {
  if (mode === "insert") return { mode, ...said };
  return mode === "replace" ? { mode, ...said } : { mode, ...said };
}

test("property: changes one cell and writes the file as nbformat would", () => {
  fc.assert(
    fc.property(someCells, someChange, fc.constantFrom<string | number>(0, 1, 2, "\t"), (cells, said, indent) => {
      const print = (value: unknown) => JSON.stringify(value, null, indent);
      const change = changeTo({ ...said, cell: { number: said.number }, idSeed: "seed" });
      const changed = changeNotebook(print(notebook(cells, 4)), change);
      const { number = 0 } = said;
      if (number > cells.length || (said.mode !== "insert" && number === 0)) {
        assert.equal(changed.status, "no_such_cell");
        return;
      }
      const isCode = said.type === "code";
      const made = {
        cell_type: said.type,
        ...(isCode ? { execution_count: null } : {}),
        metadata: {},
        ...(isCode ? { outputs: [] } : {}),
        source: lines(said.source),
      };
      const now = cells[number - 1];
      const same = said.mode === "replace" && now?.cell_type === said.type && now.source.join("") === said.source;
      if (same) {
        assert.equal(changed.status, "same");
        return;
      }
      const expected =
        said.mode === "insert"
          ? cells.toSpliced(number, 0, made)
          : cells.toSpliced(number - 1, 1, ...(said.mode === "replace" ? [made] : []));
      assert.ok(changed.status === "changed");
      // On one line a new key has a space after its colon.
      const text = indent === 0 ? print(JSON.parse(changed.text)) : changed.text;
      assert.equal(text, print(notebook(expected, 4)));
    }),
    { numRuns: propertyRuns(1_000) },
  );
});

test("property: never throws for any text", () => {
  const change: CellChange = { mode: "insert", cell: {}, source: "x", type: "code", idSeed: "seed" };
  fc.assert(fc.property(fc.oneof(fc.string(), fc.json()), (text) => void changeNotebook(text, change)));
});
