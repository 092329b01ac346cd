// The pages of the documentation that the console's build contains.
import assert from "node:assert/strict";
import { resolve } from "node:path";
import { before, test } from "node:test";
import { renderDocumentation, type DocumentationFile } from "../build/docs-pages.ts";

let files: DocumentationFile[];
before(async () => {
  files = await renderDocumentation(resolve(import.meta.dirname, "../../.."));
});

const pages = () => files.flatMap(({ name, content }) => (typeof content === "string" ? [{ name, content }] : []));

test("renders every page with its menu, tables and pictures, and no script", () => {
  const started = pages().find(({ name }) => name === "getting-started.html")?.content ?? "";
  assert.match(started, /<h1 id="getting-started">Getting started<\/h1>/);
  assert.match(started, /aria-current="page">Getting started</);
  assert.match(pages().find(({ name }) => name === "console.html")?.content ?? "", /<img src="\/docs\/images\/console/);
  assert.match(pages().find(({ name }) => name === "troubleshooting.html")?.content ?? "", /<table><thead><tr><th>/);
  for (const { name, content } of pages()) assert.doesNotMatch(content, /<script|<style|\son\w+="/, name);
});

test("links only to pages, headings and pictures that exist", () => {
  const ids = new Map(pages().map(({ name, content }) => [name, idsOf(content)]));
  const known = new Set(files.map(({ name }) => name));
  const broken = pages().flatMap(({ name, content }) =>
    [...content.matchAll(/(?:href|src)="(\/docs\/[^"]*|#[^"]*)"/g)].flatMap(([, address = ""]) => {
      const [path = "", anchor] = address.split("#");
      const file = path === "" ? name : path.slice("/docs/".length);
      const target = known.has(file) ? file : `${file}.html`;
      const isFound = known.has(target) && (anchor === undefined || ids.get(target)?.has(anchor) === true);
      return isFound ? [] : [`${name}: ${address}`];
    }),
  );
  assert.deepEqual(broken, []);
});

function idsOf(html: string): Set<string> {
  return new Set([...html.matchAll(/ id="([^"]*)"/g)].map(([, id = ""]) => id));
}
