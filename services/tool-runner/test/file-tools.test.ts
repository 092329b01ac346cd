// read, write, edit and ls as a model uses them.
import assert from "node:assert/strict";
import { chmod, mkdir, readdir, readFile, stat, symlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import fc from "fast-check";
import { editTool } from "../src/tools/edit.ts";
import { lsTool } from "../src/tools/ls.ts";
import { readPage } from "../src/tools/page.ts";
import { readTool } from "../src/tools/read.ts";
import { replaceText } from "../src/text/replace-text.ts";
import { writeTool } from "../src/tools/write.ts";
import { makeWorkspaceFixture } from "./support/workspace-fixture.ts";

// design: 000.15
test("read numbers lines and returns the call for the next page until the end", async () => {
  await using ground = await makeWorkspaceFixture();
  const lines = Array.from({ length: 5_000 }, (_, index) => `line number ${index + 1}`);
  await writeFile(join(ground.inside, "long.txt"), `${lines.join("\n")}\n`);
  const seen: string[] = [];
  let args: unknown = { path: "long.txt" };
  for (let pages = 1; ; pages++) {
    const { content, isError } = await ground.call(readTool, args);
    assert.equal(isError, false);
    assert.ok(content.length < 52_000);
    seen.push(...[...content.matchAll(/^ *\d+\t(.*)$/gm)].map((match) => match[1] ?? ""));
    const next = /Read on with: read\((\{.*\})\)\]/.exec(content);
    if (next === null) break;
    assert.ok(pages < 10);
    args = JSON.parse(next[1] ?? "");
  }
  assert.deepEqual(seen, lines);
});

// design: 000.15
test("read applies offset and limit, and reports an offset past the end", async () => {
  await using ground = await makeWorkspaceFixture();
  await writeFile(join(ground.inside, "f.txt"), "a\nb\nc\nd");
  assert.equal(
    (await ground.call(readTool, { path: "f.txt", offset: 2, limit: 2 })).content,
    '     2\tb\n     3\tc\n\n[Lines 2 to 3 of a file of 7 bytes. Read on with: read({"path":"f.txt","offset":4,"limit":2})]',
  );
  assert.equal((await ground.call(readTool, { path: "f.txt", offset: 4 })).content, "     4\td");
  const past = await ground.call(readTool, { path: "f.txt", offset: 9 });
  assert.deepEqual(past, { content: "The file has 4 lines; line 9 is past its end.", isError: true });
  await writeFile(join(ground.inside, "empty"), "");
  assert.match((await ground.call(readTool, { path: "empty" })).content, /is empty/);
  assert.match((await ground.call(readTool, { path: "none" })).content, /"none" does not exist/);
  assert.match((await ground.call(readTool, { path: "." })).content, /is a directory; list it with ls/);
});

// design: 000.15
test("read pages a file of 300 MB without loading it", async () => {
  await using ground = await makeWorkspaceFixture();
  const megabyte = Buffer.from("0123456789abcde\n".repeat(65_536));
  const handle = await import("node:fs/promises").then(({ open }) => open(join(ground.inside, "big.txt"), "w"));
  for (let i = 0; i < 300; i++) await handle.write(megabyte);
  await handle.close();
  const before = process.memoryUsage.rss();
  const page = await ground.call(readTool, { path: "big.txt", offset: 19_660_790 });
  assert.match(page.content, /19660790\t0123456789abcde/);
  assert.match(page.content, /19660800\t0123456789abcde$/);
  const grownMib = (process.memoryUsage.rss() - before) / 1024 / 1024;
  assert.ok(grownMib < 60, `memory grew by ${grownMib.toFixed(1)} MiB`);
});

test("read cuts a very long line and can read the lines after it", async () => {
  await using ground = await makeWorkspaceFixture();
  await writeFile(join(ground.inside, "min.js"), `first\n${"x".repeat(3_000_000)}\nlast\n`);
  const first = await ground.call(readTool, { path: "min.js" });
  assert.match(first.content, /1\tfirst/);
  assert.match(first.content, /"offset":2/);
  const second = await ground.call(readTool, { path: "min.js", offset: 2 });
  assert.ok(second.content.length < 52_000);
  assert.match(second.content, /Line 2 is longer than a page/);
  assert.match(second.content, /"offset":3/);
  assert.match((await ground.call(readTool, { path: "min.js", offset: 3 })).content, /3\tlast/);
});

test("read names the kind of a binary file", async () => {
  await using ground = await makeWorkspaceFixture();
  await writeFile(join(ground.inside, "a.png"), Buffer.from([0x89, 0x50, 0x4e, 0x47, 0, 0, 0, 1]));
  await writeFile(join(ground.inside, "b.bin"), Buffer.from([1, 2, 0, 3]));
  assert.match((await ground.call(readTool, { path: "a.png" })).content, /a PNG image \(8 bytes\)/);
  assert.match((await ground.call(readTool, { path: "b.bin" })).content, /binary data/);
});

test("property: all pages together are the file", async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(fc.string({ unit: fc.constantFrom("a", "é", "漢", "\t", "🙂"), maxLength: 30 }), { maxLength: 40 }),
      fc.integer({ min: 1, max: 7 }),
      fc.integer({ min: 1, max: 9 }),
      async (lines, chunkBytes, limit) => {
        const bytes = Buffer.from(lines.map((line) => `${line}\n`).join(""));
        const seen: string[] = [];
        for (let offset: number | undefined = 1; offset !== undefined;) {
          const page: Awaited<ReturnType<typeof readPage>> = await readPage(chunks(bytes, chunkBytes), {
            offset,
            limit,
            maxCharacters: 120,
          });
          seen.push(...page.lines.map((line) => line.slice(7)));
          assert.ok(page.next === undefined || page.next > offset);
          offset = page.next;
        }
        assert.deepEqual(seen, lines);
      },
    ),
    { numRuns: 300 },
  );
});

test("write creates directories, replaces files, keeps the mode and leaves no other files", async () => {
  await using ground = await makeWorkspaceFixture();
  assert.match(
    (await ground.call(writeTool, { path: "a/b/run.sh", content: "#!/bin/sh\n" })).content,
    /Created "a\/b\/run.sh": 1 line, 10 bytes/,
  );
  await chmod(join(ground.inside, "a/b/run.sh"), 0o750);
  assert.match((await ground.call(writeTool, { path: "a/b/run.sh", content: "" })).content, /Replaced/);
  assert.equal((await stat(join(ground.inside, "a/b/run.sh"))).mode & 0o777, 0o750);
  assert.equal(await readFile(join(ground.inside, "a/b/run.sh"), "utf8"), "");
  assert.deepEqual(await readdir(join(ground.inside, "a/b")), ["run.sh"]);
  assert.match((await ground.call(writeTool, { path: "a", content: "x" })).content, /is a directory/);
  assert.match(
    (await ground.call(writeTool, { path: "a/b/run.sh/c", content: "x" })).content,
    /is a file, not a directory/,
  );
});

test("write replaces a file atomically", async () => {
  await using ground = await makeWorkspaceFixture();
  const contents = ["a", "b"].map((letter) => letter.repeat(400_000));
  await ground.call(writeTool, { path: "f", content: contents[0] });
  const writing = (async () => {
    for (let i = 1; i <= 60; i++) await ground.call(writeTool, { path: "f", content: contents[i % 2] });
  })();
  const state = { writing: true };
  void writing.finally(() => (state.writing = false));
  while (state.writing) assert.ok(contents.includes(await readFile(join(ground.inside, "f"), "utf8")));
  await writing;
});

// design: 000.15
test("edit requires exactly one match, reports the count and keeps line ends", async () => {
  await using ground = await makeWorkspaceFixture();
  const file = join(ground.inside, "f.txt");
  await writeFile(file, "one\r\ntwo\r\ntwo\r\n");
  const twice = await ground.call(editTool, { path: "f.txt", old_text: "two", new_text: "2" });
  assert.match(twice.content, /occurs 2 times .* \(lines 2, 3\); nothing was changed/);
  const missing = await ground.call(editTool, { path: "f.txt", old_text: "three", new_text: "3" });
  assert.match(missing.content, /occurs 0 times/);
  assert.equal(await readFile(file, "utf8"), "one\r\ntwo\r\ntwo\r\n");
  await ground.call(editTool, { path: "f.txt", old_text: "one\ntwo", new_text: "eins\nzwei" });
  assert.equal(await readFile(file, "utf8"), "eins\r\nzwei\r\ntwo\r\n");
  const all = await ground.call(editTool, { path: "f.txt", old_text: "w", new_text: "$&", replace_all: true });
  assert.match(all.content, /2 occurrences replaced, the first at line 2/);
  assert.equal(await readFile(file, "utf8"), "eins\r\nz$&ei\r\nt$&o\r\n");
});

test("edit refuses files that are not text", async () => {
  await using ground = await makeWorkspaceFixture();
  await writeFile(join(ground.inside, "latin1.txt"), Buffer.from([0x61, 0xe9, 0x62]));
  assert.match(
    (await ground.call(editTool, { path: "latin1.txt", old_text: "a", new_text: "b" })).content,
    /not a UTF-8 text file/,
  );
  assert.match(
    (await ground.call(editTool, { path: "latin1.txt", old_text: "a", new_text: "a" })).content,
    /identical/,
  );
});

test("property: an edit changes only its passage", () => {
  const text = fc.string({ unit: fc.constantFrom("a", "b", "\n", "\r\n", "é") });
  fc.assert(
    fc.property(text, text, text, text, (before, passage, after, replacement) => {
      fc.pre(passage !== "");
      const whole = `${before}${passage}${after}`;
      const result = replaceText(whole, passage, replacement, false);
      if (result.status === "replaced") assert.equal(result.text, `${before}${replacement}${after}`);
      else assert.equal(result.status, "ambiguous");
    }),
  );
});

test("ls shows type, size and link targets", async () => {
  await using ground = await makeWorkspaceFixture();
  await mkdir(join(ground.inside, "dir"));
  await writeFile(join(ground.inside, "file.txt"), "12345");
  await symlink("/etc", join(ground.inside, "link"));
  assert.equal(
    (await ground.call(lsTool, {})).content,
    ["dir              -  dir/", "file             5  file.txt", "link             -  link -> /etc"].join("\n"),
  );
  assert.match((await ground.call(lsTool, { path: "dir" })).content, /"dir" is empty/);
});

async function* chunks(bytes: Buffer, size: number): AsyncGenerator<Uint8Array> {
  for (let at = 0; at < bytes.length; at += size) yield bytes.subarray(at, at + size);
}
