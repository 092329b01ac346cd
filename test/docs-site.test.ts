// The menu of the documentation site.
import assert from "node:assert/strict";
import { existsSync, globSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { z } from "zod";

const docs = join(import.meta.dirname, "../docs");
const Menu = z.object({
  themeConfig: z.object({
    sidebar: z.array(z.object({ items: z.array(z.object({ text: z.string(), link: z.string() })) })),
  }),
});

/** For contributors: reached from the architecture page. */
const withoutEntry = new Set(["seeds"]);

test("lists every page of docs once, and only pages that exist", async () => {
  const file = new URL("../infra/docs-site/.vitepress/config.mjs", import.meta.url);
  const { default: config } = (await import(file.href)) as { default: unknown };
  const links = Menu.parse(config).themeConfig.sidebar.flatMap(({ items }) => items.map(({ link }) => link.slice(1)));
  assert.equal(new Set(links).size, links.length);
  for (const link of links) assert.ok(existsSync(join(docs, `${link}.md`)), link);
  const pages = globSync(["*.md", "reference/*.md"], { cwd: docs }).map((name) => name.replace(/\.md$/, ""));
  for (const page of pages.filter((name) => !withoutEntry.has(name))) assert.ok(links.includes(page), page);
});
