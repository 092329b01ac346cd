// glob and grep: what they find, what they skip, and that no pattern blocks the service.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { constants } from "node:fs";
import { mkdir, open, symlink, writeFile } from "node:fs/promises";
import { totalmem } from "node:os";
import { dirname, join } from "node:path";
import { test } from "node:test";
import { rgPath } from "@vscode/ripgrep";
import fc from "fast-check";
import { minimatch } from "minimatch";
import { propertyRuns } from "@parley/testing/property-runs";
import { globTool } from "../src/tools/glob.ts";
import { grepTool } from "../src/tools/grep.ts";
import { openExecutor } from "../src/sandbox/executor.ts";
import { defaultExecLimits } from "../src/sandbox/limits.ts";
import { createSearcher } from "../src/search/search.ts";
import { bwrap, running } from "./support/commands.ts";
import { makeWorkspaceFixture } from "./support/workspace-fixture.ts";

test("matches glob patterns like a shell", async () => {
  await using ground = await makeWorkspaceFixture();
  const patterns: Record<string, string[]> = {
    "*.ts": ["a.ts", "src/a.ts", "src/x/y/a.ts"],
    "src/*.ts": ["src/a.ts"],
    "src/**/*.ts": ["src/a.ts", "src/x/y/a.ts"],
    "**/b": ["x/b"],
    "a?c": ["abc"],
    "[a-c]x": ["bx"],
    "[!a-c]x": ["dx"],
    "*.{ts,js}": ["a.js", "a.ts", "src/a.ts", "src/x/y/a.ts"],
    "{src,test}/**": ["src/a.ts", "src/x/a.tsx", "src/x/y/a.ts", "test/.hidden"],
    "{a,b{c,d}}": ["bd"],
    "[": ["["],
    "./abc": ["abc"],
    "!important": ["!important"],
    "#1": ["#1"],
    "{a": ["{a"],
    "a}": ["a}"],
    "[]": ["[]"],
    "*.{js": ["x.{js"],
    "back\\": ["back\\"],
    "{a,[}]}z": ["az", "}z"],
    " ": [" "],
    "end  ": ["end  "],
    "tab\t": ["tab\t"],
  };
  const names = ["other/src/a.md", "ac", ...new Set(Object.values(patterns).flat())];
  for (const name of names) {
    await mkdir(dirname(join(ground.inside, name)), { recursive: true });
    await writeFile(join(ground.inside, name), "");
  }
  for (const [pattern, paths] of Object.entries(patterns)) {
    assert.equal((await ground.call(globTool, { pattern })).content, paths.join("\n"), pattern);
  }
  for (const include of ["a\0", "\0"]) {
    assert.match((await ground.call(globTool, { pattern: include })).content, /contains a NUL byte/);
    assert.match((await ground.call(grepTool, { pattern: "x", include })).content, /contains a NUL byte/);
    assert.match((await ground.call(grepTool, { pattern: include })).content, /contains a NUL byte/);
  }
  assert.equal((await ground.call(globTool, { pattern: "**" })).content.split("\n").length, names.length);
});

test("matches globs quickly that backtrack elsewhere", async () => {
  await using ground = await makeWorkspaceFixture();
  const folder = join(ground.inside, ...Array<string>(60).fill("a"));
  await mkdir(folder, { recursive: true });
  await writeFile(join(folder, "a".repeat(200)), "");
  for (const pattern of ["*a*a*a*a*a*a*a*a*a*a*b", "**/a/**/a/**/a/**/a/**/b"]) {
    assert.equal((await ground.call(globTool, { pattern })).content, "No file matches.");
    // Of this thread: other processes do not count.
    const before = process.threadCpuUsage();
    assert.equal(minimatch("a/".repeat(500) + "a".repeat(2_000), pattern), false);
    assert.ok(process.threadCpuUsage(before).user < 1_000_000);
  }
});

test("finds lines with grep, applies the include filter, and reports none or too many", async () => {
  await using ground = await makeWorkspaceFixture();
  await mkdir(join(ground.inside, "src"));
  await mkdir(join(ground.inside, "node_modules"));
  await writeFile(join(ground.inside, "src/a.ts"), "const x = 1;\nfunction find() {}\r\n");
  await writeFile(join(ground.inside, "src/b.md"), "find me\n");
  await writeFile(join(ground.inside, "node_modules/c.ts"), "find\n");
  await writeFile(join(ground.inside, "bin"), Buffer.from("find\0"));
  await symlink(ground.outside, join(ground.inside, "out"));
  assert.equal(
    (await ground.call(grepTool, { pattern: "find" })).content,
    "src/a.ts:2: function find() {}\nsrc/b.md:1: find me",
  );
  assert.equal(
    (await ground.call(grepTool, { pattern: "FIND", include: "*.md", ignore_case: true })).content,
    "src/b.md:1: find me",
  );
  assert.equal((await ground.call(grepTool, { pattern: "find", path: "src/b.md" })).content, "src/b.md:1: find me");
  assert.equal(
    (await ground.call(grepTool, { pattern: "find", path: "node_modules" })).content,
    "node_modules/c.ts:1: find",
  );
  assert.match((await ground.call(grepTool, { pattern: "nowhere" })).content, /^No match in 3 files\.$/);
  assert.match((await ground.call(grepTool, { pattern: "secret" })).content, /^No match/);
  await writeFile(join(ground.inside, "many"), "hit\n".repeat(150));
  const many = await ground.call(grepTool, { pattern: "hit" });
  assert.equal(many.content.split("\n").filter((line) => line.startsWith("many:")).length, 100);
  assert.match(many.content, /Truncated: only the first 100 are shown/);
  const broken = await ground.call(grepTool, { pattern: "(" });
  assert.equal(broken.isError, true);
  assert.match(broken.content, /The pattern is invalid/);
});

test("lists files, counts lines and shows context with grep", async () => {
  await using ground = await makeWorkspaceFixture();
  await writeFile(join(ground.inside, "a.txt"), "1\n2\nhit 3\n4\nhit 5\n6\n7\n8\n9\nhit 10\n11");
  await writeFile(join(ground.inside, "b.txt"), "x\nhit 2\n");
  await writeFile(join(ground.inside, "c.txt"), "nothing\n");
  const grep = async (args: Record<string, unknown>) =>
    (await ground.call(grepTool, { pattern: "hit", ...args })).content;
  assert.equal(await grep({ mode: "files" }), "a.txt\nb.txt");
  assert.equal(await grep({ mode: "count" }), "a.txt: 3\nb.txt: 1");
  assert.match(await grep({ mode: "files", limit: 1 }), /^a\.txt\n\[Truncated: only the first 1 are shown/);
  assert.match(await grep({ mode: "count", limit: 1 }), /^a\.txt: 3\n\[Truncated/);
  assert.equal(
    await grep({ context: 1 }),
    [
      "a.txt-2- 2",
      "a.txt:3: hit 3",
      "a.txt-4- 4",
      "a.txt:5: hit 5",
      "a.txt-6- 6",
      "--",
      "a.txt-9- 9",
      "a.txt:10: hit 10",
      "a.txt-11- 11",
      "--",
      "b.txt-1- x",
      "b.txt:2: hit 2",
    ].join("\n"),
  );
  const two = await grep({ context: 2, limit: 2 });
  assert.equal(two.split("\n").filter((line) => /:\d+: /.test(line)).length, 2);
  assert.match(two, /Truncated: only the first 2 are shown/);
  assert.match(await grep({ mode: "lines" }), /mode: [^]*Accepted arguments: pattern \(required\), path, include/);
});

// design: 003.16
test("property: shows each line once, in order, and every hit with its context", async () => {
  await using ground = await makeWorkspaceFixture();
  await fc.assert(
    fc.asyncProperty(
      fc.array(fc.boolean(), { maxLength: 40 }),
      fc.nat(4),
      fc.integer({ min: 1, max: 8 }),
      async (isHit, context, limit) => {
        await writeFile(join(ground.inside, "f"), isHit.map((hit) => (hit ? "hit\n" : "no\n")).join(""));
        const { content } = await ground.call(grepTool, { pattern: "hit", context, limit });
        const shown = content.split("\n").flatMap((line) => /^f[:-](\d+)/.exec(line)?.[1] ?? []);
        const hits = isHit.flatMap((hit, index) => (hit ? [index] : []));
        // The search ends at the first hit above the limit.
        const end = hits[limit] ?? isHit.length;
        const near = (index: number) => hits.slice(0, limit).some((hit) => Math.abs(hit - index) <= context);
        const expected = isHit.flatMap((_, index) => (index < end && near(index) ? [String(index + 1)] : []));
        assert.deepEqual(shown, expected);
      },
    ),
    { numRuns: Math.min(40, propertyRuns(1_000)) },
  );
});

// design: 003.16
test("lists files by path with glob, and reports truncation", async () => {
  await using ground = await makeWorkspaceFixture();
  await mkdir(join(ground.inside, "d"));
  for (let i = 0; i < 510; i++) await writeFile(join(ground.inside, `d/${String(i).padStart(3, "0")}.txt`), "");
  const output = await ground.call(globTool, { pattern: "**/*.txt" });
  const lines = output.content.split("\n");
  assert.equal(lines[0], "d/000.txt");
  assert.equal(lines.length, 501);
  assert.match(lines.at(-1) ?? "", /Truncated: only the first 500/);
  assert.equal((await ground.call(globTool, { pattern: "*.md" })).content, "No file matches.");
});

// design: 003.16
test("shows as many lines with grep as fit within 50,000 characters, and counts the others", async () => {
  await using ground = await makeWorkspaceFixture();
  const line = `hit ${"x".repeat(196)}`;
  await writeFile(join(ground.inside, "f"), `${line}\n`.repeat(1_000));
  const { content } = await ground.call(grepTool, { pattern: "hit", limit: 1_000 });
  const shown = content.split("\n");
  const notice = shown.pop();
  const sizeTo = (count: number) =>
    Array.from({ length: count }, (_, index) => `f:${index + 1}: ${line}\n`).join("").length;
  assert.deepEqual(
    shown,
    shown.map((_, index) => `f:${index + 1}: ${line}`),
  );
  assert.ok(sizeTo(shown.length) <= 50_000 && sizeTo(shown.length + 1) > 50_000, `${shown.length} lines`);
  assert.equal(notice, `[Truncated: ${1_000 - shown.length} lines of the result do not fit. Narrow the search.]`);
});

test("searches in the sandbox, where links lead to nothing outside", { skip: bwrap === undefined }, async () => {
  await using ground = await makeWorkspaceFixture();
  const { workspace, inside, outside } = ground;
  const limits = defaultExecLimits(totalmem());
  const options = { workspace, setting: "bubblewrap" as const, bwrap: bwrap ?? "", searchPath: "/usr/bin", limits };
  const search = createSearcher((await openExecutor(options)).confine);
  await mkdir(join(inside, "folder"));
  await writeFile(join(inside, "folder/a.txt"), "in the folder\n");
  await symlink(outside, join(inside, "out"));
  const ask = async (pattern: string | null, directory: string) => {
    const query = { glob: null, pattern, maxHits: 10, isDenied: () => false };
    const target = { directory: inside, inside: { folder: inside, directory }, prefix: "", hidden: [] };
    return search(query, [target], AbortSignal.timeout(20_000));
  };
  const found = await ask("the", "/workspace");
  assert.deepEqual(found.status === "found" && found.hits.map(({ shown }) => shown), ["folder/a.txt:1: in the folder"]);
  const names = await ask(null, "/workspace/folder");
  assert.deepEqual(names.status === "found" && names.hits.map(({ shown }) => shown), ["a.txt"]);
  await using file = await open(join(inside, "folder/a.txt"));
  const query = { glob: null, pattern: "the", maxHits: 10 };
  const target = { directory: "/", file, inside: { folder: inside, directory: "/workspace" }, prefix: "a", hidden: [] };
  const one = await search(query, [target], AbortSignal.timeout(20_000));
  assert.deepEqual(one.status === "found" && one.hits.map(({ shown }) => shown), ["a:1: in the folder"]);
  // Rules for denied files are read inside, too.
  const isDenied = (path: string) => path === "folder/a.txt";
  const all = { directory: inside, inside: { folder: inside, directory: "/workspace" }, prefix: "", hidden: [] };
  const none = await search({ ...query, isDenied }, [all], AbortSignal.timeout(20_000));
  assert.deepEqual(none.status === "found" && [none.hits, none.filesSeen, none.unreadable], [[], 0, 0]);
  // A directory that was replaced by a link after it was resolved.
  await assert.rejects(ask("secret", "/workspace/out"), /the search program failed/);
});

test("answers patterns that backtrack elsewhere, with look-around up to a limit", async () => {
  await using ground = await makeWorkspaceFixture();
  await writeFile(join(ground.inside, "trap"), `${"a".repeat(5_000)}!\n`);
  const grep = async (pattern: string) => (await ground.call(grepTool, { pattern })).content;
  const started = performance.now();
  assert.equal(await grep("^(a+)+$"), "No match in 1 files.");
  assert.match(await grep("^(?=a)(a+)+$"), /could not be read/);
  assert.ok(performance.now() - started < 10_000);
  assert.match(await grep("(?<=a)!"), /^trap:1: …a/);
  assert.match(await grep("aaa"), /^trap:1: a/);
});

test("kills a search at its deadline, while the service stays responsive", async () => {
  await using ground = await makeWorkspaceFixture();
  const pipe = join(ground.inside, "pipe");
  execFileSync("mkfifo", [pipe]);
  await using file = await open(pipe, constants.O_RDWR);
  let turns = 0;
  const counter = setInterval(() => (turns += 1), 10);
  const query = { glob: null, pattern: `never-${process.pid}`, maxHits: 10, isDenied: () => false };
  const search = ground.searcher(
    query,
    [{ directory: "/", file, prefix: "pipe", hidden: [] }],
    AbortSignal.timeout(700),
  );
  await assert.rejects(search, /timeout/);
  clearInterval(counter);
  // A blocked loop turns once; a busy machine lets a free one turn less often than the timer asks.
  assert.ok(turns > 5, `the event loop turned ${turns} times`);
  assert.deepEqual(
    running(`${rgPath} --no-config`).filter((line) => line.includes(query.pattern)),
    [],
  );
});

test("shows the part of a long line around its hit, and skips lines that are too long", async () => {
  await using ground = await makeWorkspaceFixture();
  await writeFile(join(ground.inside, "a"), `${"x".repeat(10_000)} needle ${"y".repeat(10_000)}\n`);
  await writeFile(join(ground.inside, "b"), `${"needle ".repeat(200_000)}\n`);
  await writeFile(join(ground.inside, "c"), `needle ${"z".repeat(5 * 1024 * 1024)}\n`);
  const { content } = await ground.call(grepTool, { pattern: "needle" });
  const [first = "", second = "", ...rest] = content.split("\n");
  assert.match(first, /^a:1: …x{99} needle y+…$/);
  assert.match(second, /^b:1: needle needle .*…$/);
  assert.deepEqual(rest, ["[1 files or directories could not be read.]"]);
});
