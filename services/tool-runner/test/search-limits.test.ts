// Searches of hostile files and names, of denied files, and with a search program that fails: what is missing is reported.
import assert from "node:assert/strict";
import { execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync } from "node:fs";
import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { test } from "node:test";
import { rgPath } from "@vscode/ripgrep";
import { removeAbandonedSearchFolders, writeSearchFolder } from "../src/documents/search-folder.ts";
import { GrepHits, HitList } from "../src/search/hits.ts";
import type { SearchQuery } from "../src/search/arguments.ts";
import { createSearcher, type Searcher } from "../src/search/search.ts";
import { globTool } from "../src/tools/glob.ts";
import { grepTool } from "../src/tools/grep.ts";
import { makeWorkspaceFixture } from "./support/workspace-fixture.ts";

const memoryBytes = 64 * 1024 * 1024;

/** Searches a folder for lines. */
async function find(search: Searcher, directory: string, query: Partial<SearchQuery>) {
  const target = { directory, inside: { folder: directory, directory: "/workspace" }, prefix: "", hidden: [] };
  const all = { glob: null, pattern: "needle", maxHits: 10, ...query };
  return search(all, [target], AbortSignal.timeout(60_000));
}

/** A searcher whose program is a shell script with the program as `$0`. */
const scripted = (script: string) =>
  createSearcher(({ folder }) => ["/bin/sh", "-c", `cd '${folder}'; ${script}`, rgPath]);

test("keeps little of a large error output, and counts what could not be read", async () => {
  await using ground = await makeWorkspaceFixture();
  await writeFile(join(ground.inside, "a"), "needle\n");
  const line = `rg: ./${"x".repeat(4_000)}: Permission denied (os error 13)`;
  // More than the longest string of the engine.
  const search = scripted(`yes '${line}' | head -n 140000 >&2; exec "$0" "$@"`);
  const answer = await find(search, ground.inside, {});
  assert.deepEqual(answer.status === "found" && [answer.hits.length, answer.unreadable], [1, 140_000]);
});

test("fails when the search program was killed, ended early or could not be found", async () => {
  await using ground = await makeWorkspaceFixture();
  for (const script of ["exit 137", "exit 134", "kill -9 $$", "exit 0", "echo bwrap: no >&2; exit 1"]) {
    await assert.rejects(find(scripted(script), ground.inside, {}), /the search program failed/, script);
    if (script !== "exit 0") {
      await assert.rejects(find(scripted(script), ground.inside, { pattern: null }), /the search program failed/);
    }
  }
  await assert.rejects(find(createSearcher(), join(ground.inside, "missing"), {}), /ENOENT/);
});

test("fails without killing its process group when no descriptor is left for the program", async () => {
  await using ground = await makeWorkspaceFixture();
  const script = `
    import { openSync } from "node:fs";
    import { createSearcher } from ${JSON.stringify(new URL("../src/search/search.ts", import.meta.url).href)};
    const target = { directory: process.argv[1], prefix: "", hidden: [] };
    const search = () => createSearcher()({ glob: null, pattern: "x", maxHits: 1 }, [target], AbortSignal.timeout(60_000));
    await search();
    try { for (;;) openSync("/dev/null"); } catch {}
    await search().then(() => console.log("found"), ({ code }) => process.stdout.write(code));`;
  const child = spawn(
    "/bin/sh",
    [
      "-c",
      'ulimit -n 64; exec "$0" "$@"',
      process.execPath,
      ...process.execArgv.filter((each) => each.startsWith("--conditions")),
      "--input-type=module",
      "--eval",
      script,
      ground.inside,
    ],
    { detached: true, stdio: ["ignore", "pipe", "inherit"] },
  );
  const [output, exit] = await Promise.all([text(child.stdout), once(child, "exit")]);
  assert.deepEqual([output, exit], ["EMFILE", [0, null]]);
});

test("searches everywhere when the memory of the program cannot be limited", async () => {
  await using ground = await makeWorkspaceFixture();
  await writeFile(join(ground.inside, "a"), "needle\n");
  const answer = await find(createSearcher(undefined, -1_024), ground.inside, {});
  assert.equal(answer.status === "found" && answer.hits.length, 1);
});

test("leaves out large files, with a notice, when a line is too long for the memory", async () => {
  const searcher = createSearcher(undefined, memoryBytes);
  await using ground = await makeWorkspaceFixture(undefined, tmpdir(), searcher);
  await writeFile(join(ground.inside, "a"), "needle 1\n");
  await writeFile(join(ground.inside, "b"), Buffer.alloc(memoryBytes + 1024 * 1024, "x"));
  await writeFile(join(ground.inside, "c"), "needle 2\n");
  assert.deepEqual((await ground.call(grepTool, { pattern: "needle" })).content.split("\n"), [
    "a:1: needle 1",
    "c:1: needle 2",
    "[Files above 8 MiB were not searched: a line in one of them is too long.]",
  ]);
  const one = await ground.call(grepTool, { pattern: "needle", path: "b" });
  assert.equal(one.isError, true);
  assert.match(one.content, /A line of the file is too long to search/);
});

test("counts a hit as too long to show when the beginning of its line looks like a whole record", async () => {
  await using ground = await makeWorkspaceFixture();
  await writeFile(join(ground.inside, "a"), `x${"}".repeat(5 * 1024 * 1024)}\n`);
  await writeFile(join(ground.inside, "b"), "x\n");
  assert.equal(
    (await ground.call(grepTool, { pattern: "x" })).content,
    "b:1: x\n[1 files or directories could not be read.]",
  );
});

test("takes lines with very many matches without reading each match", () => {
  const line = "a".repeat(85_000);
  const match = '{"match":{"text":"a"},"start":7,"end":8}';
  const matches = Array<string>(line.length).fill(match).join(",");
  const data = `"path":{"text":"./f"},"lines":{"text":"${line}\\n"},"line_number":1,"absolute_offset":0`;
  const record = Buffer.from(`{"type":"match","data":{${data},"submatches":[${matches}]}}`);
  const hits = new HitList(1_000);
  const grep = new GrepHits({ mode: "content", context: 0, hits, nameOf: () => "f" });
  grep.take(Buffer.from('{"type":"begin","data":{"path":{"text":"./f"}}}'));
  const { user } = process.cpuUsage();
  for (let n = 0; n < 30; n++) grep.take(record);
  const usedMs = (process.cpuUsage().user - user) / 1_000;
  assert.equal(hits.lines.length, 30);
  assert.ok(usedMs < 1_000, `${usedMs} ms`);
});

test("finds hits after a NUL byte beyond the first 8 KiB, and none in binary files", async () => {
  await using ground = await makeWorkspaceFixture();
  const filler = "filler\n".repeat(20_000);
  await writeFile(join(ground.inside, "late"), `${filler}needle 1\n\0needle 2\n`);
  await writeFile(join(ground.inside, "log"), `needle\n${filler}\0`);
  await writeFile(join(ground.inside, "program"), `${"needle\n".repeat(600)}\0${"needle\n".repeat(20_000)}`);
  await writeFile(join(ground.inside, "z"), "needle\n");
  const grep = async (more: object) =>
    (await ground.call(grepTool, { pattern: "needle", ...more })).content.split("\n");
  const notice = "[1 files contain NUL bytes; each counts as the end of a line in their line numbers.]";
  assert.deepEqual(await grep({}), [
    "late:20001: needle 1",
    "late:20003: needle 2",
    "log:1: needle",
    "z:1: needle",
    notice,
  ]);
  assert.deepEqual(await grep({ mode: "files" }), ["late", "log", "z"]);
  assert.deepEqual(await grep({ mode: "count" }), ["late: 2", "log: 1", "z: 1"]);
  assert.deepEqual(await grep({ path: "late" }), ["late:20001: needle 1", "late:20003: needle 2", notice]);
});

test("names no file whose name is not UTF-8, and counts it", async () => {
  await using ground = await makeWorkspaceFixture();
  await writeFile(Buffer.concat([Buffer.from(`${ground.inside}/bad`), Buffer.from([0xff])]), "needle\n");
  await writeFile(join(ground.inside, "good"), "needle\n");
  const notice = "[1 files or directories could not be read.]";
  assert.equal((await ground.call(grepTool, { pattern: "needle" })).content, `good:1: needle\n${notice}`);
  assert.equal((await ground.call(grepTool, { pattern: "needle", mode: "files" })).content, `good\n${notice}`);
  assert.equal((await ground.call(globTool, { pattern: "*" })).content, `good\n${notice}`);
});

test("does not open denied files, whose content shows in no hit, number or error", async () => {
  await using ground = await makeWorkspaceFixture();
  const names = ["plain", " a*b? [x] {y,z} !# ", "line\nbreak", "é", "back\\slash", "dir/deep/c", "nobreak\u00A0"];
  await mkdir(join(ground.inside, "secret/dir/deep"), { recursive: true });
  // The search with look-around gives up on such a line, which is reported as a file that could not be read.
  const trap = `${"a".repeat(5_000)}!\n`;
  for (const name of names) await writeFile(join(ground.inside, "secret", name), trap);
  await writeFile(join(ground.inside, "secret", "axb"), "ab!\n");
  await writeFile(join(ground.inside, "open.ts"), "ab!\n");
  const isDenied = (path: string) => path.startsWith("secret/") && path !== "secret/axb";
  const search = createSearcher();
  for (const glob of [null, "*", "{*.ts,secret/**}"]) {
    for (const pattern of ["!", "^(?=a)(a+)+$"]) {
      const answer = await find(search, ground.inside, { glob, pattern, isDenied });
      const found = answer.status === "found" ? answer : undefined;
      const expected = pattern === "!" ? ["open.ts:1: ab!", "secret/axb:1: ab!"] : [];
      assert.deepEqual([found?.hits.map(({ shown }) => shown), found?.filesSeen, found?.unreadable], [expected, 2, 0]);
    }
  }
  const open = await find(search, ground.inside, { pattern: "^(?=a)(a+)+$" });
  assert.equal(open.status === "found" && open.unreadable, names.length, "without the rule, all of them are searched");
  assert.equal(ground.workspace.without(["secret/**"]).denied?.("secret/plain"), true);
  assert.equal(ground.workspace.denied, undefined);
});

test("searches a single file in the sandbox, too", async () => {
  const places: unknown[] = [];
  const searcher = createSearcher((place) => {
    places.push(place);
    return undefined;
  });
  await using ground = await makeWorkspaceFixture(undefined, tmpdir(), searcher);
  await writeFile(join(ground.inside, "a"), "needle\n");
  assert.equal((await ground.call(grepTool, { pattern: "needle", path: "a" })).content, "a:1: needle");
  assert.deepEqual(places, [{ folder: ground.inside, directory: "/workspace" }]);
});

test("removes the search folders of processes that have ended, and no others", async () => {
  const child = spawn("/bin/true");
  await once(child, "exit");
  const { pid } = child;
  const ended = await mkdtemp(join(tmpdir(), `parley-search-${pid}-`));
  await using live = await writeSearchFolder([{ path: "memory/a.md", content: "a" }]);
  const earlier = await mkdtemp(join(tmpdir(), `parley-search-${process.pid}-`));
  execFileSync("touch", ["-d", "2001-01-01", earlier]);
  try {
    await removeAbandonedSearchFolders();
    assert.deepEqual(
      [ended, earlier, live.path].map((path) => existsSync(path)),
      [false, false, true],
    );
  } finally {
    for (const path of [ended, earlier]) await rm(path, { recursive: true, force: true });
  }
});
