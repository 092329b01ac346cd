// The menu of the documentation site.
import assert from "node:assert/strict";
import { existsSync, globSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { z } from "zod";

const docs = join(import.meta.dirname, "../docs");
const Entry = z.object({ text: z.string(), link: z.string() });
const Menu = z.object({
  themeConfig: z.object({
    sidebar: z.array(z.object({ items: z.array(Entry.extend({ items: z.array(Entry).default([]) })) })),
  }),
});

/** For contributors: reached from the architecture page. */
const withoutEntry = new Set(["seeds"]);

test("lists every page of docs once, and only pages that exist", async () => {
  const file = new URL("../infra/docs-site/.vitepress/config.mjs", import.meta.url);
  const { default: config } = (await import(file.href)) as { default: unknown };
  const entries = Menu.parse(config).themeConfig.sidebar.flatMap(({ items }) => items);
  const links = entries.flatMap((entry) => [entry, ...entry.items]).map(({ link }) => link.slice(1));
  assert.equal(new Set(links).size, links.length);
  // The build makes it of SECURITY.md.
  assert.ok(links.includes("security"));
  for (const link of links.filter((name) => name !== "security")) assert.ok(existsSync(join(docs, `${link}.md`)), link);
  const pages = globSync(["*.md", "channels/*.md", "reference/*.md"], { cwd: docs }).map((name) =>
    name.replace(/\.md$/, ""),
  );
  for (const page of pages.filter((name) => !withoutEntry.has(name))) assert.ok(links.includes(page), page);
});

const maxPictureBytes = 60 * 1024;

test(`shows pictures that exist, describes each, and keeps each below ${maxPictureBytes / 1024} KB`, () => {
  const shown = globSync("*.md", { cwd: docs }).flatMap((page) =>
    [...readFileSync(join(docs, page), "utf8").matchAll(/!\[(.*?)\]\((images\/[\w.-]+)\)/g)].map((match) => ({
      text: match[1] ?? "",
      file: match[2] ?? "",
    })),
  );
  assert.ok(shown.length > 3);
  for (const { text, file } of shown) {
    assert.ok(text.length > 10, file);
    assert.ok(statSync(join(docs, file)).size <= maxPictureBytes, file);
  }
  const files = globSync("images/*", { cwd: docs });
  assert.deepEqual(files.toSorted(), [...new Set(shown.map(({ file }) => file))].toSorted());
});

/** For operators, in whose images `parley` is a command, and generated pages that quote settings and messages. */
const forOperators = new Set(["deploy.md", "seeds.md", "protocol.md", "permissions.md"]);

test("prints commands that work in a clone: npx parley", () => {
  for (const page of globSync(["*.md", "channels/*.md"], { cwd: docs }).filter((name) => !forOperators.has(name))) {
    const text = readFileSync(join(docs, page), "utf8");
    assert.doesNotMatch(text, /^parley [a-z]|`parley [a-z]/m, page);
  }
});
