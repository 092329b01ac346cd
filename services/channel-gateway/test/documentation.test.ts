import assert from "node:assert/strict";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import fastify from "fastify";
import { documentationRoutes } from "../src/http/console/documentation.ts";

const parent = mkdtempSync(join(tmpdir(), "parley-docs-"));
const folder = join(parent, "site");
mkdirSync(join(folder, "assets"), { recursive: true });
mkdirSync(join(folder, "reference"));
writeFileSync(join(parent, "secret.html"), "outside");
writeFileSync(join(folder, "getting-started.html"), "<h1>Begin</h1>");
writeFileSync(join(folder, "reference/cli.html"), "<h1>Commands</h1>");
writeFileSync(join(folder, "assets/app.DItqB6G8.js"), "1;");
writeFileSync(join(folder, "notes.txt"), "not a page");
after(() => rmSync(parent, { recursive: true }));

test("serves pages with and without their ending, and files for ever when their name has a hash", async () => {
  await using app = fastify();
  documentationRoutes(app, folder);
  for (const [url, body] of [
    ["/docs/", "<h1>Begin</h1>"],
    ["/docs/reference/cli", "<h1>Commands</h1>"],
    ["/docs/reference/cli.html", "<h1>Commands</h1>"],
  ] as const) {
    const { statusCode, headers, payload } = await app.inject(url);
    assert.deepEqual([statusCode, payload, headers["cache-control"]], [200, body, "no-cache"], url);
    assert.match(String(headers["content-security-policy"]), /^default-src 'self';/);
  }
  const script = await app.inject("/docs/assets/app.DItqB6G8.js");
  assert.match(String(script.headers["cache-control"]), /immutable/);
  assert.equal((await app.inject("/docs")).headers.location, "/docs/getting-started");
});

test("serves the home page of the site at /docs/, where the site has one", async () => {
  const site = join(parent, "with-home");
  mkdirSync(site);
  writeFileSync(join(site, "getting-started.html"), "<h1>Begin</h1>");
  writeFileSync(join(site, "index.html"), "<h1>Home</h1>");
  await using app = fastify();
  documentationRoutes(app, site);
  assert.equal((await app.inject("/docs/")).payload, "<h1>Home</h1>");
});

test("serves nothing outside of the site and no other kinds of files", async () => {
  await using app = fastify();
  documentationRoutes(app, folder);
  for (const url of [
    "/docs/../secret.html",
    "/docs/%2e%2e/secret.html",
    "/docs/..%2fsecret.html",
    "/docs/notes.txt",
    "/docs/assets",
  ]) {
    assert.equal((await app.inject(url)).statusCode, 404, url);
  }
});

test("names the command that builds the pages when they are not built", async () => {
  await using app = fastify();
  documentationRoutes(app, join(parent, "missing"));
  const { statusCode, payload } = await app.inject("/docs/");
  assert.equal(statusCode, 404);
  assert.match(payload, /npm run build/);
});
