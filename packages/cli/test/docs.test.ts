// `parley docs` against a real cluster, and the plan of a push or a pull.

import assert from "node:assert/strict";
import { chmodSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";

import { Cleanup, startTestCluster, type TestCluster } from "@parley/testing";

import { planPull, planPush } from "../src/docs/folder.ts";
import { parleyOnTerminal, runParley } from "./support/parley.ts";

const folder = mkdtempSync(join(tmpdir(), "parley-docs-"));
const home = join(folder, "home");
const cleanup = new Cleanup();
let cluster: TestCluster;

before(async () => {
  cleanup.add(async () => rmSync(folder, { recursive: true, force: true }));
  cluster = await startTestCluster(cleanup, { home, processes: [] });
});
after(() => cleanup[Symbol.asyncDispose]());

const docs = (args: string[], env: Record<string, string> = {}) => runParley(home, ["docs", ...args], { env });

/** An editor that writes a text into the file. */
function editor(name: string, script: string): string {
  const path = join(folder, name);
  writeFileSync(path, `#!/bin/sh\n${script}\n`);
  chmodSync(path, 0o755);
  return path;
}

function write(root: string, path: string, text: string): void {
  mkdirSync(join(root, path, ".."), { recursive: true });
  writeFileSync(join(root, path), text);
}

test("pushes, shows, pulls and lists a folder with its authors", async () => {
  const [one, two] = [join(folder, "one"), join(folder, "two")];
  write(one, "SOUL.md", "calm\n");
  write(one, "skills/tone/SKILL.md", "---\nname: tone\ndescription: how to speak\n---\n");
  write(one, "memory/photo.png", "no document");
  write(one, "README.md", "not looked at");
  const dry = await docs(["push", one, "--dry-run"]);
  assert.deepEqual([dry.code, dry.stdout], [0, "would create SOUL.md\nwould create skills/tone/SKILL.md\n"]);
  assert.match(dry.stderr, /ignored: memory\/photo\.png: .*end in \.md/);
  const pushed = await docs(["push", one]);
  assert.deepEqual(
    [pushed.code, pushed.stdout],
    [0, "pushed   SOUL.md (version 1)\npushed   skills/tone/SKILL.md (version 1)\n"],
  );
  assert.equal((await docs(["push", one])).stdout, "The store is up to date.\n");
  assert.equal((await docs(["show", "SOUL.md"])).stdout, "calm\n");
  assert.match((await docs(["list"])).stdout, /SOUL\.md +1 +5 +import/);
  assert.equal((await docs(["pull", two])).code, 0);
  assert.equal(readFileSync(join(two, "SOUL.md"), "utf8"), "calm\n");
});

test("overwrites newer versions only with --force, and keeps all versions", async () => {
  const [mine, theirs] = [join(folder, "mine"), join(folder, "theirs")];
  write(mine, "USER.md", "Anna\n");
  await docs(["push", mine]);
  await docs(["pull", theirs]);
  write(theirs, "USER.md", "Anna, likes tea\n");
  assert.equal((await docs(["push", theirs])).code, 0);
  write(mine, "USER.md", "Anna, likes coffee\n");
  write(mine, "TOOLS.md", "new\n");
  const refused = await docs(["push", mine]);
  assert.equal(refused.code, 1);
  assert.match(refused.stderr, /refused: USER\.md is at version 2 in the store; your file is based on version 1/);
  assert.equal((await docs(["show", "TOOLS.md"])).code, 1);
  const pulled = await docs(["pull", mine]);
  assert.equal(pulled.code, 1);
  assert.match(pulled.stderr, /left: USER\.md .* has local changes/);
  assert.equal(readFileSync(join(mine, "USER.md"), "utf8"), "Anna, likes coffee\n");
  const forced = await docs(["push", mine, "--force"]);
  assert.deepEqual([forced.code, forced.stdout.includes("pushed   USER.md (version 3)")], [0, true]);
  assert.equal((await docs(["show", "USER.md", "--at", "2"])).stdout, "Anna, likes tea\n");
  assert.match((await docs(["history", "USER.md"])).stdout, /3 .*\n2 .*\n1 /);
});

test("names pushed skills that are not loaded, and files that are no documents", async () => {
  const root = join(folder, "skills-of-ann");
  write(root, "RANDOM.md", "x\n");
  write(root, "skills/headless/SKILL.md", "Do this.\n");
  write(root, "skills/empty/notes.md", "x\n");
  write(
    root,
    "skills/good/SKILL.md",
    "---\nname: good\ndescription: Works.\nrequires: { bins: [no-such-program] }\n---\nDo it.\n",
  );
  const pushed = await docs(["push", root]);
  assert.equal(pushed.code, 0, pushed.stderr);
  assert.match(pushed.stderr, /^ignored: RANDOM\.md: documents are only SOUL\.md/m);
  assert.match(pushed.stderr, /^warning: skills\/headless\/SKILL\.md: not loaded: it does not begin with a YAML head/m);
  assert.match(pushed.stderr, /^warning: skills\/empty: not loaded: the folder has no SKILL\.md$/m);
  const listed = await runParley(home, ["skills", "list"]);
  assert.match(listed.stdout, /^good +unavailable +requires the program no-such-program +skills\/good\/SKILL\.md$/m);
  assert.match(listed.stdout, /^skills\/empty: not loaded: the folder has no SKILL\.md$/m);
  assert.match(listed.stdout, /^skills\/headless\/SKILL\.md: not loaded/m);
  const sent = await runParley(home, ["send", "/skills"]);
  assert.match(
    sent.stdout,
    /- good \(unavailable: requires the program no-such-program\): Works\.[\s\S]*- skills\/empty: not loaded/,
  );
});

test("removes the document of a missing file only on request", async () => {
  const root = join(folder, "gone");
  write(root, "memory/old.md", "x\n");
  await docs(["push", root]);
  await docs(["pull", root]);
  rmSync(join(root, "memory/old.md"));
  assert.match((await docs(["push", root])).stdout, /store is up to date/);
  assert.match((await docs(["push", root, "--delete"])).stdout, /^removed {2}memory\/old\.md \(version 2\)$/m);
  assert.match((await docs(["list", "--removed"])).stdout, /memory\/old\.md +2 +removed/);
});

test("stores the edited text, keeps it on a conflict, and refuses invalid paths", async () => {
  const EDITOR = editor("say", 'printf "first\\n" > "$1"');
  assert.match((await docs(["edit", "MEMORY.md"], { EDITOR })).stdout, /is now at version 1/);
  assert.match((await docs(["edit", "MEMORY.md"], { EDITOR })).stdout, /is unchanged/);
  // Another writer changes the document while the editor is open.
  const other = editor("other", 'printf "theirs\\n" > "$1"');
  const command = `EDITOR=${other} ${process.execPath} --conditions=@parley/source ${join(import.meta.dirname, "../src/main.ts")} docs edit MEMORY.md --home ${home}`;
  const slow = editor("slow", `${command} && printf "mine\\n" > "$1"`);
  const late = await docs(["edit", "MEMORY.md"], { EDITOR: slow });
  assert.equal(late.code, 1);
  assert.match(late.stderr, /MEMORY\.md is at version 2: it was changed in the meantime/);
  const kept = /kept in (\S+)\./.exec(late.stderr)?.[1] ?? "";
  assert.equal(readFileSync(kept, "utf8"), "mine\n");
  rmSync(join(kept, ".."), { recursive: true });
  assert.equal((await docs(["show", "MEMORY.md"])).stdout, "theirs\n");
  const wrong = await docs(["edit", "notes.txt"]);
  assert.deepEqual([wrong.code, /documents are only SOUL\.md/.test(wrong.stderr)], [2, true]);
});

test("shows and reverts the last change, keeps every version, and restores a removed note", async () => {
  const path = "memory/tea.md";
  const root = join(folder, "versions");
  for (const text of ["tea\n", "tea\nmilk\n", "tea\nlemon\n"]) {
    write(root, path, text);
    assert.equal((await docs(["push", root, "--force"])).code, 0);
  }
  const last = await docs(["diff", path]);
  assert.equal(last.code, 0);
  assert.match(last.stdout, /^--- memory\/tea\.md\tversion 2, import, .*\n\+\+\+ memory\/tea\.md\tversion 3, import, /);
  assert.match(last.stdout, /\n@@ -1,2 \+1,2 @@\n tea\n-milk\n\+lemon\n$/);
  assert.match((await docs(["diff", path, "--to", "1"])).stdout, /^--- \/dev\/null\t.*\n.*version 1.*\n.*\n\+tea\n$/);

  const restored = await docs(["restore", path, "--version", "2"]);
  assert.deepEqual(
    [restored.code, restored.stdout],
    [0, "memory/tea.md has the text of version 2 again, as version 4.\n"],
  );
  assert.match((await docs(["history", path])).stdout, /4 .* import \(restored 2\) .*\n3 .* import .*\n2 .*\n1 /);
  assert.match(
    (await docs(["diff", path, "--from", "2"])).stderr,
    /Versions 2 and 4 of memory\/tea\.md have the same text/,
  );
  assert.match((await docs(["restore", path, "--version", "4"])).stdout, /already has the text of version 4/);

  rmSync(join(root, path));
  // The folder was created from version 3: it may remove only documents of that version.
  await docs(["pull", root, "--force"]);
  rmSync(join(root, path));
  assert.match((await docs(["push", root, "--delete"])).stdout, /removed {2}memory\/tea\.md \(version 5\)/);
  assert.match(
    (await docs(["diff", path])).stdout,
    /\n\+\+\+ \/dev\/null\tversion 5 \(removed\), .*\n.*\n-tea\n-milk\n$/,
  );
  const empty = await docs(["restore", path, "--version", "5"]);
  assert.deepEqual([empty.code, /restore memory\/tea\.md --version 4 restores the text/.test(empty.stderr)], [1, true]);
  assert.match((await docs(["restore", path, "--version", "1"])).stdout, /of version 1 again, as version 6/);
  assert.equal((await docs(["show", path])).stdout, "tea\n");
});

test("names a missing path, version or document in diff and restore", async () => {
  const said = async (args: string[]) => {
    const { code, stderr } = await docs(args);
    return `${code} ${stderr}`;
  };
  assert.match(await said(["diff"]), /^2 .*Name a document/);
  assert.match(await said(["restore", "SOUL.md"]), /^2 .*Name a version/);
  assert.match(await said(["diff", "SOUL.md", "--from", "two"]), /^2 .*--from: "two" is not a version/);
  assert.match(await said(["diff", "memory/never.md"]), /^1 .*There has never been a document memory\/never\.md/);
  assert.match(
    await said(["restore", "SOUL.md", "--version", "99"]),
    /^1 .*there is no document SOUL\.md of version 99/,
  );
});

test("shows the author of each line, and vouches once for imported lines", async () => {
  const path = "memory/imported.md";
  const root = join(folder, "vouched");
  write(root, path, "tea\n\nlemon\n");
  await docs(["push", root]);
  const shown = await docs(["show", path, "--authors"]);
  assert.equal(shown.stdout, "import     tea\nimport     \nimport     lemon\n");
  assert.equal(shown.stderr, "Version 1; no lines are untrusted.\n");
  const vouched = await docs(["vouch", path, "--version", "1"]);
  assert.deepEqual(
    [vouched.code, vouched.stdout],
    [0, "All lines of memory/imported.md are now yours, as version 2.\n"],
  );
  const again = await docs(["vouch", path, "--version", "2"]);
  assert.deepEqual(
    [again.code, again.stdout],
    [0, "Nothing to do: all lines of memory/imported.md are already yours.\n"],
  );
  assert.match((await docs(["show", path, "--authors", "--at", "1"])).stdout, /^import {5}tea\n/);
  const data = await docs(["show", path, "--authors", "--json"]);
  assert.match(data.stdout, /"authors": \[\s+"owner",\s+"owner",\s+"owner"\s+\]/);
  assert.equal((await docs(["show", path])).stdout, "tea\n\nlemon\n");
});

test("names a missing path, version or document in vouch", async () => {
  const said = async (args: string[]) => {
    const { code, stderr } = await docs(["vouch", ...args]);
    return `${code} ${stderr}`;
  };
  assert.match(await said([]), /^2 .*Name a document/);
  assert.match(
    await said(["SOUL.md"]),
    /^2 .*name the version that you have read[^]*parley docs show SOUL\.md --authors/,
  );
  assert.match(await said(["SOUL.md", "--version", "x"]), /^2 .*--version: "x" is not a version/);
  const never = /^1 .*There is no document memory\/never\.md\.[^]*parley docs list/;
  assert.match(await said(["memory/never.md", "--version", "1"]), never);
  const asked = parleyOnTerminal(home, ["docs", "vouch", "memory/never.md"]);
  await asked.says(/There is no document memory\/never\.md\./);
  assert.equal((await asked.outcome()).code, 1);
});

test("explains API refusals: without a token, for an invalid path, for a missing document", async () => {
  const url = cluster.httpUrls[0] ?? "";
  assert.equal((await fetch(`${url}/api/documents`)).status, 401);
  const token = readFileSync(join(home, "token"), "utf8").trim();
  const post = (path: string, body: unknown) =>
    fetch(`${url}${path}`, {
      method: "POST",
      headers: { authorization: `Bearer ${token}`, "content-type": "application/json" },
      body: JSON.stringify(body),
    });
  const bad = await post("/api/documents/put", { path: "notes.txt", content: "x" });
  assert.equal(bad.status, 400);
  assert.match(await bad.text(), /documents are only SOUL\.md/);
  assert.equal((await post("/api/documents/delete", { path: "memory/never.md" })).status, 404);
  assert.equal(
    (await post("/api/documents/put", { path: "HEARTBEAT.md", content: "x", expectedVersion: 7 })).status,
    409,
  );
  assert.equal((await post("/api/documents/put", { path: "HEARTBEAT.md", content: "x", author: "agent" })).status, 400);
});

const local = (path: string, sha256: string) => new Map([[path, { path, content: sha256, sha256 }]]);
const remote = (path: string, version: number, sha256: string) => new Map([[path, { path, version, sha256 }]]);

test("plans to write only what changed on its own side", () => {
  const path = "MEMORY.md";
  const base = { [path]: { version: 1, sha256: "a" } };
  const push = (sides: Parameters<typeof planPush>[0]) => planPush(sides, { remove: false }).map(({ act }) => act);
  const pull = (sides: Parameters<typeof planPull>[0]) => planPull(sides).map(({ act }) => act);
  const mineChanged = { local: local(path, "b"), bases: base, remote: remote(path, 1, "a") };
  assert.deepEqual([push(mineChanged), pull(mineChanged)], [["write"], []]);
  const theirsChanged = { local: local(path, "a"), bases: base, remote: remote(path, 2, "c") };
  assert.deepEqual([push(theirsChanged), pull(theirsChanged)], [["conflict"], ["write"]]);
  const both = { local: local(path, "b"), bases: base, remote: remote(path, 2, "c") };
  assert.deepEqual([push(both), pull(both)], [["conflict"], ["conflict"]]);
  const same = { local: local(path, "c"), bases: {}, remote: remote(path, 9, "c") };
  assert.deepEqual([push(same), pull(same)], [[], []]);
  const removedThere = { local: local(path, "a"), bases: base, remote: new Map<string, never>() };
  assert.deepEqual([push(removedThere), pull(removedThere)], [["conflict"], ["remove"]]);
  const removedAndChanged = { ...removedThere, local: local(path, "b") };
  assert.deepEqual([push(removedAndChanged), pull(removedAndChanged)], [["conflict"], ["conflict"]]);
});
