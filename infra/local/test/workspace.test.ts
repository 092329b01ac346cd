// The workspace that PARLEY_WORKSPACE names.
import assert from "node:assert/strict";
import { mkdirSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";

import { LocalError } from "../src/errors.ts";
import { chosenWorkspace, workspaceFolders } from "../src/workspace.ts";
import { folder } from "./support/folder.ts";

/** A data folder and a project next to each other, in an account's folder. */
function places(account: string) {
  const home = join(account, "parley");
  const project = join(account, "project");
  for (const path of [join(home, "workspace"), project]) mkdirSync(path, { recursive: true });
  return {
    home,
    project,
    choose: (named: string, config: string | null = null) =>
      chosenWorkspace(home, config, { PARLEY_WORKSPACE: named, HOME: account }),
  };
}

// design: 002.37
test("uses the named project, by its real path, and keeps its own files in the data folder", () => {
  using account = folder();
  const { home, project, choose } = places(account.path);
  const link = join(account.path, "link");
  symlinkSync(project, link);
  assert.equal(choose(link), project);
  assert.equal(choose(""), undefined);
  assert.equal(choose(join(home, "workspace")), undefined);
  const [own, other] = [workspaceFolders(home), workspaceFolders(home, link)];
  assert.deepEqual([own.workspace, other.workspace], [join(home, "workspace"), project]);
  assert.equal(own.checkpoints, join(home, ".workspace-checkpoints"));
  assert.equal(other.state, own.state);
  assert.ok(other.checkpoints.startsWith(`${own.checkpoints}-`), other.checkpoints);
});

test("refuses a folder from which tools would reach data, settings or the whole account", () => {
  using account = folder();
  const { home, project, choose } = places(account.path);
  const config = join(project, "parley.toml");
  writeFileSync(config, "");
  const refused = (named: string, reason: RegExp, settings: string | null = null) =>
    assert.throws(
      () => choose(named, settings),
      (error) => error instanceof LocalError && error.code === "bad_option" && reason.test(error.message),
      named,
    );
  refused(join(account.path, "nothing"), /is not a folder/);
  refused(config, /is not a folder/);
  refused(account.path, /contains the data folder/);
  refused(home, /contains the data folder/);
  mkdirSync(join(home, "logs"));
  refused(join(home, "logs"), /is in the data folder/);
  refused(project, /contains the settings/, config);
  const profiles = join(account.path, "agents");
  mkdirSync(profiles);
  for (const folder of [account.path, home]) writeFileSync(join(folder, "parley.toml"), "");
  refused(profiles, /change the profiles/, join(account.path, "parley.toml"));
  symlinkSync(project, join(home, "agents"));
  refused(project, /change the profiles/, join(home, "parley.toml"));
  const other = join(project, "elsewhere");
  mkdirSync(other);
  assert.throws(
    () => chosenWorkspace(home, null, { PARLEY_WORKSPACE: project, HOME: other }),
    /your whole home folder/,
  );
});
