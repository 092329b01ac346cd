import assert from "node:assert/strict";
import { statSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";

import { startRedis } from "../src/servers/redis.ts";
import { folder } from "./support/folder.ts";
import { redis } from "./support/wire.ts";

test("keeps data over a restart at the same address, and requires the password", async () => {
  using home = folder();
  await using first = await startRedis({ dataDir: home.path });
  assert.match(await redis(first.url, "SET kept 7"), /^\+OK\r\n\+OK/);
  assert.match(await redis(first.url.replace(/:[^:@]+@/, ":wrong@"), "GET kept"), /WRONGPASS/);
  await first.stop();

  await using second = await startRedis({ dataDir: home.path, port: first.port });
  assert.equal(second.url, first.url);
  assert.match(await redis(second.url, "GET kept"), /\$1\r\n7/);
  assert.equal(statSync(join(home.path, "redis.conf")).mode & 0o077, 0);
});

test("restarts after kill -9 and never evicts", async () => {
  using home = folder();
  await using first = await startRedis({ dataDir: join(home.path, "with a space") });
  await first.kill("SIGKILL");
  await using second = await startRedis({ dataDir: first.dataDir, port: first.port });
  const said = await redis(
    second.url,
    "CONFIG GET maxmemory-policy",
    "CONFIG GET appendonly",
    "CONFIG GET save",
    "CONFIG GET bind",
  );
  assert.match(said, /noeviction[\s\S]*\r\nyes[\s\S]*\$0\r\n\r\n[\s\S]*127\.0\.0\.1/);
});
