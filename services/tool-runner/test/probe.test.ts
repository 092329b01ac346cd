// The trial run of bubblewrap at start, with scripts in its place.
import assert from "node:assert/strict";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { Cleanup, temporaryFolder } from "@parley/testing";
import { probeBubblewrap } from "../src/sandbox/probe.ts";

const probe = async (script: string) => {
  await using cleanup = new Cleanup();
  const folder = await temporaryFolder(cleanup);
  const bwrap = join(folder, "bwrap");
  await writeFile(bwrap, `#!/bin/sh\ncd ${folder}\n${script}\necho sandboxed\n`, { mode: 0o755 });
  const result = await probeBubblewrap({
    bwrap,
    workspace: folder,
    directory: "/workspace",
    etc: folder,
    seccomp: undefined,
    env: {},
    temporaryBytes: 1_000_000,
  });
  return result.works ? result.disableUserNamespaces : result.reason;
};

const refuses = (message: string) => `case "$*" in *--disable-userns*) echo "${message}" >&2; exit 1;; esac`;

test("runs without the option only when bubblewrap does not know it", async () => {
  assert.equal(await probe(""), true);
  assert.equal(await probe(refuses("bwrap: Unknown option --disable-userns")), false);
  assert.equal(await probe(refuses("bwrap: fork failed")), "bwrap: fork failed");
});

test("keeps the option when the first trial run fails for another reason", async () => {
  assert.equal(await probe('[ -e busy ] || { touch busy; echo "bwrap: fork failed" >&2; exit 1; }'), true);
});
