import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { chmodSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";

import { debianBinary, hasApt } from "../src/servers/debian.ts";
import { suitePrograms } from "../src/servers/debian-suite.ts";
import { run } from "../src/servers/process.ts";
import { folder } from "./support/folder.ts";

const noApt = !(await hasApt()) && "apt-get is not installed";
const ordinary = ["--reuid=65534", "--regid=65534", "--clear-groups", "--"];
const isRoot = process.getuid?.() === 0;
const canDropRoot = !isRoot || spawnSync("setpriv", [...ordinary, "true"]).status === 0;

test("runs an unpacked redis without root", { skip: noApt || (!canDropRoot && "cannot change the user") }, async () => {
  using home = folder();
  chmodSync(home.path, 0o777);
  const { path } = await debianBinary("redis-server", "redis-server", home.path);
  const asOrdinary = isRoot ? run("setpriv", [...ordinary, path, "--version"]) : run(path, ["--version"]);
  assert.match((await asOrdinary).stdout, /^Redis server v=\d/);
});

test("unpacks a package once, and completely, for concurrent callers", { skip: noApt }, async () => {
  using home = folder();
  const said: string[] = [];
  const all = await Promise.all(
    [1, 2, 3].map(() => debianBinary("bwrap", "bubblewrap", home.path, (line) => said.push(line))),
  );
  // Lists of the system may be missing: then the lists are downloaded too, and the size is not known.
  assert.equal(said.filter((line) => /^downloading bubblewrap(?:, [\d.]+ (?:KiB|MiB|bytes))?$/.test(line)).length, 1);
  for (const { path } of all) assert.match((await run(path, ["--version"])).stdout, /^bubblewrap \d/);
  assert.equal((await run("ls", ["-A", home.path])).stdout, "bubblewrap\n");
});

test("throws an error with a remedy when a package does not exist", { skip: noApt }, async () => {
  using home = folder();
  const failed = debianBinary("nothing", "parley-no-such-package", join(home.path, "cache"));
  await assert.rejects(failed, {
    code: "binary_missing",
    message: /parley-no-such-package/,
    fix: /apt install parley-no-such-package/,
  });
});

test("runs a program of another suite with its own libraries and the given folders", { skip: noApt }, async () => {
  using home = folder();
  using data = folder();
  const options = { name: "box", suite: "trixie", packages: ["busybox"], cacheDir: home.path };
  const programs = await suitePrograms(options);
  assert.match(programs.version("busybox") ?? "", /^\d+:1\./);
  assert.match(programs.version("libc6") ?? "", /^2\./);
  writeFileSync(join(data.path, "in"), "given");
  const script = `busybox cat ${data.path}/in; echo kept > ${data.path}/out; busybox ls -d /root ${home.path} 2>/dev/null`;
  const [command, args] = programs.command("busybox", ["sh", "-c", script], { writable: [data.path] });
  assert.equal((await run(command, args)).stdout, "given");
  assert.equal(readFileSync(join(data.path, "out"), "utf8"), "kept\n");
  const said: string[] = [];
  await suitePrograms({ ...options, log: (line) => said.push(line) });
  assert.deepEqual(said, []);
});
