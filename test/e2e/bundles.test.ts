// The four services as bundles, as the images run them: also the threads and files that a bundle finds next to itself.
import assert from "node:assert/strict";
import { createServer } from "node:http";
import { readdir, readFile, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { after, before, describe, test } from "node:test";
import { repositoryPrograms } from "@parley/local";
import { Cleanup, suiteBundles } from "@parley/testing";
import { buildBundles } from "../../infra/docker/bundle.ts";
import { startClusterFixture, type ClusterFixture } from "./presets/support/fixture.ts";

const page = `<!doctype html><title>News</title><nav>Menu</nav><article><h1>Tea</h1><p>${"Green tea is cheap. ".repeat(40)}</p></article>`;

/** One page without text. */
const pdf = `%PDF-1.4
1 0 obj
<< /Type /Catalog /Pages 2 0 R >>
endobj
2 0 obj
<< /Type /Pages /Kids [3 0 R] /Count 1 >>
endobj
3 0 obj
<< /Type /Page /Parent 2 0 R /MediaBox [0 0 300 300] >>
endobj
trailer << /Root 1 0 R >>
%%EOF
`;

describe("a cluster of bundles", () => {
  const cleanup = new Cleanup();
  let fixture: ClusterFixture;
  let pageUrl: string;
  let services: Awaited<ReturnType<typeof buildBundles>>;

  before(async () => {
    const server = createServer((_request, response) => {
      response.writeHead(200, { "content-type": "text/html" }).end(page);
    });
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    cleanup.add(async () => {
      server.closeAllConnections();
      server.close();
    });
    const bound = server.address();
    assert.ok(bound !== null && typeof bound === "object");
    pageUrl = `http://127.0.0.1:${bound.port}/`;
    services = suiteBundles() ?? (await buildBundles());
    fixture = await startClusterFixture(cleanup, null, {
      programs: { migrate: repositoryPrograms.migrate, services },
      settings:
        '[permissions]\nallow = ["read", "edit", "exec", "web_fetch"]\n[tools.web]\nallow_private = ["127.0.0.1"]\n',
    });
    await writeFile(join(fixture.cluster.home, "workspace", "page.pdf"), pdf);
    await writeFile(join(fixture.cluster.home, "workspace", "notes.txt"), "red tea\n");
  });
  after(() => cleanup[Symbol.asyncDispose]());

  test("runs tools in threads, and commands", async () => {
    const calls: [tool: string, input: object][] = [
      ["read", { path: "page.pdf", pages: "1" }],
      ["web_fetch", { url: pageUrl }],
      ["edit", { path: "notes.txt", old_text: "red", new_text: "green" }],
      ["exec", { command: "cat notes.txt" }],
    ];
    const script = calls.map(([tool, input]) => `tool: ${tool} ${JSON.stringify(input)}`);
    const { results } = await fixture.turn(`${script.join("\nthen\n")}\nthen\nsay: done`);
    const texts = results.map(({ content }) => content);
    assert.deepEqual(
      results.map(({ isError }) => isError),
      [false, false, false, false],
      texts.join("\n"),
    );
    assert.match(texts[0] ?? "", /It has 1 page/);
    assert.match(texts[1] ?? "", /Green tea is cheap/);
    assert.doesNotMatch(texts[1] ?? "", /Menu/);
    assert.match(texts[3] ?? "", /green tea/);
  });

  // V8 keeps a source with other characters in two bytes each.
  test("contain only characters that V8 stores in one byte", async () => {
    for (const script of Object.values<string>({ ...services })) {
      for (const name of await readdir(dirname(script))) {
        const source = await readFile(join(dirname(script), name), "utf8");
        assert.equal(/[^\p{ASCII}]/u.exec(source)?.[0], undefined, name);
      }
    }
  });

  test("serves the web console", async () => {
    const response = await fetch(`${fixture.cluster.httpUrl}/`);
    assert.equal(response.status, 200);
    assert.match(await response.text(), /<script type="module"/);
  });
});
