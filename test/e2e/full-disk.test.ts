// A whole cluster on a small disk that becomes full while it runs: every service recovers, and nothing is lost.
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { closeSync, openSync, rmSync, writeSync } from "node:fs";
import { join } from "node:path";
import { after, test } from "node:test";
import { sharedCacheDir, startLocalCluster } from "@parley/local";
import { apiClient, Cleanup, temporaryFolder } from "@parley/testing";

const cleanup = new Cleanup();
after(() => cleanup[Symbol.asyncDispose]());

const disk = await temporaryFolder(cleanup);
const mounted = spawnSync("mount", ["-t", "tmpfs", "-o", "size=300m", "tmpfs", disk]);
const canMount = mounted.status === 0;
if (canMount) cleanup.add(async () => void spawnSync("umount", ["-l", disk]));

/** Fills the remaining space. */
function fill(path: string): void {
  const fd = openSync(path, "w");
  try {
    for (let size = 1 << 20; size >= 1;) {
      try {
        if (writeSync(fd, Buffer.alloc(size)) < size) size >>= 1;
      } catch {
        size >>= 1;
      }
    }
  } finally {
    closeSync(fd);
  }
}

test(
  "answers a message from a full disk when space is free again",
  { skip: canMount ? false : `a tmpfs cannot be mounted here: ${String(mounted.stderr ?? mounted.error)}` },
  async () => {
    const warnings: string[] = [];
    const warned = Promise.withResolvers<void>();
    const cluster = await startLocalCluster({
      home: join(disk, "home"),
      serversDir: sharedCacheDir,
      environment: { PARLEY_MODEL: "rehearsal" },
      warn: (line) => {
        warnings.push(line);
        warned.resolve();
      },
    });
    cleanup.add(() => cluster.stop());
    const client = apiClient(cluster.httpUrls, cluster.token);
    await client.ask("hello");
    const filler = join(disk, "filler");
    fill(filler);
    await cluster.kill("tool-runner", 1, "SIGKILL");
    await cluster.whenReady("tool-runner", 1);
    await warned.promise;
    assert.match(warnings[0] ?? "", /^disk full: /);
    const sent = client.post("are you there?", { key: "sent-on-a-full-disk" });
    rmSync(filler);
    assert.equal((await client.settled(await sent)).state, "done");
    assert.equal(cluster.replicas().filter(({ ready }) => !ready).length, 0);
  },
);
