// Fixture of the catalogue tests: tool-runners, their workspace, a web server that counts requests, and a replica for processes.
import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { existsSync, readFileSync } from "node:fs";
import { mkdir, open, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { storeBlob, type Bus } from "@parley/bus";
import { store } from "@parley/contracts";
import { type Cleanup, temporaryFolder } from "@parley/testing";
import { openRunnerFixture, type RunnerFixture } from "../support/runner-fixture.ts";
import { openHome, type Home } from "./home.ts";
import { openSite, type Site } from "./site.ts";

export interface CatalogFixture {
  runners: RunnerFixture;
  workspace: string;
  site: Site;
  home: Home;
  gateway: Bus;
  /** Settings of the runners: their web and their search provider are the site. */
  env: Record<string, string>;
  put: (path: string, content: string | Uint8Array) => Promise<void>;
  /** Creates a sparse file of the given size in bytes. */
  putHuge: (path: string, bytes: number) => Promise<void>;
  /** "" when the file does not exist. */
  read: (path: string) => string;
  /** Sends an attachment to a session; resolves with its id. */
  receive: (sessionId: string, content: Uint8Array) => Promise<string>;
}

export async function openCatalogFixture(cleanup: Cleanup): Promise<CatalogFixture> {
  const runners = await openRunnerFixture(cleanup);
  const { workspace } = await runners.config("x");
  await mkdir(workspace, { recursive: true });
  const site = await openSite(cleanup);
  const config = join(await temporaryFolder(cleanup), "parley.toml");
  await writeFile(
    config,
    `[tools.web]\nallow_private = ["127.0.0.1"]\n[tools.web.search]\nprovider = "searxng"\nurl = "${site.url}"\n`,
  );
  const put = async (path: string, content: string | Uint8Array) => {
    await mkdir(dirname(join(workspace, path)), { recursive: true });
    await writeFile(join(workspace, path), content);
  };
  const gateway = await runners.stack.bus("channel-gateway");
  return {
    runners,
    workspace,
    site,
    home: await openHome(runners, cleanup),
    gateway,
    env: { PARLEY_CONFIG: config },
    put,
    putHuge: async (path, bytes) => {
      await put(path, "");
      await using file = await open(join(workspace, path), "r+");
      await file.truncate(bytes);
    },
    receive: async (sessionId, content) => {
      const blob = await storeBlob(gateway, content);
      const { session } = await gateway.request(store.sessionGet, { sessionId });
      assert.ok(session);
      const place = { channel: "irc", account: "main", conversation: "#test" };
      await gateway.request(store.inboxPut, {
        message: {
          ...place,
          externalId: randomUUID(),
          contact: { id: "7" },
          role: "owner",
          origin: "user",
          parts: [{ type: "blob", name: "file.bin", ...blob }],
          replyTo: place,
        },
        sessionKey: session.key,
      });
      return blob.sha256;
    },
    read: (path) => (existsSync(join(workspace, path)) ? readFileSync(join(workspace, path), "utf8") : ""),
  };
}
