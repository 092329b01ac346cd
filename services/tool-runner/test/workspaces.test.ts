// Workspaces of people other than the owner: opened on demand, a bounded number kept open, isolated from each other.
import assert from "node:assert/strict";
import { mkdir, readFile, symlink, unlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { leavesWorkspace } from "../src/sandbox/isolation.ts";
import { unlimitedQuota } from "../src/workspace/quota.ts";
import { mountedFolders, namedFolders } from "../src/workspace/named-folders.ts";
import { TaintedFiles } from "../src/workspace/tainted-files.ts";
import { Workspaces } from "../src/workspace/workspaces.ts";
import { makeWorkspaceFixture, secret } from "./support/workspace-fixture.ts";

const idOf = (n: number) => n.toString(16).padStart(32, "0");

test("opens each workspace in its own folder, and the owner's when none is named", async () => {
  await using ground = await makeWorkspaceFixture();
  const folder = join(ground.outside, "people");
  await using workspaces = new Workspaces({ main: ground.workspace, folder, rules: unlimitedQuota });
  await using main = await workspaces.take();
  assert.equal(main.workspace, ground.workspace);
  await using one = await workspaces.take(idOf(1));
  await using two = await workspaces.take(idOf(2));
  assert.equal(one.workspace.root, join(folder, idOf(1), "workspace"));
  assert.notEqual(one.workspace.root, two.workspace.root);
  await writeFile(join(two.workspace.root, "theirs.txt"), "x");
  for (const path of ["theirs.txt", `../../${idOf(2)}/workspace/theirs.txt`, join(two.workspace.root, "theirs.txt")]) {
    const found = await one.workspace.resolve(path).then(
      (place) => place.stats,
      () => null,
    );
    assert.equal(found, null, path);
  }
});

// design: 002.37b
test("opens the named folders of the owner, and creates none that is missing", async () => {
  await using ground = await makeWorkspaceFixture();
  const [folder, project] = [join(ground.outside, "people"), join(ground.outside, "project")];
  await mkdir(project);
  await writeFile(join(project, "a.txt"), "a");
  const folders = new Map([
    ["folder-project", project],
    ["folder-gone", join(ground.outside, "gone")],
  ]);
  await using workspaces = new Workspaces({ main: ground.workspace, folders, folder, rules: unlimitedQuota });
  await using lease = await workspaces.take("folder-project");
  await using place = await lease.workspace.resolve("a.txt");
  assert.equal(place.stats?.isFile(), true);
  await assert.rejects(workspaces.take("folder-gone"), /does not exist/);
  await assert.rejects(workspaces.take("folder-other"), /no folder of this tool-runner has the name/);
  assert.equal(leavesWorkspace({ kind: "none" }, "folder-project"), undefined);
});

test("refuses named folders that overlap another workspace or what tools must not reach", async () => {
  await using ground = await makeWorkspaceFixture();
  const { root } = ground.workspace;
  const [a, state] = [join(ground.outside, "a"), join(ground.outside, "state")];
  await Promise.all([mkdir(join(a, "b"), { recursive: true }), mkdir(state), mkdir(join(root, "sub"))]);
  await symlink(a, join(ground.outside, "link"));
  assert.deepEqual([...namedFolders({ a }, root, [state])], [["folder-a", a]]);
  const refused = (folders: Record<string, string>, reason: RegExp) =>
    assert.throws(() => namedFolders(folders, root, [state]), reason);
  refused({ gone: join(ground.outside, "gone") }, /workspace\.folders\.gone: .* is not a folder/);
  refused({ sub: join(root, "sub") }, /overlaps the workspace/);
  refused({ a, b: join(ground.outside, "link", "b") }, /workspace\.folders\.b: .* overlaps workspace\.folders\.a/);
  refused({ state }, /which no tool may reach/);
  refused({ all: ground.outside }, /overlaps/);
});

test("refuses mounts that are missing, or overlap a workspace or what tools must not reach", async () => {
  await using ground = await makeWorkspaceFixture();
  const { root } = ground.workspace;
  const [a, state] = [join(ground.outside, "a"), join(ground.outside, "state")];
  await Promise.all([mkdir(a), mkdir(state)]);
  assert.deepEqual([...mountedFolders({ a }, [root], [state])], [["a", a]]);
  const refused = (mounts: Record<string, string>, reason: RegExp) =>
    assert.throws(() => mountedFolders(mounts, [root], [state]), reason);
  refused({ gone: join(ground.outside, "gone") }, /workspace\.mounts\.gone: .* is not a folder/);
  refused({ state }, /workspace\.mounts\.state: .* which no tool may reach/);
  refused({ root }, /overlaps the workspace/);
  refused({ all: ground.outside }, /overlaps/);
});

test("closes idle workspaces above its limit and none that is in use", async () => {
  await using ground = await makeWorkspaceFixture();
  const folder = join(ground.outside, "people");
  await using workspaces = new Workspaces({ main: ground.workspace, folder, rules: unlimitedQuota, maxIdle: 2 });
  const used = await workspaces.take(idOf(99));
  const first = await workspaces.take(idOf(0));
  const root = first.workspace;
  await first[Symbol.asyncDispose]();
  for (let n = 1; n <= 5; n += 1) await (await workspaces.take(idOf(n)))[Symbol.asyncDispose]();
  await assert.rejects(root.resolve("x/y"));
  await using place = await used.workspace.resolve("new.txt");
  assert.equal(place.stats, null);
  await using again = await workspaces.take(idOf(0));
  assert.notEqual(again.workspace, root);
  await using same = await workspaces.take(idOf(99));
  assert.equal(same.workspace, used.workspace);
});

test("opens a workspace after a failure has been repaired", async () => {
  await using ground = await makeWorkspaceFixture();
  const folder = join(ground.outside, "people");
  await writeFile(folder, "a file in the way");
  await using workspaces = new Workspaces({ main: ground.workspace, folder, rules: unlimitedQuota });
  await assert.rejects(workspaces.take(idOf(1)));
  await using other = new Workspaces({ main: ground.workspace, folder: `${folder}-2`, rules: unlimitedQuota });
  await mkdir(`${folder}-2`);
  await symlink("/nonexistent", join(`${folder}-2`, idOf(1)));
  await assert.rejects(other.take(idOf(1)));
  assert.equal(await readFile(join(ground.outside, "secret.txt"), "utf8"), secret);
});

test("opens the owner's workspace again when its taint records could not be read", async () => {
  await using ground = await makeWorkspaceFixture();
  const [folder, records] = [join(ground.outside, "people"), join(ground.outside, "taint")];
  await using workspaces = new Workspaces({
    main: ground.workspace,
    folder,
    rules: unlimitedQuota,
    taintedFilesOf: async ({ root }) => {
      const files = new TaintedFiles(ground.outside, root, "one");
      await files.recover();
      return files;
    },
  });
  await symlink("taint", records);
  await assert.rejects(workspaces.take(), /ELOOP/);
  await unlink(records);
  await using main = await workspaces.take();
  assert.equal(await main.tainted?.any(), false);
});

test("refuses commands in other people's workspaces unless bubblewrap isolates them", () => {
  const bubblewrap = { kind: "bubblewrap", bwrap: "bwrap", disableUserNamespaces: true } as const;
  assert.equal(leavesWorkspace(bubblewrap, idOf(1)), undefined);
  for (const kind of ["container", "gvisor", "none"] as const) {
    assert.equal(leavesWorkspace({ kind }, "main"), undefined);
    assert.match(leavesWorkspace({ kind }, idOf(1))?.reason ?? "", /could read the owner's workspace/);
  }
});
