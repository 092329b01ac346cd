// Pictures and documents in results, and conversion between files and attachments, with a real store.
import assert from "node:assert/strict";
import { createHash, randomBytes } from "node:crypto";
import { mkdir, readFile, symlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { fetchBlob, storeBlob, type Bus } from "@parley/bus";
import { store, type ToolResult } from "@parley/contracts";
import { Cleanup } from "@parley/testing";
import { openRunnerFixture, type RunnerFixture } from "./support/runner-fixture.ts";

const cleanup = new Cleanup();
let fixture: RunnerFixture;
let workspace: string;
let gateway: Bus;

const hashOf = (content: Uint8Array) => createHash("sha256").update(content).digest("hex");
const pdf = (text: string) => Buffer.from(`%PDF-1.4\n% ${text}\n1 0 obj\n<<>>\nendobj\ntrailer <<>>\n%%EOF\n`);
const jpeg = (noise: number) =>
  Buffer.concat([Buffer.from("ffd8ffe000104a46494600010100000100010000", "hex"), randomBytes(noise)]);

before(async () => {
  fixture = await openRunnerFixture(cleanup);
  await fixture.runner("one");
  ({ workspace } = await fixture.config("one"));
  await mkdir(workspace, { recursive: true });
  gateway = await fixture.stack.bus("channel-gateway");
});
after(() => cleanup[Symbol.asyncDispose]());

async function result(tool: string, input: object): Promise<ToolResult> {
  const toolClass = tool === "read" ? "pure" : "idempotent";
  const [request] = await fixture.plan([{ tool, class: toolClass, input }]);
  assert.ok(request);
  return (await fixture.call(request)).result;
}

test("returns a PDF and a picture as attachments by content type, kept by the session", async () => {
  for (const [name, content, mediaType] of [
    ["report.txt", pdf("read"), "application/pdf"],
    ["picture.pdf", jpeg(700_000), "image/jpeg"],
  ] as const) {
    await writeFile(join(workspace, name), content);
    const [request] = await fixture.plan([{ tool: "read", class: "pure", input: { path: name } }]);
    assert.ok(request);
    const { result: shown, state } = await fixture.call(request);
    assert.equal(state, "done");
    assert.match(shown.content, new RegExp(`^"${name}" is ${mediaType}, `));
    const attachment = { sha256: hashOf(content), mediaType, name, bytes: content.length };
    assert.deepEqual(shown.attachments, [attachment]);
    assert.deepEqual((await fixture.step(request)).result?.attachments, [attachment]);
    assert.deepEqual(await fetchBlob(fixture.core, hashOf(content)), content);
  }
});

test("names the kind of other binary files and returns text as text", async () => {
  await writeFile(join(workspace, "data.gz"), Buffer.from([0x1f, 0x8b, 8, 0, 0]));
  const gzip = await result("read", { path: "data.gz" });
  assert.deepEqual([gzip.isError, gzip.attachments], [true, undefined]);
  assert.match(gzip.content, /gzip archive/);
  await writeFile(join(workspace, "plain.txt"), "hello\n");
  const text = await result("read", { path: "plain.txt" });
  assert.deepEqual([text.isError, text.attachments], [false, undefined]);
});

test("refuses a file above the limits", async () => {
  await writeFile(join(workspace, "large.jpg"), jpeg(21 * 1024 * 1024));
  const refused = await result("attach", { path: "large.jpg" });
  assert.equal(refused.isError, true);
  assert.match(refused.content, /the limit is 20971520/);
  await writeFile(join(workspace, "huge.jpg"), jpeg(65 * 1024 * 1024));
  assert.match((await result("attach", { path: "huge.jpg" })).content, /at most 64\.0 MiB/);
});

test("attach stores a copy, returns its id and removes a path from its name", async () => {
  const content = Buffer.from("a,b\n1,2\n");
  await writeFile(join(workspace, "table.csv"), content);
  const attached = await result("attach", { path: "table.csv", name: "../../quarter\u202e.csv" });
  assert.equal(attached.isError, false);
  assert.match(
    attached.content,
    new RegExp(`^Attached "quarter\\.csv", text/plain, 8 bytes\\. Its id is ${hashOf(content)}`),
  );
  await writeFile(join(workspace, "table.csv"), "changed");
  assert.deepEqual(await fetchBlob(gateway, hashOf(content)), content);
});

test("attach refuses paths outside the workspace, folders, documents and missing files", async () => {
  await writeFile(join(workspace, "..", "outside.txt"), "secret");
  await symlink("../outside.txt", join(workspace, "link.txt"));
  for (const path of ["../outside.txt", "/etc/passwd", "link.txt", ".", "nothing.txt", "MEMORY.md"]) {
    const refused = await result("attach", { path });
    assert.equal(refused.isError, true, path);
    assert.ok(!refused.content.includes("secret"));
  }
  const { blobs } = await gateway.request(store.blobHead, { sha256: [hashOf(Buffer.from("secret"))] });
  assert.deepEqual(blobs, []);
});

test("save_attachment writes identical bytes, only in the workspace, for known ids", async () => {
  const content = randomBytes(600_000);
  const attached = { type: "blob" as const, name: "file.bin", ...(await storeBlob(gateway, content)) };
  const { sha256 } = attached;
  const [request] = await fixture.plan(
    [{ tool: "save_attachment", class: "once", input: { id: sha256, path: "in/deep/file.bin" } }],
    { attached },
  );
  assert.ok(request);
  const { result: saved } = await fixture.call(request);
  assert.deepEqual([saved.isError, saved.content], [false, 'Saved as "in/deep/file.bin": 585.9 KiB.']);
  assert.deepEqual(await readFile(join(workspace, "in/deep/file.bin")), content);
  for (const input of [
    { id: sha256, path: "../out.bin" },
    { id: sha256, path: "MEMORY.md" },
    { id: "0".repeat(64), path: "a.bin" },
    { id: "../../etc/passwd", path: "a.bin" },
  ]) {
    assert.equal((await result("save_attachment", input)).isError, true, JSON.stringify(input));
  }
});
