// Deny rules for files and commands against other tools and other spellings, on a whole cluster. The tests check what the model
// received and what is on the disk.
import assert from "node:assert/strict";
import { existsSync, mkdirSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { apiClient, Cleanup, startTestCluster, type ApiClient, type TestCluster } from "@parley/testing";

const canary = "CANARY-5141";
const cleanup = new Cleanup();
let cluster: TestCluster;
let client: ApiClient;
let folder: string;

before(async () => {
  cluster = await startTestCluster(cleanup, {
    processes: [],
    settings: `
[session]
policy = "per_conversation"
[permissions]
allow = ["*"]
deny = ["read(secret/**)", "write(secret/**)", "exec(@recursive-delete)", "exec(touch *)"]
`,
  });
  client = apiClient([cluster.httpUrl], cluster.token);
  folder = join(cluster.home, "workspace");
  mkdirSync(join(folder, "secret"), { recursive: true });
  mkdirSync(join(folder, "kept"), { recursive: true });
  writeFileSync(join(folder, "secret", "key.txt"), `key ${canary}\n`);
  writeFileSync(join(folder, "public.txt"), "public words\n");
  writeFileSync(join(folder, "kept", "a.txt"), "a\n");
  symlinkSync("secret", join(folder, "s2"));
  symlinkSync("secret/key.txt", join(folder, "innocent.txt"));
});
after(() => cleanup[Symbol.asyncDispose]());

let conversations = 0;

/** Makes the model call one tool; returns everything that its session then contains, as text. */
async function call(tool: string, input: object): Promise<string> {
  const name = `deny-${++conversations}`;
  await client.ask(`tool: ${tool} ${JSON.stringify(input)}\nthen\nsay: over`, name);
  return (await client.fetch(`/api/sessions/http:default:${name}/messages?limit=100`)).text();
}

const reading: [string, object][] = [
  ["read", { path: "secret/key.txt" }],
  ["read", { path: "s2/key.txt" }],
  ["read", { path: "innocent.txt" }],
  ["grep", { pattern: "key .*", path: "secret" }],
  ["grep", { pattern: "key .*", path: "secret/key.txt" }],
  ["grep", { pattern: "key .*", path: "s2" }],
  ["grep", { pattern: "key .*" }],
  ["grep", { pattern: "key .*", path: "." }],
  ["exec", { command: "cat secret/key.txt" }],
  ["exec", { command: "cat s*/key.txt" }],
  ["exec", { command: "cat key.txt", workdir: "secret" }],
  ["exec", { command: "cat < secret/key.txt" }],
];

for (const [tool, input] of reading) {
  test(`does not show a denied file when ${tool} is called with ${JSON.stringify(input)}`, async () => {
    assert.doesNotMatch(await call(tool, input), new RegExp(canary));
  });
}

test("creates no attachment when the file is denied or a link leads to it", async () => {
  for (const path of ["secret/key.txt", "innocent.txt"]) {
    const log = await call("attach", { path });
    assert.match(log, /denies access|denies this call/);
    assert.doesNotMatch(log, /"sha256"/);
  }
});

test("omits denied files from glob and refuses ls when the folder is denied", async () => {
  const listed = await call("glob", { pattern: "**/*.txt" });
  assert.match(listed, /public\.txt/);
  assert.doesNotMatch(listed, /key\.txt/);
  for (const path of ["secret", "s2"]) assert.doesNotMatch(await call("ls", { path }), /key\.txt/);
});

test("finds text when no rule denies the files", async () => {
  assert.match(await call("grep", { pattern: "public \\w+" }), /public\.txt:1: public words/);
});

test("runs a command when no rule denies it", async () => {
  await call("exec", { command: "echo x > allowed.txt" });
  assert.ok(existsSync(join(folder, "allowed.txt")));
});

test("writes nothing when the folder is denied or a link leads into it", async () => {
  for (const path of ["secret/new.txt", "s2/new.txt"]) await call("write", { path, content: "x" });
  await call("apply_patch", { patch: "*** Begin Patch\n*** Add File: s2/new.txt\n+x\n*** End Patch" });
  await call("exec", { command: "echo x > secret/new.txt" });
  assert.equal(existsSync(join(folder, "secret", "new.txt")), false);
});

const deleting = [
  "rm -R kept",
  "rm --recursive --force kept",
  "rm kept -rf",
  "rm -v -r kept",
  "find kept -delete",
  "find kept -exec rm -r {} +",
  "nice rm -R kept",
  "bash -c 'rm -R kept'",
  "F=-rf; rm $F kept",
  "perl -e 'unlink \"kept/a.txt\"'",
  "awk 'BEGIN{system(\"rm -R kept\")}'",
  "source ./cleanup.sh",
];

for (const command of deleting) {
  test(`deletes no folder when the command is ${command}`, async () => {
    mkdirSync(join(folder, "kept"), { recursive: true });
    writeFileSync(join(folder, "kept", "a.txt"), "a\n");
    writeFileSync(join(folder, "cleanup.sh"), "rm -rf kept\n");
    await call("exec", { command });
    assert.ok(existsSync(join(folder, "kept", "a.txt")));
  });
}

const starting = [
  "touch made",
  "flock f -c 'touch made'",
  "flock f touch made",
  "taskset 1 touch made",
  "chrt -o 0 touch made",
  "/lib64/ld-linux-x86-64.so.2 /usr/bin/touch made",
  "[ -v 'a[$(touch made)]' ]",
  "printf -v 'a[$(touch made)]' x",
  "[[ -v 'a[$(touch made)]' ]]",
  "alias ls='touch made'; shopt -s expand_aliases\nls",
  "hash -p /usr/bin/touch ls; ls made",
  "git -c alias.x='!touch made' x",
  "tar -cf t.tar public.txt --checkpoint=1 --checkpoint-action=exec='touch made'",
  "sed '1e touch made' public.txt",
];

for (const command of starting) {
  test(`starts no denied program when the command is ${JSON.stringify(command)}`, async () => {
    rmSync(join(folder, "made"), { force: true });
    await call("exec", { command });
    assert.equal(existsSync(join(folder, "made")), false);
  });
}
